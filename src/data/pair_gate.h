#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "data/line_file.h"
#include "data/text_file.h"
#include "quatrain/data/bad_examples.h"
#include "quatrain/data/tokenizer.h"
#include "support/text.h"

namespace quatrain::data {

/// What becomes of bad pairs of a set, or of bad lines.
struct BadPairRule {
  std::shared_ptr<BadExamples> counted;
  std::string set;
  bool skip = false;  ///< false: an error
  Tokenizer tokenizer = Tokenizer::whitespace;
  const char* what = "pairs";
};

/// Refuses pairs, of lines or of texts, or single lines, or counts them.
class PairGate {
 public:
  explicit PairGate(BadPairRule rule) : rule_(std::move(rule)) {}

  bool fits(std::string_view line, const LineFile& file) {
    if (line.size() <= kLongestLine) return true;
    return refuse("a line has more than 1 MiB", "a line must have at most 1 MiB (1,048,576 bytes)", file);
  }
  bool is_text(std::string_view line, const LineFile& file) {
    const std::string problem = line_problem(line);
    if (problem.empty()) return true;
    return refuse(line.find('\0') != line.npos ? "a line has NUL bytes" : "a line is not UTF-8", problem,
                  file);
  }
  bool has_text(std::string_view side, const char* which, const LineFile& file) {
    if (!is_blank(side)) return true;
    return refuse("the " + std::string(which) + " is empty",
                  "the " + std::string(which) + " must not be empty", file);
  }
  /// As has_text, of a side that becomes words.
  bool has_word(std::string_view side, const char* which, const LineFile& file) {
    if (!has_text(side, which, file)) return false;
    const std::string problem = word_problem(side, rule_.tokenizer);
    if (problem.empty()) return true;
    return refuse("the " + std::string(which) + " has no word", "the " + std::string(which) + " " + problem,
                  file);
  }
  bool refuse(const std::string& reason, const std::string& problem, const LineFile& file) {
    TORCH_CHECK(rule_.skip, file.place(), ": ", problem, "; skip_bad leaves such ", rule_.what, " out");
    rule_.counted->add(rule_.set, reason, file.place());
    return false;
  }

 private:
  BadPairRule rule_;
};

}  // namespace quatrain::data
