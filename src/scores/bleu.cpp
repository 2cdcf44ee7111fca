#include "quatrain/scores/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "scores/ngrams.h"
#include "support/characters.h"
#include "support/enum_names.h"
#include "support/version.h"

namespace quatrain::scores {
namespace {

constexpr EnumNames<BleuTokenizer, 3> kTokenizerNames{
    {{BleuTokenizer::v13a, "13a"}, {BleuTokenizer::none, "none"}, {BleuTokenizer::character, "char"}}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_point(char c) {
  return c == '.' || c == ',';
}
bool is_dash(char c) {
  return c == '-';
}
bool is_no_digit(char c) {
  return !is_digit(c);
}
// The space, and of ASCII's punctuation all but ' , - and .
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// A copy in which each pair of a `first` and a `second` byte that follow each other, from the left, is
// written as the format says: "AB" stands for the two, a space for itself. Bytes serve as characters here:
// all rules are about ASCII, and no byte of a longer character is.
template <class First, class Second>
std::string rewrite_pairs(const std::string& text, First first, Second second, std::string_view format) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      out += text[i];
      continue;
    }
    for (const char c : format) out += c == 'A' ? text[i] : c == 'B' ? text[i + 1] : c;
    ++i;
  }
  return out;
}

std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string apart = " ";
  for (const char c : text) {
    if (stands_alone(c))
      (apart += ' ').append(1, c) += ' ';
    else
      apart += c;
  }
  apart += ' ';
  apart = rewrite_pairs(apart, is_no_digit, is_point, "A B ");
  apart = rewrite_pairs(apart, is_point, is_no_digit, " A B");
  return rewrite_pairs(apart, is_digit, is_dash, "A B ");
}

// The words that stand between white space; with `each`, every character is a word.
std::vector<std::string> words_of(std::string_view text, bool each, const char* what) {
  std::vector<std::string> words;
  bool inside = false;
  for (const auto& [code, bytes] : characters(text, what)) {
    if (is_white_space(code)) {
      inside = false;
      continue;
    }
    if (!inside || each) words.emplace_back();
    words.back() += bytes;
    inside = true;
  }
  return words;
}

std::string_view strip_end(std::string_view text, const char* what) {
  const auto all = characters(text, what);
  size_t count = all.size();
  while (count > 0 && is_white_space(all[count - 1].code)) text.remove_suffix(all[--count].bytes.size());
  return text;
}

std::vector<std::string> tokenize(std::string_view text, BleuTokenizer tokenizer, const char* what) {
  if (tokenizer != BleuTokenizer::v13a) return words_of(text, tokenizer == BleuTokenizer::character, what);
  return words_of(tokenize_13a(strip_end(text, what)), false, what);
}

std::vector<uint32_t> numbered(std::vector<std::string> words,
                               std::unordered_map<std::string, uint32_t>& numbers) {
  std::vector<uint32_t> all;
  for (auto& word : words)
    all.push_back(numbers.try_emplace(std::move(word), static_cast<uint32_t>(numbers.size())).first->second);
  return all;
}

}  // namespace

const char* name(BleuTokenizer tokenizer) {
  return name_of(kTokenizerNames, tokenizer);
}

BleuTokenizer parse_bleu_tokenizer(std::string_view name) {
  return parse_name(kTokenizerNames, "bleu: the tokenizer", name);
}

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < kOrders; ++n) {
    matched[n] += other.matched[n];
    total[n] += other.total[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts bleu_counts(std::string_view hypothesis, std::span<const std::string_view> references,
                       BleuTokenizer tokenizer) {
  if (references.empty()) throw std::invalid_argument("bleu: there must be a reference");
  std::unordered_map<std::string, uint32_t> numbers;
  std::vector<std::vector<uint32_t>> words;
  words.push_back(numbered(tokenize(hypothesis, tokenizer, "bleu: the hypothesis"), numbers));
  for (const auto reference : references)
    words.push_back(numbered(tokenize(reference, tokenizer, "bleu: the reference"), numbers));
  const auto overlap = overlaps<BleuCounts::kOrders>(words);
  BleuCounts counts;
  for (size_t n = 0; n < BleuCounts::kOrders; ++n) {
    counts.matched[n] = overlap[n].matched;
    counts.total[n] = overlap[n].hypothesis;
  }
  counts.hypothesis_length = static_cast<int64_t>(words.front().size());
  const auto distance = [&](const std::vector<uint32_t>& reference) {
    const auto length = static_cast<int64_t>(reference.size());
    return std::pair(std::abs(length - counts.hypothesis_length), length);
  };
  counts.reference_length =
      distance(*std::ranges::min_element(words.begin() + 1, words.end(), {}, distance)).second;
  return counts;
}

BleuCounts bleu_counts(std::string_view hypothesis, std::string_view reference, BleuTokenizer tokenizer) {
  return bleu_counts(hypothesis, {&reference, 1}, tokenizer);
}

double brevity_penalty(const BleuCounts& counts) {
  if (counts.hypothesis_length >= counts.reference_length) return 1;
  if (counts.hypothesis_length == 0) return 0;
  return std::exp(1 - static_cast<double>(counts.reference_length) /
                          static_cast<double>(counts.hypothesis_length));
}

std::array<double, BleuCounts::kOrders> bleu_precisions(const BleuCounts& counts) {
  std::array<double, BleuCounts::kOrders> precisions{};
  if (std::all_of(counts.matched.begin(), counts.matched.end(), [](int64_t count) { return count == 0; }))
    return precisions;
  double halves = 1;
  for (size_t n = 0; n < BleuCounts::kOrders && counts.total[n] > 0; ++n) {
    const auto total = static_cast<double>(counts.total[n]);
    precisions[n] = counts.matched[n] > 0 ? 100 * static_cast<double>(counts.matched[n]) / total
                                          : 100 / ((halves *= 2) * total);
  }
  return precisions;
}

double bleu(const BleuCounts& counts) {
  double logarithms = 0;
  for (const double precision : bleu_precisions(counts)) logarithms += std::log(precision);
  return brevity_penalty(counts) * std::exp(logarithms / BleuCounts::kOrders);
}

std::string bleu_signature(BleuTokenizer tokenizer, size_t references) {
  return "nrefs:" + std::to_string(references) + "|case:mixed|eff:no|tok:" + name(tokenizer) +
         "|smooth:exp|version:quatrain-" + version();
}

}  // namespace quatrain::scores
