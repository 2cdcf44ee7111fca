#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "data/random.h"
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
    if (number == 1 && is_header(fields[0])) return;
    const auto label = trimmed(fields[0]), text = trimmed(fields[1]);
    TORCH_CHECK(!label.empty(), place(file, number), ": the label must not be empty, got ", quote(line));
    TORCH_CHECK(!text.empty(), place(file, number), ": the text must not be empty, got ", quote(line));
    rows.push_back({std::string(label), std::string(text), number});
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

void require_sets(const Splits& splits, const std::filesystem::path& file) {
  std::vector<std::string> empty;
  std::unordered_set<std::string_view> texts;
  size_t examples = 0;
  for (const auto& [name, set] :
       {std::pair{"train", &splits.train}, {"dev", &splits.dev}, {"test", &splits.test}}) {
    if (set->empty()) empty.emplace_back(name);
    examples += set->size();
    for (const auto& example : *set) texts.insert(example.text);
  }
  constexpr size_t kFewer = 2;  // a file of texts says few of them twice
  TORCH_CHECK(empty.empty(), "data: ", file.string(), " has ", texts.size(), " different texts in ", examples,
              " examples, too few for this split: by their hashes none is in ", join(empty),
              kFewer * texts.size() <= examples
                  ? "; are the columns swapped (a line is a label, a tab and a text)?"
                  : "; add texts, or put train.tsv, dev.tsv and test.tsv into a folder");
}

/// One file, cut by the shares. A text's hash says where it goes, so that it is in the same set whatever
/// lines are added to the file or removed, and none that was trained on becomes one to test with.
Splits cut(const std::filesystem::path& file, const Shares& shares) {
  TORCH_CHECK(std::filesystem::exists(file), "data: there is no ", file.string());
  TORCH_CHECK(std::filesystem::is_regular_file(file), "data: a split is of one file, got ", file.string(),
              " (a folder's train.tsv, dev.tsv and test.tsv are split already: leave the split out, with "
              "--set task.split= where a recipe has one)");
  auto rows = read_rows(file);
  Splits splits;
  splits.labels = labels_of(file, rows);
  for (auto& example : number(file, std::move(rows), splits.labels, "file")) {
    const double at = fraction_of(example.text);
    auto& set = at < shares.test ? splits.test : at < shares.test + shares.dev ? splits.dev : splits.train;
    set.push_back(std::move(example));
  }
  require_sets(splits, file);
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
