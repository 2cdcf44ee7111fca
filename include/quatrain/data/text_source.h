#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/bad_examples.h"
#include "quatrain/data/dataset.h"
#include "quatrain/data/line_pairs.h"
#include "quatrain/data/pieces.h"
#include "quatrain/data/sequence_store.h"

namespace quatrain::data {

/// Where the text of a language model comes from: train.txt, dev.txt (or valid.txt), test.txt, plain or .gz.
struct QUATRAIN_API TextSource {
  std::string reader = "text";   ///< a name among text_readers()
  std::filesystem::path folder;  ///< where the files lie
  std::string only = "";         ///< the one set that must be there; empty: train
  bool skip_bad = false;         ///< bad lines are counted and left out; else the first one is an error
};

/// Lines read one after another, in bounded memory. Errors are c10::Error: a line that is not UTF-8, has NUL
/// bytes or no space in more than about half a MiB, a damaged .gz file, an empty file.
class QUATRAIN_API LineReader {
 public:
  virtual ~LineReader();
  /// Reads the next line, without its end; false at the end. A line of more than half a MiB is read in
  /// several parts, which end with a space.
  virtual bool next(std::string& line) = 0;
  /// True where the last line was such a part, and the next one follows in it.
  virtual bool goes_on() const = 0;
  /// Where the last line came from, for messages: "train.txt:17".
  virtual std::string place() const = 0;
};

/// An opened source: which sets there are. Each can be read again and again.
class QUATRAIN_API TextCorpus {
 public:
  virtual ~TextCorpus();
  /// "train", "dev" and "test" are asked for; every corpus has "train", but for one that reads another set
  /// alone (TextSource::only).
  virtual bool has(std::string_view split) const = 0;
  /// A split that is not there is an error.
  virtual std::unique_ptr<LineReader> open(std::string_view split) const = 0;
  /// The files that a split is read from.
  virtual std::vector<std::filesystem::path> files(std::string_view split) const = 0;
  TextForm text() const { return text_; }
  /// Of the sets that have been read, the lines that were left out.
  const BadExamples& bad() const { return *bad_; }

 protected:
  explicit TextCorpus(TextForm text) : text_(text), bad_(std::make_shared<BadExamples>()) {}
  /// Where the lines of a set that are left out are counted, from none on.
  std::shared_ptr<BadExamples> count_anew(std::string_view split) const;

 private:
  TextForm text_;
  std::shared_ptr<BadExamples> bad_;
};

/// text, wikitext2.
QUATRAIN_API const std::vector<Reader>& text_readers();

/// Finds the files, but reads none of them. What is missing is one sentence (c10::Error).
QUATRAIN_API std::unique_ptr<TextCorpus> open_text(const TextSource& source);

/// The whole text as one sequence. Lines without pieces give nothing; `mark_ends` puts kEnd behind each other
/// line, and `ends` becomes their number. A text without any piece is an error.
QUATRAIN_API TokenStore encode_text(LineReader& reader, const Pieces& pieces, bool mark_ends,
                                    int64_t* ends = nullptr);

}  // namespace quatrain::data
