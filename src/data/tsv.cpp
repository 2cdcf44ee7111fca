#include <iterator>
#include <set>
#include <unordered_map>

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

/// `whose` the labels are, for a message.
std::vector<Example> number(const std::filesystem::path& file, std::vector<Row> rows,
                            const std::vector<std::string>& labels, const char* whose) {
  std::unordered_map<std::string_view, int64_t> numbers;
  for (const auto& label : labels) numbers.emplace(label, std::ssize(numbers));
  std::vector<Example> examples;
  for (auto& row : rows) {
    const auto found = numbers.find(row.label);
    TORCH_CHECK(found != numbers.end(), place(file, row.line), ": the label must be one of those of the ",
                whose, " (", shown(labels), "), got ", quote(row.label));
    examples.push_back({std::move(row.text), found->second});
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

/// One file, cut by the shares.
Splits cut(const std::filesystem::path& file, const Shares& shares) {
  TORCH_CHECK(std::filesystem::exists(file), "data: there is no ", file.string());
  TORCH_CHECK(std::filesystem::is_regular_file(file), "data: a split is of one file, got ", file.string(),
              " (a folder's train.tsv, dev.tsv and test.tsv are split already)");
  auto rows = read_rows(file);
  Splits splits;
  splits.labels = labels_of(file, rows);
  const size_t count = rows.size();
  auto parts = split_by_text(number(file, std::move(rows), splits.labels, "file"), shares.dev, shares.test);
  TORCH_CHECK(!parts.train.empty() && !parts.dev.empty() && !parts.test.empty(), "data: ", file.string(),
              " has ", count, " examples, too few for the three sets of this split");
  splits.train = std::move(parts.train);
  splits.dev = std::move(parts.dev);
  splits.test = std::move(parts.test);
  return splits;
}

/// The files of the sets.
Splits read_sets(const Source& source) {
  std::vector<std::string> sets{"train", "dev", "test"};
  if (!source.only.empty()) sets = {needed_set(source.only, "texts")};
  std::vector<std::string> files;
  for (const auto& set : sets) files.push_back(set + ".tsv");
  const auto here =
      find_folder("tsv", source.folder, {""}, files, ", or a split of this file, such as 80/10/10");
  if (source.only.empty() || source.only == "dev")
    find_split_file(here, kDevStems, "tsv");  // a second dev set would not be read
  Splits splits;
  splits.labels = source.labels;
  for (const auto& set : sets) {
    const auto file = here / (set + ".tsv");
    auto rows = read_rows(file);
    if (splits.labels.empty()) splits.labels = labels_of(file, rows);
    auto& examples = set == "train" ? splits.train : set == "dev" ? splits.dev : splits.test;
    examples = number(file, std::move(rows), splits.labels, source.labels.empty() ? "training set" : "model");
  }
  return splits;
}

}  // namespace

Splits read_tsv(const Source& source) {
  Splits splits = source.shares ? cut(source.folder, *source.shares) : read_sets(source);
  splits.tokenizer = Tokenizer::simple;
  return splits;
}

}  // namespace quatrain::data
