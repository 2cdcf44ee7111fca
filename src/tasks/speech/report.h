#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quatrain/data/speech_corpus.h"
#include "quatrain/scores/error_rate.h"
#include "quatrain/scores/transcripts.h"
#include "tasks/speech/decoder.h"

namespace quatrain::tasks {

/// Names as a .trn file can hold them, different ones for different names.
class PlainNames {
 public:
  /// Without `hyphens` they are replaced, too: the first one ends a speaker's name.
  std::string of(const std::string& name, bool hyphens);

 private:
  std::map<std::pair<std::string, bool>, std::string> known_;
  std::set<std::string> taken_;
};

/// What was recognised of a set, beside what was said.
class QUATRAIN_API SpeechReport {
 public:
  explicit SpeechReport(const SpeechTaskOptions& options)
      : options_(options), tally_(options.decode.alignment) {}

  /// Returns the errors of this utterance.
  scores::ErrorCounts add(const data::Utterance& utterance, const std::vector<std::string>& reference,
                          const std::vector<HeardToken>& heard);
  const scores::ErrorCounts& counts() const { return tally_.counts(); }

  /// The error rates as Kaldi prints them: of the tokens, of characters also of their words, of sentences.
  std::vector<std::string> lines() const;
  /// SPLIT.ref.trn, SPLIT.hyp.trn, SPLIT.ctm, SPLIT.errors.txt and SPLIT.confusions.tsv.
  std::map<std::string, std::string> files(const std::string& split) const;

 private:
  const SpeechTaskOptions& options_;
  scores::ErrorTally tally_;
  scores::ErrorCounts words_;  // of characters
  std::map<std::string, scores::ErrorCounts> speakers_;
  std::string references_, hypotheses_;
  PlainNames speaker_names_, names_, recordings_;
  std::vector<scores::TimedToken> times_;
};

}  // namespace quatrain::tasks
