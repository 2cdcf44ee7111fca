#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// A line and what it is to become: a sentence and its translation, a question and its answer.
struct QUATRAIN_API LinePair {
  std::string source, target;
  int64_t group = -1;  ///< what results are broken down by, a place in LinePairSplits::groups, or -1
  bool operator==(const LinePair&) const = default;
};

/// A dataset of pairs. The dev set selects; the test set is scored once.
struct QUATRAIN_API LinePairSplits {
  std::vector<LinePair> train, dev, test;
  std::vector<std::string> groups;  ///< their names; empty where there are none
};

/// What the lines of a set are, which decides how answers are compared with them.
///   raw        text as people write it
///   tokenised  words and marks that stand between spaces: compared as they stand
///   bpe        tokenised, and words cut into pieces that end in @@ where the word goes on
enum class TextForm { raw, tokenised, bpe };
/// All of them, for lists and messages.
inline constexpr std::array kTextForms{TextForm::raw, TextForm::tokenised, TextForm::bpe};
QUATRAIN_API const char* name(TextForm form);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API TextForm parse_text_form(std::string_view name);
/// The text with its words put together again where they were cut into pieces (bpe); else the same.
QUATRAIN_API std::string whole_words(std::string text, TextForm form);

/// Pairs read one after another, in bounded memory. Errors are c10::Error.
class QUATRAIN_API LinePairReader {
 public:
  virtual ~LinePairReader();
  /// Reads the next pair; false at the end.
  virtual bool next(LinePair& pair) = 0;
  /// Where the last pair came from, for messages: "train.de:17".
  virtual std::string place() const = 0;
};

}  // namespace quatrain::data
