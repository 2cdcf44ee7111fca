#include "data/readers.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace {

/// True where the first form is the third person singular of the second.
bool is_singular_of(const std::string& form, const std::string& other) {
  if (form == "is") return other == "are";
  if (form == "was") return other == "were";
  if (form == "has") return other == "have";
  if (form == other + "s" || form == other + "es") return true;
  return other.ends_with('y') && form == other.substr(0, other.size() - 1) + "ies";
}

std::string lowered_word(std::string_view word) {
  const auto words = split(word, Tokenizer::lowercase);
  return words.empty() ? "" : words[0];
}

}  // namespace

Splits read_sva(const Source& source) {
  const std::string text_name = "subj_agr_filtered.text", gold_name = "subj_agr_filtered.gold";
  const auto here = find_folder("sva", source.folder,
                                {"", "linzen_testset", "data/linzen_testset", "sva/data/linzen_testset"},
                                {text_name, gold_name});
  std::vector<std::string> sentences;
  for_each_line(here / text_name, [&](std::string_view line, int64_t) { sentences.emplace_back(line); });

  const auto gold = here / gold_name;
  std::vector<Example> examples;
  int64_t lines = 0;
  for_each_line(gold, [&](std::string_view line, int64_t number) {
    lines = number;
    const auto at = place(gold, number);
    TORCH_CHECK(number <= static_cast<int64_t>(sentences.size()), at,
                ": there is no sentence for this line, because ", text_name, " has only ", sentences.size(),
                " lines");
    const auto fields = columns(line);
    TORCH_CHECK(fields.size() == 4, at,
                ": a line must have 4 columns (position of the verb, right form, wrong form, attractors) "
                "separated by tabs, got ",
                fields.size(), " in ", quote(line));
    const auto verb = whole_number(fields[0]), attractors = whole_number(fields[3]);
    TORCH_CHECK(attractors && *attractors >= 0, at, ": the number of attractors must be a whole number, got ",
                quote(fields[3]));
    auto words = split(sentences[static_cast<size_t>(number - 1)], Tokenizer::whitespace);
    TORCH_CHECK(verb && *verb >= 1 && *verb < static_cast<int64_t>(words.size()), at,
                ": the verb's position, counted from 0, must be from 1 to ",
                static_cast<int64_t>(words.size()) - 1, " in this sentence, got ", quote(fields[0]));
    const std::string right = lowered_word(fields[1]), wrong = lowered_word(fields[2]);
    TORCH_CHECK(lowered_word(words[static_cast<size_t>(*verb)]) == right, at, ": word ", *verb,
                " of the sentence (counted from 0) must be ", quote(fields[1]), ", got ",
                quote(words[static_cast<size_t>(*verb)]), "; do the two files belong together?");
    const bool singular = is_singular_of(right, wrong);
    if (!singular && !is_singular_of(wrong, right))
      return;  // "wherein", "lie" and such: no number to tell (docs/data.md)
    std::string prefix;
    for (int64_t i = 0; i < *verb; ++i) prefix += (i ? " " : "") + words[static_cast<size_t>(i)];
    examples.push_back({std::move(prefix), singular ? 0 : 1, *attractors});
  });
  TORCH_CHECK(lines == static_cast<int64_t>(sentences.size()), "data: ", (here / text_name).string(), " has ",
              sentences.size(), " lines and ", gold_name, " has ", lines,
              "; each line must have its counterpart in the other file");

  auto parts = split_by_text(std::move(examples), 0.1, 0.1);
  Splits splits;
  splits.train = std::move(parts.train);
  splits.dev = std::move(parts.dev);
  splits.test = std::move(parts.test);
  splits.labels = {"singular", "plural"};
  splits.group_name = "attractors";
  return splits;
}

}  // namespace quatrain::data
