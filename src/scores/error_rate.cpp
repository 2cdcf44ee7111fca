#include "quatrain/scores/error_rate.h"

#include <algorithm>
#include <limits>

#include "support/enum_names.h"
#include "support/numbers.h"

namespace quatrain::scores {
namespace {

constexpr EnumNames<AlignmentRule, 2> kRules{
    {{AlignmentRule::fewest_edits, "fewest_edits"}, {AlignmentRule::sclite, "sclite"}}};

struct Costs {
  int64_t substitution, deletion, insertion;
  bool pairs_first;  // of equal costs, a pair of tokens rather than an edit of one
};
constexpr Costs kFewestEdits{1, 1, 1, false}, kSclite{4, 3, 3, true};

// The last edit of the cheapest alignment of each pair of beginnings, by rows of hypotheses.
std::vector<Edit> last_edits(std::span<const std::string> reference, std::span<const std::string> hypothesis,
                             const Costs& costs) {
  const size_t width = reference.size() + 1;
  std::vector<Edit> last(width * (hypothesis.size() + 1), Edit::deletion);
  std::vector<int64_t> above(width), row(width);
  for (size_t r = 1; r < width; ++r) row[r] = row[r - 1] + costs.deletion;
  for (size_t h = 1; h <= hypothesis.size(); ++h) {
    std::swap(above, row);
    Edit* const edits = &last[h * width];
    row[0] = above[0] + costs.insertion;
    edits[0] = Edit::insertion;
    for (size_t r = 1; r < width; ++r) {
      const bool hit = reference[r - 1] == hypothesis[h - 1];
      const int64_t inserted = above[r] + costs.insertion, deleted = row[r - 1] + costs.deletion,
                    paired = above[r - 1] + (hit ? 0 : costs.substitution);
      const int64_t single = std::min(inserted, deleted);
      if (paired < single || (paired == single && costs.pairs_first))
        edits[r] = hit ? Edit::hit : Edit::substitution, row[r] = paired;
      else if (deleted < inserted)
        edits[r] = Edit::deletion, row[r] = deleted;
      else
        edits[r] = Edit::insertion, row[r] = inserted;
    }
  }
  return last;
}

// Kaldi rounds to float before it writes two digits.
std::string percentage(double rate) {
  return fixed(static_cast<double>(static_cast<float>(100 * rate)), 2);
}

}  // namespace

const char* name(AlignmentRule rule) {
  return name_of(kRules, rule);
}

AlignmentRule parse_alignment_rule(std::string_view name) {
  return parse_name(kRules, "align_tokens: the rule", name);
}

std::vector<AlignedTokens> align_tokens(std::span<const std::string> reference,
                                        std::span<const std::string> hypothesis, AlignmentRule rule) {
  const auto last = last_edits(reference, hypothesis, rule == AlignmentRule::sclite ? kSclite : kFewestEdits);
  std::vector<AlignedTokens> steps;
  size_t r = reference.size(), h = hypothesis.size();
  while (r > 0 || h > 0) {
    AlignedTokens step{last[h * (reference.size() + 1) + r]};
    if (step.edit != Edit::insertion) step.reference = static_cast<int64_t>(--r);
    if (step.edit != Edit::deletion) step.hypothesis = static_cast<int64_t>(--h);
    steps.push_back(step);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

double ErrorCounts::error_rate() const {
  if (errors() == 0) return 0;
  if (reference_tokens() == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(errors()) / static_cast<double>(reference_tokens());
}

double ErrorCounts::sentence_error_rate() const {
  return sentences == 0 ? 0 : static_cast<double>(wrong_sentences) / static_cast<double>(sentences);
}

ErrorCounts& ErrorCounts::operator+=(const ErrorCounts& other) {
  hits += other.hits;
  substitutions += other.substitutions;
  deletions += other.deletions;
  insertions += other.insertions;
  sentences += other.sentences;
  wrong_sentences += other.wrong_sentences;
  return *this;
}

ErrorCounts count_errors(std::span<const AlignedTokens> alignment) {
  ErrorCounts counts;
  for (const auto& step : alignment) {
    switch (step.edit) {
      case Edit::hit:
        ++counts.hits;
        break;
      case Edit::substitution:
        ++counts.substitutions;
        break;
      case Edit::deletion:
        ++counts.deletions;
        break;
      case Edit::insertion:
        ++counts.insertions;
        break;
    }
  }
  counts.sentences = 1;
  counts.wrong_sentences = counts.errors() > 0;
  return counts;
}

std::string error_line(const std::string& label, const ErrorCounts& counts) {
  return "%" + label + " " + percentage(counts.error_rate()) + " [ " + std::to_string(counts.errors()) +
         " / " + std::to_string(counts.reference_tokens()) + ", " + std::to_string(counts.insertions) +
         " ins, " + std::to_string(counts.deletions) + " del, " + std::to_string(counts.substitutions) +
         " sub ]";
}

std::string sentence_error_line(const ErrorCounts& counts) {
  return "%SER " + percentage(counts.sentence_error_rate()) + " [ " + std::to_string(counts.wrong_sentences) +
         " / " + std::to_string(counts.sentences) + " ]";
}

ErrorCounts ErrorTally::add(std::span<const std::string> reference, std::span<const std::string> hypothesis) {
  const auto alignment = align_tokens(reference, hypothesis, rule_);
  for (const auto& [edit, r, h] : alignment)
    ++confusions_[{r < 0 ? "" : reference[static_cast<size_t>(r)],
                   h < 0 ? "" : hypothesis[static_cast<size_t>(h)]}];
  const ErrorCounts counts = count_errors(alignment);
  counts_ += counts;
  return counts;
}

std::vector<Confusion> ErrorTally::confusions() const {
  std::vector<Confusion> all;
  for (const auto& [tokens, count] : confusions_) all.push_back({tokens.first, tokens.second, count});
  std::ranges::stable_sort(
      all, {}, [](const Confusion& one) { return std::pair(one.reference == one.hypothesis, -one.count); });
  return all;
}

std::string confusion_table(std::span<const Confusion> confusions) {
  const auto shown = [](const std::string& token) { return token.empty() ? "***" : token; };
  std::string table = "reference\thypothesis\tcount\n";
  for (const auto& [reference, hypothesis, count] : confusions)
    table += shown(reference) + "\t" + shown(hypothesis) + "\t" + std::to_string(count) + "\n";
  return table;
}

}  // namespace quatrain::scores
