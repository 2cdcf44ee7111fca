#include "quatrain/data/vocabulary.h"

#include <algorithm>
#include <utility>

#include "data/text_file.h"
#include "support/atomic_file.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

constexpr const char* kSpecial[] = {"<pad>", "<unk>"};

/// Why a text cannot stand in a vocabulary, or nothing.
const char* defect(std::string_view word) {
  if (word.empty()) return "a word must not be empty";
  if (word.find_first_of(kSpace) != word.npos) return "a word must not contain white space";
  return nullptr;
}

}  // namespace

Vocabulary::Vocabulary() : Vocabulary(std::vector<std::string>{}) {}

Vocabulary::Vocabulary(std::vector<std::string> words) : words_{kSpecial[0], kSpecial[1]} {
  words_.reserve(words.size() + 2);
  for (auto& word : words) words_.push_back(std::move(word));
  ids_.reserve(words_.size());
  for (size_t i = 0; i < words_.size(); ++i) {
    const char* why = defect(words_[i]);
    TORCH_CHECK(!why, "vocabulary: ", why, ", got ", quote(words_[i]), " as number ", i);
    const auto [known, fresh] = ids_.emplace(words_[i], static_cast<int64_t>(i));
    TORCH_CHECK(fresh, "vocabulary: a word must occur once, ", quote(words_[i]), " is number ", known->second,
                " and ", i);
  }
}

Vocabulary Vocabulary::build(const std::vector<Example>& examples, Tokenizer tokenizer,
                             const VocabularyOptions& options) {
  TORCH_CHECK(options.min_count >= 1, "vocabulary: min_count must be at least 1, got ", options.min_count);
  TORCH_CHECK(options.max_size >= 3,
              "vocabulary: max_size must be at least 3 (<pad>, <unk> and one word), got ", options.max_size);
  std::unordered_map<std::string, int64_t> counts;
  for (const auto& example : examples) {
    for (auto& word : split(example.text, tokenizer)) ++counts[std::move(word)];
  }
  for (const char* special : kSpecial) counts.erase(special);

  std::vector<std::pair<std::string, int64_t>> kept;
  for (const auto& entry : counts) {
    if (entry.second >= options.min_count) kept.push_back(entry);
  }
  TORCH_CHECK(!kept.empty(), "vocabulary: no word occurs ", options.min_count, " times or more in the ",
              examples.size(), " texts that it is made of; lower min_count");
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  kept.resize(std::min(kept.size(), static_cast<size_t>(options.max_size - 2)));

  std::vector<std::string> words;
  words.reserve(kept.size());
  for (auto& entry : kept) words.push_back(std::move(entry.first));
  return Vocabulary(std::move(words));
}

void Vocabulary::save(const std::filesystem::path& file) const {
  std::string lines;
  for (const auto& word : words_) lines += word + '\n';
  write_text(file, lines);
}

Vocabulary Vocabulary::load(const std::filesystem::path& file) {
  std::vector<std::string> words;
  std::unordered_map<std::string, int64_t> lines;
  int64_t count = 0;
  for_each_line(file, [&](std::string_view word, int64_t line) {
    count = line;
    const char* why = defect(word);
    TORCH_CHECK(!why, place(file, line), ": ", why, ", got ", quote(word),
                "; a vocabulary has one word on each line");
    const auto [known, fresh] = lines.emplace(word, line);
    TORCH_CHECK(fresh, place(file, line), ": a word must occur once, ", quote(word), " is already in line ",
                known->second);
    if (line <= 2) {
      TORCH_CHECK(word == kSpecial[line - 1], place(file, line), ": must be ", kSpecial[line - 1], ", got ",
                  quote(word), "; is this a saved vocabulary?");
    } else {
      words.emplace_back(word);
    }
  });
  TORCH_CHECK(count >= 2, place(file, count),
              ": a vocabulary begins with <pad> and <unk>, but the file ends here");
  return Vocabulary(std::move(words));
}

const std::string& Vocabulary::word(int64_t id) const {
  TORCH_CHECK(id >= 0 && id < size(), "Vocabulary::word: id must be from 0 to ", size() - 1, ", got ", id);
  return words_[static_cast<size_t>(id)];
}

int64_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnknown : found->second;
}

std::vector<int64_t> Vocabulary::encode(const std::vector<std::string>& words) const {
  std::vector<int64_t> ids;
  ids.reserve(std::max<size_t>(words.size(), 1));
  for (const auto& word : words) {
    const int64_t known = id(word);
    ids.push_back(known == kPad ? kUnknown : known);  // a text may say "<pad>", but that is no padding
  }
  if (ids.empty()) ids.push_back(kUnknown);
  return ids;
}

}  // namespace quatrain::data
