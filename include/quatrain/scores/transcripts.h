#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

/// Recognised texts in NIST's forms, which sclite and other scoring programs read.
namespace quatrain::scores {

/// What was said in an utterance.
struct QUATRAIN_API Transcript {
  std::vector<std::string> tokens;
  std::string speaker;    ///< without "-", which ends it in a file; may be empty
  std::string utterance;  ///< of this speaker
  /// As a file .trn has it: "speaker-utterance", or "utterance" of no speaker.
  std::string name() const { return speaker.empty() ? utterance : speaker + "-" + utterance; }
  bool operator==(const Transcript&) const = default;
};

/// A line of a file .trn, without its end: "words (speaker-utterance)", or "words (utterance)" of no speaker.
/// What could not be read back is a std::invalid_argument: an empty utterance or token, white space or a
/// bracket in a name, a "-" in the speaker, white space in a token, a first token that begins with ";;".
QUATRAIN_API std::string trn_line(const Transcript& transcript);
/// The inverse: the words before the last pair of brackets; the first "-" in these ends the speaker. A line
/// that does not end in a name in brackets is a std::invalid_argument.
QUATRAIN_API Transcript parse_trn_line(std::string_view line);

/// Writes ref.trn or hyp.trn. Errors are those of trn_line, or a std::runtime_error that names the file;
/// nothing is left half-written.
QUATRAIN_API void write_trn(const std::filesystem::path& file, std::span<const Transcript> transcripts);
/// Reads one; empty lines, and lines that begin with ";;", are skipped. Errors are std::invalid_argument and
/// name the file and the line.
QUATRAIN_API std::vector<Transcript> read_trn(const std::filesystem::path& file);

/// A recognised word and its time.
struct QUATRAIN_API TimedToken {
  std::string recording;
  std::string channel = "1";
  double begin = 0;     ///< seconds
  double duration = 0;  ///< seconds
  std::string token;
  std::optional<double> confidence;  ///< from 0 to 1
};

/// A line of a file .ctm, without its end: "recording channel begin duration word [confidence]", times with
/// three digits after the point and a confidence with two. Fields that are empty or hold white space, times
/// that are negative or not finite and confidences outside 0 to 1 are a std::invalid_argument.
QUATRAIN_API std::string ctm_line(const TimedToken& token);

}  // namespace quatrain::scores
