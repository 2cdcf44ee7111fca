#include "data/readers.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace {

std::vector<Example> read_reviews(const std::filesystem::path& file) {
  std::vector<Example> examples;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    const auto fields = columns(line);
    TORCH_CHECK(fields.size() == 3, place(file, number),
                ": a line must have 3 columns (id, label, text) separated by tabs, got ", fields.size(),
                " in ", quote(line));
    TORCH_CHECK(fields[1] == "0" || fields[1] == "1", place(file, number),
                ": the label must be 0 (negative) or 1 (positive), got ", quote(fields[1]));
    TORCH_CHECK(!split(fields[2], Tokenizer::simple).empty(), place(file, number),
                ": the text must have at least one word, got ", quote(fields[2]));
    examples.push_back({std::string(fields[2]), fields[1] == "1"});
  });
  return examples;
}

}  // namespace

Splits read_imdb(const Source& source) {
  const auto here = find_folder("imdb", source.folder, {"", "imdb", "imdb/imdb"}, {"train.tsv", "test.tsv"});
  Splits splits;
  auto parts = split_by_text(read_reviews(here / "train.tsv"), 0.1, 0.0);
  splits.train = std::move(parts.train);
  splits.dev = std::move(parts.dev);
  splits.test = read_reviews(here / "test.tsv");
  splits.labels = {"negative", "positive"};
  splits.tokenizer = Tokenizer::simple;
  return splits;
}

}  // namespace quatrain::data
