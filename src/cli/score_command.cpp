#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_file.h"
#include "cli/lines.h"
#include "cli/score.h"
#include "data/line_file.h"
#include "quatrain/scores/bleu.h"
#include "quatrain/scores/chrf.h"
#include "support/text.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void keep(std::string line, const std::string& place, std::vector<std::string>& lines) {
  if (const std::string problem = line_problem(line); !problem.empty())
    throw std::runtime_error(place + ":" + std::to_string(lines.size() + 1) + ": " + problem);
  lines.push_back(std::move(line));
}

std::vector<std::string> files_of(const ScoreArguments& arguments) {
  std::vector<std::string> files = arguments.references;
  files.push_back(arguments.hypotheses);
  return files;
}

void refuse_outputs_that_are_read(const ScoreArguments& arguments) {
  for (const auto& [option, out] :
       {std::pair("--json", arguments.json), {"--confusions", arguments.confusions}})
    for (const auto& file : files_of(arguments))
      if (std::error_code none; !out.empty() && fs::equivalent(out, file, none))
        throw UsageError(std::string("score: ") + option + " would write over " + file +
                         ", which is scored: choose another file");
}

std::string joined(const std::array<double, scores::BleuCounts::kOrders>& precisions) {
  std::string all;
  for (const double precision : precisions) all += (all.empty() ? "" : "/") + fixed(precision, 1);
  return all;
}

}  // namespace

bool is_trn(const std::string& file) {
  return fs::path(file).extension() == ".trn";
}

std::vector<std::string> scored_lines(const std::string& file) {
  std::vector<std::string> lines;
  if (file == "-") {
    constexpr size_t kPortion = 4096;
    LineInput reader(STDIN_FILENO, kLongestLine);
    for (auto more = reader.next(kPortion); !more.empty(); more = reader.next(kPortion))
      for (std::string& line : more) keep(std::move(line), "standard input", lines);
    return lines;
  }
  try {
    open_file(file);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error("score: " + file + " cannot be read: " + error.what());
  }
  if (fs::is_regular_file(file) && fs::file_size(file) == 0) return lines;
  data::LineFile reader(file);
  for (std::string_view line; reader.next(line);) keep(std::string(line), file, lines);
  return lines;
}

void require_as_many(size_t hypotheses, size_t references, const ScoreArguments& arguments, size_t of) {
  const std::string& file = arguments.references[of];
  if (hypotheses != references)
    throw std::runtime_error("score: all files must have the same number of lines, got " +
                             std::to_string(hypotheses) + " in " + arguments.hypotheses + " and " +
                             std::to_string(references) + " in " + file);
  if (references == 0) throw std::runtime_error("score: " + file + " is empty: there is nothing to score");
}

int score_command(const ScoreArguments& arguments) {
  check_output(arguments.json);
  for (const auto& file : arguments.references)
    if (file == "-")
      throw UsageError("score: REFERENCES must be a file; only HYPOTHESES may be the standard input, -");
  refuse_outputs_that_are_read(arguments);
  if (arguments.metric != "bleu") return score_errors(arguments);
  if (arguments.alignment || !arguments.confusions.empty())
    throw UsageError("score: --alignment and --confusions are of --metric wer and cer, got bleu");
  for (const auto& file : files_of(arguments))
    if (is_trn(file))
      throw UsageError("score: " + file +
                       " has transcripts, whose names BLEU would count as words: add --metric wer or cer");
  const auto tokenizer = scores::parse_bleu_tokenizer(arguments.tokenize.value_or("13a"));
  std::vector<std::vector<std::string>> references;
  for (const auto& file : arguments.references) references.push_back(scored_lines(file));
  const auto hypotheses = scored_lines(arguments.hypotheses);
  for (size_t r = 0; r < references.size(); ++r)
    require_as_many(hypotheses.size(), references[r].size(), arguments, r);
  scores::BleuCounts words;
  scores::ChrfCounts characters;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::string_view> of_line;
    for (const auto& lines : references) of_line.push_back(lines[i]);
    words += scores::bleu_counts(hypotheses[i], of_line, tokenizer);
    characters += scores::chrf_counts(hypotheses[i], of_line);
  }
  const double bleu = scores::bleu(words), chrf = scores::chrf(characters);
  const double penalty = scores::brevity_penalty(words);
  const auto precisions = scores::bleu_precisions(words);
  const std::string bleu_signature = scores::bleu_signature(tokenizer, references.size()),
                    chrf_signature = scores::chrf_signature(references.size());
  if (!arguments.json.empty())
    write_json({{"lines", hypotheses.size()},
                {"bleu",
                 {{"score", bleu},
                  {"precisions", precisions},
                  {"brevity_penalty", penalty},
                  {"hypothesis_length", words.hypothesis_length},
                  {"reference_length", words.reference_length},
                  {"signature", bleu_signature}}},
                {"chrf", {{"score", chrf}, {"signature", chrf_signature}}}},
               arguments.json);
  if (arguments.json == "-") return kSuccess;
  Table table("lrl");
  table.row({"BLEU", fixed(bleu, 2), bleu_signature});
  table.row({"", "",
             joined(precisions) + ", brevity penalty " + fixed(penalty, 3) + " (" +
                 counted(words.hypothesis_length, "word") + " for " + grouped(words.reference_length) + ")"});
  table.row({"chrF2", fixed(chrf, 2), chrf_signature});
  std::fputs(table.text().c_str(), stdout);
  return kSuccess;
}

}  // namespace quatrain::cli
