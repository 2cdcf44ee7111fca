#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "data/text_pair_readers.h"

namespace quatrain::data {
namespace {

// "0.0" is as good as "0"; nothing else is a relevance.
std::optional<int64_t> relevance(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || (value != 0 && value != 1)) return {};
  return static_cast<int64_t>(value);
}

/// Four files of a set, line after line: question, answer, relevance, name.
class AnswerFiles {
 public:
  AnswerFiles(const TextPairFiles& files, size_t begin)
      : files_{LineFile(files[begin]), LineFile(files[begin + 1]), LineFile(files[begin + 2]),
               LineFile(files[begin + 3])} {}

  bool next() {
    size_t more = 0;
    for (size_t i = 0; i < files_.size(); ++i)
      if (std::string_view line; files_[i].next(line)) {
        lines_[i] = line;
        ++more;
      }
    if (more == 0) return false;
    if (more < files_.size()) refuse_lengths();
    return true;
  }
  const std::string& line(size_t i) const { return lines_[i]; }
  const LineFile& file(size_t i) const { return files_[i]; }

 private:
  [[noreturn]] void refuse_lengths() {
    std::string counts;
    for (LineFile& file : files_) {
      for (std::string_view line; file.next(line);) {
      }
      counts += (counts.empty() ? "" : ", ") + file.file().filename().string() + " " +
                std::to_string(file.number());
    }
    TORCH_CHECK(false, "data: the files of ", files_[0].file().parent_path().string(),
                " must have a line each for a pair, but have different numbers of lines (", counts,
                "); copy them again");
  }

  std::array<LineFile, 4> files_;
  std::array<std::string, 4> lines_;
};

enum Side : size_t { kQuestion, kAnswer, kRelevance, kName };

// `cut`: names are those of answers ("Q1-D1-0"), and what stands before the first hyphen is the question.
// Else they are the questions', and answers are named by their places.
void read_answers(const TextPairFiles& files, const TextPairReading& reading, bool cut) {
  TextPairSplits& splits = reading.splits;
  splits.labels = {"wrong", "right"};
  splits.group_name = "question";
  const std::pair<const char*, std::vector<TextPair>*> sets[] = {
      {"train", &splits.train}, {"dev", &splits.dev}, {"test", &splits.test}};
  for (size_t set = 0; set < std::size(sets); ++set) {
    AnswerFiles all(files, 4 * set);
    PairGate gate(reading.rule(sets[set].first));
    std::unordered_map<std::string, int64_t> questions;
    std::unordered_set<std::string> names;
    std::vector<int64_t> answers;
    while (all.next()) {
      bool good = true;
      for (const Side side : {kQuestion, kAnswer, kRelevance, kName})
        good =
            good && gate.fits(all.line(side), all.file(side)) && gate.is_text(all.line(side), all.file(side));
      if (!good || !gate.has_word(all.line(kQuestion), "question", all.file(kQuestion)) ||
          !gate.has_word(all.line(kAnswer), "answer", all.file(kAnswer)) ||
          !gate.has_text(all.line(kName), "name", all.file(kName)))
        continue;
      const auto right = relevance(trimmed(all.line(kRelevance)));
      if (!right) {
        gate.refuse("the relevance is not 0 or 1",
                    "the relevance must be 0 or 1, got " + quote(all.line(kRelevance)), all.file(kRelevance));
        continue;
      }
      const std::string name(trimmed(all.line(kName)));
      if (name.find('\t') != name.npos) {
        gate.refuse("the name has a tab", "the name must not have tabs, got " + quote(name), all.file(kName));
        continue;
      }
      if (cut && !names.insert(name).second) {
        gate.refuse("two answers have one name",
                    "the name must be that of one answer alone, got " + quote(name) + " again",
                    all.file(kName));
        continue;
      }
      const size_t hyphen = cut ? name.find('-') : name.npos;
      if (cut && (hyphen == name.npos || hyphen == 0)) {
        gate.refuse(
            "the name has no question",
            "the name must begin with the question's and a hyphen, as Q1-D1-0 does, got " + quote(name),
            all.file(kName));
        continue;
      }
      const std::string question = name.substr(0, hyphen);
      const auto [known, fresh] = questions.emplace(question, static_cast<int64_t>(questions.size()));
      if (fresh) answers.push_back(0);
      std::array<char, 32> place{};
      std::snprintf(place.data(), place.size(), "%06lld",
                    static_cast<long long>(answers[static_cast<size_t>(known->second)]++));
      sets[set].second->push_back({all.line(kQuestion), all.line(kAnswer), *right, known->second, question,
                                   cut ? name : place.data()});
    }
    require_pairs(*sets[set].second, files[4 * set]);
  }
}

}  // namespace

void read_wikiqa(const TextPairFiles& files, const TextPairReading& reading) {
  read_answers(files, reading, true);
}

void read_trecqa(const TextPairFiles& files, const TextPairReading& reading) {
  read_answers(files, reading, false);
}

}  // namespace quatrain::data
