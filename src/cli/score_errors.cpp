#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/json_file.h"
#include "cli/score.h"
#include "quatrain/data/tokenizer.h"
#include "quatrain/scores/error_rate.h"
#include "quatrain/scores/transcripts.h"
#include "support/atomic_file.h"
#include "support/characters.h"
#include "support/numbers.h"

namespace quatrain::cli {
namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<std::string>;

struct Pair {
  std::string place;  // for messages
  Tokens reference, hypothesis;
};

constexpr size_t kMostPairs = size_t{1} << 30;  // of tokens: an alignment takes a byte for each

// The space between words is one, as where runs of characters are scored.
Tokens characters_of(const Tokens& words) {
  Tokens all;
  for (const auto& word : words) {
    if (!all.empty()) all.emplace_back("<space>");
    for (const auto& character : characters(word, "score")) all.emplace_back(character.bytes);
  }
  return all;
}

std::map<std::string, Tokens> by_name(const std::string& file) {
  std::map<std::string, Tokens> all;
  for (auto& transcript : scores::read_trn(file)) {
    const std::string name = transcript.name();
    if (!all.emplace(name, std::move(transcript.tokens)).second)
      throw std::runtime_error("score: each utterance must have one line, but " + file + " has two of (" +
                               name + ")");
  }
  return all;
}

// Of utterances, in the order of their names.
std::vector<Pair> pairs_of_trn(const std::string& hypotheses, const std::string& references) {
  auto said = by_name(references), heard = by_name(hypotheses);
  const auto require_all = [](const auto& these, const auto& those, const std::string& of_these,
                              const std::string& of_those) {
    for (const auto& [name, tokens] : these)
      if (!those.contains(name))
        throw std::runtime_error("score: both files must have the same utterances, but (" + name +
                                 ") is in " + of_these + " and not in " + of_those);
  };
  require_all(said, heard, references, hypotheses);
  require_all(heard, said, hypotheses, references);
  if (said.empty())
    throw std::runtime_error("score: " + references + " has no utterance: there is nothing to score");
  std::vector<Pair> pairs;
  for (auto& [name, tokens] : said)
    pairs.push_back({"(" + name + ")", std::move(tokens), std::move(heard.at(name))});
  return pairs;
}

std::vector<Pair> pairs_of_lines(const ScoreArguments& arguments) {
  const auto references = scored_lines(arguments.references[0]),
             hypotheses = scored_lines(arguments.hypotheses);
  require_as_many(hypotheses.size(), references.size(), arguments, 0);
  const auto words = [](const std::string& line) { return data::split(line, data::Tokenizer::whitespace); };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < references.size(); ++i)
    pairs.push_back({"line " + std::to_string(i + 1), words(references[i]), words(hypotheses[i])});
  return pairs;
}

std::vector<Pair> pairs_of(const ScoreArguments& arguments) {
  const std::string &hypotheses = arguments.hypotheses, &references = arguments.references[0];
  if (is_trn(hypotheses) != is_trn(references))
    throw UsageError("score: both files must be .trn or neither, got " + hypotheses + " and " + references +
                     (hypotheses == "-" ? " (the standard input has lines)" : ""));
  return is_trn(hypotheses) ? pairs_of_trn(hypotheses, references) : pairs_of_lines(arguments);
}

Json json_of(const std::string& label, const scores::ErrorCounts& counts) {
  // Infinite where there are errors and no token, which JSON does not have.
  const double rate = counts.error_rate();
  return {{label, std::isfinite(rate) ? Json(rate) : Json()},
          {"sentence_error_rate", counts.sentence_error_rate()},
          {"hits", counts.hits},
          {"substitutions", counts.substitutions},
          {"deletions", counts.deletions},
          {"insertions", counts.insertions},
          {"sentences", counts.sentences},
          {"wrong_sentences", counts.wrong_sentences}};
}

}  // namespace

int score_errors(const ScoreArguments& arguments) {
  if (arguments.references.size() > 1)
    throw UsageError("score: --metric " + arguments.metric + " takes one file of references, got " +
                     std::to_string(arguments.references.size()));
  if (arguments.tokenize) throw UsageError("score: --tokenize is of --metric bleu, got " + arguments.metric);
  check_output(arguments.confusions);
  const bool of_words = arguments.metric == "wer";
  scores::ErrorTally tally(scores::parse_alignment_rule(arguments.alignment.value_or("fewest_edits")));
  for (auto& [place, reference, hypothesis] : pairs_of(arguments)) {
    if (!of_words) reference = characters_of(reference), hypothesis = characters_of(hypothesis);
    if ((reference.size() + 1) * (hypothesis.size() + 1) > kMostPairs)
      throw std::runtime_error("score: " + place + " is too long to align, with " +
                               grouped(static_cast<int64_t>(reference.size())) + " and " +
                               grouped(static_cast<int64_t>(hypothesis.size())) +
                               (of_words ? " words" : " characters") + "; cut it in both files");
    tally.add(reference, hypothesis);
  }
  if (!arguments.confusions.empty())
    write_text(arguments.confusions, scores::confusion_table(tally.confusions()));
  if (!arguments.json.empty()) write_json(json_of(arguments.metric, tally.counts()), arguments.json);
  if (arguments.json == "-") return kSuccess;
  std::printf("%s\n%s\n", scores::error_line(of_words ? "WER" : "CER", tally.counts()).c_str(),
              scores::sentence_error_line(tally.counts()).c_str());
  return kSuccess;
}

}  // namespace quatrain::cli
