#include "data/readers.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace {

/// Lines "LABEL text", the label one digit.
std::vector<Example> read_phrases(const std::filesystem::path& file, int64_t classes) {
  std::vector<Example> examples;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    const auto space = line.find(' ');
    const auto label = whole_number(line.substr(0, space));
    TORCH_CHECK(label && *label >= 0 && *label < classes, place(file, number),
                ": a line must begin with a label from 0 to ", classes - 1, " and a space, got ",
                quote(line));
    const auto text = line.substr(std::min(space, line.size() - 1) + 1);
    TORCH_CHECK(!split(text, Tokenizer::whitespace).empty(), place(file, number),
                ": a text must follow the label, got ", quote(line));
    examples.push_back({std::string(text), *label});
  });
  return examples;
}

Splits read(const std::filesystem::path& folder, const std::string& reader, const std::string& stem,
            std::vector<std::string> labels) {
  const std::vector<std::string> files{stem + ".train", stem + ".dev", stem + ".test"};
  const auto here = find_folder(reader, folder, {"", "sst", "sst/sst"}, files);
  const auto classes = static_cast<int64_t>(labels.size());
  Splits splits;
  splits.train = read_phrases(here / files[0], classes);
  splits.dev = read_phrases(here / files[1], classes);
  splits.test = read_phrases(here / files[2], classes);
  splits.labels = std::move(labels);
  return splits;
}

}  // namespace

Splits read_sst(const Source& source) {
  return read(source.folder, "sst", "stsa.binary", {"negative", "positive"});
}

Splits read_sst5(const Source& source) {
  return read(source.folder, "sst5", "stsa.fine",
              {"very negative", "negative", "neutral", "positive", "very positive"});
}

}  // namespace quatrain::data
