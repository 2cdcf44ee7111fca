#include "quatrain/scores/transcripts.h"

#include <cmath>
#include <stdexcept>

#include "support/atomic_file.h"
#include "support/numbers.h"
#include "support/text.h"

namespace quatrain::scores {
namespace {

constexpr std::string_view kComment = ";;";

void check_field(const char* format, const char* what, const std::string& text,
                 const std::string& forbidden) {
  if (text.empty()) throw std::invalid_argument(std::string(format) + ": the " + what + " must not be empty");
  if (text.find_first_of(std::string(kSpace) + forbidden) == text.npos) return;
  std::string marks;
  for (const char mark : forbidden) marks += std::string(" or '") + mark + "'";
  throw std::invalid_argument(std::string(format) + ": the " + what + " must not contain white space" +
                              marks + ", got " + quote(text));
}

}  // namespace

std::string trn_line(const Transcript& transcript) {
  std::string line;
  for (const auto& token : transcript.tokens) {
    check_field("trn", "token", token, "");
    if (line.empty() && token.starts_with(kComment))
      throw std::invalid_argument("trn: the first token must not begin with ;; which marks a comment, got " +
                                  quote(token));
    line += token + " ";
  }
  if (!transcript.speaker.empty()) check_field("trn", "speaker", transcript.speaker, "()-");
  check_field("trn", "utterance", transcript.utterance, transcript.speaker.empty() ? "()-" : "()");
  return line + "(" + transcript.name() + ")";
}

Transcript parse_trn_line(std::string_view line) {
  const auto refuse = [&] {
    throw std::invalid_argument("a line of a .trn file must end in (speaker-utterance), got " + quote(line));
  };
  const size_t end = line.find_last_not_of(kSpace);
  if (end == line.npos || line[end] != ')') refuse();
  const size_t begin = line.rfind('(', end);
  if (begin == line.npos) refuse();
  const std::string_view name = line.substr(begin + 1, end - begin - 1);
  if (name.empty() || name.find_first_of(kSpace) != name.npos) refuse();

  Transcript transcript;
  const size_t dash = name.find('-');
  if (dash != name.npos) transcript.speaker = name.substr(0, dash);
  transcript.utterance = name.substr(dash == name.npos ? 0 : dash + 1);
  if (transcript.utterance.empty()) refuse();
  for (std::string_view rest = line.substr(0, begin);;) {
    const size_t first = rest.find_first_not_of(kSpace);
    if (first == rest.npos) return transcript;
    rest.remove_prefix(first);
    const size_t length = std::min(rest.find_first_of(kSpace), rest.size());
    transcript.tokens.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
}

void write_trn(const std::filesystem::path& file, std::span<const Transcript> transcripts) {
  std::string text;
  for (const auto& transcript : transcripts) text += trn_line(transcript) + "\n";
  write_text(file, text);
}

std::vector<Transcript> read_trn(const std::filesystem::path& file) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  std::string text;
  try {
    text = read_file(file, kMostBytes);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("trn: " + file.string() + " cannot be read: " + error.what());
  }
  std::vector<Transcript> transcripts;
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(kSpace) == line.npos || line.starts_with(kComment)) continue;
    try {
      const std::string problem = line_problem(line);
      if (!problem.empty()) throw std::invalid_argument(problem);
      transcripts.push_back(parse_trn_line(line));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(file.string() + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return transcripts;
}

std::string ctm_line(const TimedToken& token) {
  check_field("ctm", "recording", token.recording, "");
  check_field("ctm", "channel", token.channel, "");
  check_field("ctm", "token", token.token, "");
  for (const auto& [what, time] : {std::pair{"begin", token.begin}, {"duration", token.duration}})
    if (!(time >= 0) || !std::isfinite(time))
      throw std::invalid_argument(std::string("ctm: the ") + what + " must be seconds of at least 0, got " +
                                  short_number(time));
  std::string line = token.recording + " " + token.channel + " " + fixed(token.begin, 3) + " " +
                     fixed(token.duration, 3) + " " + token.token;
  if (!token.confidence) return line;
  if (!(*token.confidence >= 0 && *token.confidence <= 1))
    throw std::invalid_argument("ctm: the confidence must be from 0 to 1, got " +
                                short_number(*token.confidence));
  return line + " " + fixed(*token.confidence, 2);
}

}  // namespace quatrain::scores
