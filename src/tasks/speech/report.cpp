#include "tasks/speech/report.h"

#include <algorithm>
#include <tuple>

#include "quatrain/data/tokenizer.h"
#include "support/text.h"

namespace quatrain::tasks {
namespace {

// What an error rate of such tokens is called.
const char* label_of(const SpeechTaskOptions& options) {
  if (options.objective == Objective::utterance) return "LER";
  if (options.objective == Objective::frames || options.units == Units::phones) return "PER";
  return options.units == Units::characters ? "CER" : "WER";
}

// Tokens as a .trn file can hold them: a line that begins with ;; would be a comment.
std::vector<std::string> plain(std::vector<std::string> tokens) {
  if (!tokens.empty() && tokens.front().starts_with(";;")) tokens.front().replace(0, 2, "__");
  return tokens;
}

std::vector<std::string> words_of(const SpeechTaskOptions& options, const std::vector<std::string>& tokens) {
  return data::split(text_of(options, tokens), data::Tokenizer::whitespace);
}

}  // namespace

std::string PlainNames::of(const std::string& name, bool hyphens) {
  std::string& found = known_[{name, hyphens}];
  if (!found.empty() || name.empty()) return found;
  std::string plain = name;
  for (char& c : plain)
    if (is_space(c) || c == '(' || c == ')' || (!hyphens && c == '-')) c = '_';
  found = plain;
  for (int number = 2; !taken_.insert(found).second; ++number) found = plain + "_" + std::to_string(number);
  return found;
}

scores::ErrorCounts SpeechReport::add(const data::Utterance& utterance,
                                      const std::vector<std::string>& reference,
                                      const std::vector<HeardToken>& heard) {
  const std::vector<std::string> hypothesis = texts_of(heard);
  const auto counts = tally_.add(reference, hypothesis);
  speakers_[utterance.speaker] += counts;
  const auto said = words_of(options_, reference), recognised = words_of(options_, hypothesis);
  words_ += scores::count_errors(scores::align_tokens(said, recognised, options_.decode.alignment));
  const std::string speaker = speaker_names_.of(utterance.speaker, false),
                    id = names_.of(utterance.id, !speaker.empty());
  references_ += scores::trn_line({plain(said), speaker, id}) + "\n";
  hypotheses_ += scores::trn_line({plain(recognised), speaker, id}) + "\n";
  // A .ctm tells the times of recordings, not of their segments.
  const bool part = !utterance.recording.empty();
  const std::string recording = part ? recordings_.of(utterance.recording, true) : id;
  const double begin = part ? static_cast<double>(utterance.begin) / static_cast<double>(utterance.rate) : 0;
  for (const auto& token : timed_of(options_, heard)) {
    // The last row may end behind the utterance. Of stored features only the rows are known.
    const auto seconds = [&](int64_t row) {
      const double time = static_cast<double>(row) * options_.row_seconds();
      return utterance.rate > 0 ? std::min(time, utterance.seconds()) : time;
    };
    for (const auto& word : data::split(token.text, data::Tokenizer::whitespace))
      times_.push_back({.recording = recording,
                        .channel = std::to_string(utterance.channel.value_or(0) + 1),
                        .begin = begin + seconds(token.begin),
                        .duration = seconds(token.end) - seconds(token.begin),
                        .token = word,
                        .confidence = std::clamp(token.confidence, 0.0, 1.0)});
  }
  return counts;
}

std::vector<std::string> SpeechReport::lines() const {
  std::vector<std::string> all{scores::error_line(label_of(options_), counts())};
  if (options_.of_characters()) all.push_back(scores::error_line("WER", words_));
  all.push_back(scores::sentence_error_line(counts()));
  return all;
}

std::map<std::string, std::string> SpeechReport::files(const std::string& split) const {
  std::string errors;
  for (const auto& line : lines()) errors += line + "\n";
  if (speakers_.size() > 1)
    for (const auto& [speaker, of_speaker] : speakers_)
      errors += speaker + " " + scores::error_line(label_of(options_), of_speaker) + "\n";
  auto tokens = times_;  // in the order that sclite wants
  std::ranges::stable_sort(tokens, {}, [](const scores::TimedToken& token) {
    return std::tie(token.recording, token.channel, token.begin);
  });
  std::string times;
  for (const auto& token : tokens) times += scores::ctm_line(token) + "\n";
  return {{split + ".ref.trn", references_},
          {split + ".hyp.trn", hypotheses_},
          {split + ".ctm", times},
          {split + ".errors.txt", errors},
          {split + ".confusions.tsv", scores::confusion_table(tally_.confusions())}};
}

}  // namespace quatrain::tasks
