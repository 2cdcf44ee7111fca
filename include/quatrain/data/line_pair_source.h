#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/bad_examples.h"
#include "quatrain/data/dataset.h"
#include "quatrain/data/line_pairs.h"
#include "quatrain/data/math_language.h"
#include "quatrain/data/reverse_language.h"

namespace quatrain::data {

/// Where pairs of lines come from.
struct QUATRAIN_API LinePairSource {
  std::string reader = "math";   ///< a name among line_pair_readers()
  std::filesystem::path folder;  ///< where the files lie; not used by generated ones
  std::string source, target;    ///< endings of the files ("de", "en"); empty: the reader's own
  std::optional<TextForm> text;  ///< instead of the reader's own
  std::string only = "";         ///< the one set that must be there; empty: train
  bool skip_bad = false;         ///< false: the first bad pair is an error. true: it is left out and counted
  MathOptions math;              ///< of "math" alone
  ReverseOptions reverse;        ///< of "reverse" alone
};

/// An opened source: which sets there are. Each can be read again and again, also by several readers at once
/// in one thread.
class QUATRAIN_API LinePairCorpus {
 public:
  virtual ~LinePairCorpus();
  /// "train", "dev" and "test" are asked for; every corpus has LinePairSource::only.
  virtual bool has(std::string_view split) const = 0;
  /// A split that is not there is an error.
  virtual std::unique_ptr<LinePairReader> open(std::string_view split) const = 0;
  /// The files that a split is read from; none where it is generated.
  virtual std::vector<std::filesystem::path> files(std::string_view split) const = 0;
  /// Names of whole sets in the same folder that no split is read from ("newstest2014"), sorted.
  virtual std::vector<std::string> unread() const { return {}; }

  TextForm text() const { return text_; }
  /// The names of LinePair::group; empty where there are none.
  const std::vector<std::string>& groups() const { return groups_; }
  /// What was left out so far.
  const BadExamples& bad() const { return *bad_; }

 protected:
  LinePairCorpus(TextForm text, std::vector<std::string> groups);
  /// Forgets what was counted for a split that is read again; readers add to what is returned.
  std::shared_ptr<BadExamples> count_anew(std::string_view split) const;

 private:
  TextForm text_;
  std::vector<std::string> groups_;
  std::shared_ptr<BadExamples> bad_;
};

/// math, reverse, parallel, tsv, multi30k, enja, shakespeare.
QUATRAIN_API const std::vector<Reader>& line_pair_readers();

/// Finds the files, but reads none of them. A missing file, an ending that is not there: one sentence
/// (c10::Error). The readers then say what is wrong within the files, with file and line:
///   - two files with different numbers of lines, a damaged .gz file: always an error
///   - an empty side, text that is not UTF-8 or has NUL bytes, other than two columns: an error, or left out
///     and counted where skip_bad says so
///   - a line of more than 1 MiB: left out and counted
QUATRAIN_API std::unique_ptr<LinePairCorpus> open_line_pairs(const LinePairSource& source);

}  // namespace quatrain::data
