#include <algorithm>
#include <set>

#include "data/readers.h"
#include "data/split_files.h"
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
                ": a line must have 2 columns (label, text) separated by one tab, got ", fields.size(),
                " in ", quote(line));
    if (number == 1 && fields[0] == "label" && fields[1] == "text") return;
    TORCH_CHECK(!split(fields[0], Tokenizer::whitespace).empty(), place(file, number),
                ": the label must not be empty, got ", quote(line));
    TORCH_CHECK(!split(fields[1], Tokenizer::whitespace).empty(), place(file, number),
                ": the text must not be empty, got ", quote(line));
    rows.push_back({std::string(fields[0]), std::string(fields[1]), number});
  });
  TORCH_CHECK(!rows.empty(), "data: ", file.string(), " contains no example, only blank lines or a header");
  return rows;
}

/// For a message: the labels, each of any length, or how many there are.
std::string shown(std::vector<std::string> labels) {
  constexpr size_t kMost = 10;
  if (labels.size() > kMost) return "there are " + std::to_string(labels.size());
  for (std::string& label : labels) label = shorten(label);
  return join(labels);
}

std::vector<Example> number(const std::filesystem::path& file, std::vector<Row> rows,
                            const std::vector<std::string>& labels) {
  std::vector<Example> examples;
  for (auto& row : rows) {
    const auto found = std::lower_bound(labels.begin(), labels.end(), row.label);
    TORCH_CHECK(found != labels.end() && *found == row.label, place(file, row.line),
                ": the label must be one of those in train.tsv (", shown(labels), "), got ",
                quote(row.label));
    examples.push_back({std::move(row.text), found - labels.begin()});
  }
  return examples;
}

std::vector<std::string> labels_of(const std::filesystem::path& file, const std::vector<Row>& rows) {
  std::set<std::string> seen;
  for (const auto& row : rows) seen.insert(row.label);
  TORCH_CHECK(seen.size() >= 2, "data: ", file.string(), " must have at least 2 different labels, got only ",
              quote(*seen.begin()));
  return {seen.begin(), seen.end()};
}

}  // namespace

Splits read_tsv(const std::filesystem::path& folder) {
  const auto here = find_folder("tsv", folder, {""}, {"train.tsv", "dev.tsv", "test.tsv"},
                                ", or a split of this file, such as 80/10/10");
  find_split_file(here, kDevStems, "tsv");  // a second dev set would not be read
  auto rows = read_rows(here / "train.tsv");
  Splits splits;
  splits.labels = labels_of(here / "train.tsv", rows);
  splits.train = number(here / "train.tsv", std::move(rows), splits.labels);
  splits.dev = number(here / "dev.tsv", read_rows(here / "dev.tsv"), splits.labels);
  splits.test = number(here / "test.tsv", read_rows(here / "test.tsv"), splits.labels);
  splits.tokenizer = Tokenizer::simple;
  return splits;
}

Splits read_one_tsv(const std::filesystem::path& file, const Shares& shares) {
  TORCH_CHECK(std::filesystem::exists(file), "data: there is no ", file.string());
  TORCH_CHECK(std::filesystem::is_regular_file(file), "data: a split is of one file, got ", file.string(),
              " (a folder's train.tsv, dev.tsv and test.tsv are split already)");
  auto rows = read_rows(file);
  Splits splits;
  splits.labels = labels_of(file, rows);
  const size_t count = rows.size();
  auto parts = split_by_text(number(file, std::move(rows), splits.labels), shares.dev, shares.test);
  TORCH_CHECK(!parts.train.empty() && !parts.dev.empty() && !parts.test.empty(), "data: ", file.string(),
              " has ", count, " examples, too few for the three sets of this split");
  splits.train = std::move(parts.train);
  splits.dev = std::move(parts.dev);
  splits.test = std::move(parts.test);
  splits.tokenizer = Tokenizer::simple;
  return splits;
}

}  // namespace quatrain::data
