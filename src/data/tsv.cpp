#include <algorithm>
#include <set>

#include "data/readers.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace {

struct Row {
  std::string label, text;
  int64_t line;
};

std::vector<Row> read_rows(const std::filesystem::path& file) {
  std::vector<Row> rows;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    if (split(line, Tokenizer::whitespace).empty()) return;
    const auto fields = columns(line);
    TORCH_CHECK(fields.size() == 2, place(file, number),
                ": a line must have 2 columns (label, text) with one tab between, got ", fields.size(),
                " in ", quote(line));
    if (number == 1 && fields[0] == "label" && fields[1] == "text") return;
    TORCH_CHECK(!split(fields[0], Tokenizer::whitespace).empty(), place(file, number),
                ": the label must not be empty, got ", quote(line));
    TORCH_CHECK(!split(fields[1], Tokenizer::whitespace).empty(), place(file, number),
                ": the text must not be empty, got ", quote(line));
    rows.push_back({std::string(fields[0]), std::string(fields[1]), number});
  });
  TORCH_CHECK(!rows.empty(), "data: ", file.string(), " holds no example: no line but a header or blanks");
  return rows;
}

/// For a message: the labels, each of any length, or how many there are.
std::string shown(std::vector<std::string> labels) {
  constexpr size_t kMost = 10;
  if (labels.size() > kMost) return "there are " + std::to_string(labels.size());
  for (std::string& label : labels) label = shorten(label);
  return join(labels);
}

std::vector<Example> number(const std::filesystem::path& file, const std::vector<std::string>& labels) {
  std::vector<Example> examples;
  for (auto& row : read_rows(file)) {
    const auto found = std::lower_bound(labels.begin(), labels.end(), row.label);
    TORCH_CHECK(found != labels.end() && *found == row.label, place(file, row.line),
                ": the label must be one of train.tsv's (", shown(labels), "), got ", quote(row.label));
    examples.push_back({std::move(row.text), found - labels.begin()});
  }
  return examples;
}

}  // namespace

Splits read_tsv(const std::filesystem::path& folder) {
  const auto here = find_folder("tsv", folder, {""}, {"train.tsv", "dev.tsv", "test.tsv"});
  std::set<std::string> seen;
  for (auto& row : read_rows(here / "train.tsv")) seen.insert(std::move(row.label));
  Splits splits;
  splits.labels.assign(seen.begin(), seen.end());
  TORCH_CHECK(splits.labels.size() >= 2, "data: ", (here / "train.tsv").string(),
              " must have at least 2 different labels, got only ", quote(splits.labels[0]));
  splits.train = number(here / "train.tsv", splits.labels);
  splits.dev = number(here / "dev.tsv", splits.labels);
  splits.test = number(here / "test.tsv", splits.labels);
  splits.tokenizer = Tokenizer::simple;
  return splits;
}

}  // namespace quatrain::data
