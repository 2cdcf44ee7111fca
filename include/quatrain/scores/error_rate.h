#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quatrain/api.h"

/// Errors of recognised speech: words, characters or phones, whatever the tokens are.
namespace quatrain::scores {

/// What happened to a token on the way from the reference to the hypothesis.
enum class Edit : uint8_t { hit, substitution, deletion, insertion };

/// One step of an alignment.
struct QUATRAIN_API AlignedTokens {
  Edit edit = Edit::hit;
  int64_t reference = -1;   ///< place in the reference; -1 of an insertion
  int64_t hypothesis = -1;  ///< place in the hypothesis; -1 of a deletion
  bool operator==(const AlignedTokens&) const = default;
};

/// Which of all alignments is taken.
enum class AlignmentRule : uint8_t {
  /// One with as few edits as possible, which is what error rates are defined by. Of several it is the one
  /// whose numbers Kaldi's compute-wer prints: going back from the end, an insertion is taken before a
  /// deletion, and that before a hit or a substitution.
  fewest_edits,
  /// The one of NIST's sclite: a substitution costs 4, a deletion or insertion 3, which favours hits, so that
  /// the sum of edits may be larger than the smallest one. Of several, going back from the end, a hit or a
  /// substitution is taken before an insertion, and that before a deletion.
  sclite,
};
/// "fewest_edits", "sclite".
QUATRAIN_API const char* name(AlignmentRule rule);
/// The inverse; an unknown name is a std::invalid_argument that lists the known ones.
QUATRAIN_API AlignmentRule parse_alignment_rule(std::string_view name);

/// Aligns two sequences of tokens, either of which may be empty. The steps are in the order of both. Takes a
/// byte of memory for each pair of tokens.
QUATRAIN_API std::vector<AlignedTokens> align_tokens(std::span<const std::string> reference,
                                                     std::span<const std::string> hypothesis,
                                                     AlignmentRule rule = AlignmentRule::fewest_edits);

/// How many tokens were right and wrong, and in how many sentences; sums over sentences.
struct QUATRAIN_API ErrorCounts {
  int64_t hits = 0;
  int64_t substitutions = 0;
  int64_t deletions = 0;
  int64_t insertions = 0;
  int64_t sentences = 0;
  int64_t wrong_sentences = 0;  ///< with one edit or more

  int64_t errors() const { return substitutions + deletions + insertions; }
  int64_t reference_tokens() const { return hits + substitutions + deletions; }
  /// Errors for each token of the references. 0 where there are neither, infinite where there are errors and
  /// no token.
  double error_rate() const;
  /// The share of wrong sentences; 0 of none.
  double sentence_error_rate() const;

  ErrorCounts& operator+=(const ErrorCounts& other);
  bool operator==(const ErrorCounts&) const = default;
};

/// The counts of one sentence.
QUATRAIN_API ErrorCounts count_errors(std::span<const AlignedTokens> alignment);

/// The counts in one line, as Kaldi's compute-wer writes it: "%WER 15.10 [ 90 / 596, 10 ins, 30 del, 50 sub
/// ]". The label says what the tokens are: WER, CER, PER.
QUATRAIN_API std::string error_line(const std::string& label, const ErrorCounts& counts);
/// The same for sentences: "%SER 12.50 [ 1 / 8 ]".
QUATRAIN_API std::string sentence_error_line(const ErrorCounts& counts);

/// What was taken for what, or for itself, and how often. An insertion has no reference, a deletion no
/// hypothesis.
struct QUATRAIN_API Confusion {
  std::string reference, hypothesis;
  int64_t count = 0;
  bool operator==(const Confusion&) const = default;
};

/// The errors and hits of a whole test set.
class QUATRAIN_API ErrorTally {
 public:
  explicit ErrorTally(AlignmentRule rule = AlignmentRule::fewest_edits) : rule_(rule) {}

  /// Aligns a sentence and adds its edits. The counts of this sentence are returned.
  ErrorCounts add(std::span<const std::string> reference, std::span<const std::string> hypothesis);

  const ErrorCounts& counts() const { return counts_; }
  /// Every edit, the most frequent first, equally frequent ones in the order of their bytes; and then the
  /// tokens that were right, in the same order.
  std::vector<Confusion> confusions() const;

 private:
  AlignmentRule rule_;
  ErrorCounts counts_;
  std::map<std::pair<std::string, std::string>, int64_t> confusions_;
};

/// Confusions as a file of lines, reference, tab, hypothesis, tab, count, under a line of those three names;
/// *** stands where there is no token, as sclite writes it.
QUATRAIN_API std::string confusion_table(std::span<const Confusion> confusions);

}  // namespace quatrain::scores
