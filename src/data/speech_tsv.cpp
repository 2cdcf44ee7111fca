#include <c10/util/Exception.h>

#include "data/speech_readers.h"
#include "data/split_files.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

void read_list(SpeechGathering& gathering, const fs::path& file, const std::string& set) {
  bool first = true;
  gathering.for_each_line(file, set, [&](std::string_view line, const std::string& place) {
    const auto fields = columns(line);
    const bool header = first && fields.size() >= 2 && fields[0] == "path" && fields[1] == "text";
    first = false;
    if (header) return;
    if (fields.size() != 2 && fields.size() != 3)
      return gathering.refuse(set, "a line has other than 2 or 3 columns", place,
                              "a line must have 2 or 3 columns (audio path, text, speaker) separated by "
                              "one tab, got " +
                                  std::to_string(fields.size()) + " in " + quote(line));
    if (fields[0].empty() || (fields.size() == 3 && fields[2].empty()))
      return gathering.refuse(set, "a path or speaker is empty", place,
                              "the audio path and the speaker must not be empty, got " + quote(line));
    Utterance utterance;
    utterance.id = fields[0];
    utterance.speaker = fields.size() == 3 ? fields[2] : fields[0];
    utterance.path = file.parent_path() / fields[0];
    utterance.tokens = split(fields[1], Tokenizer::whitespace);
    if (gathering.open_audio(utterance, set, place)) gathering.add(std::move(utterance), set, place);
  });
}

}  // namespace

void read_speech_tsv(SpeechGathering& gathering) {
  const fs::path& folder = gathering.source().folder;
  const auto file_of = [&](const std::string& set) { return find_split_file(folder, stems_of(set), "tsv"); };
  const std::string& needed = gathering.settle(file_of);
  find_split_folder("tsv", folder, {""}, stems_of(needed), needed + ".tsv");
  TORCH_CHECK(!file_of(needed).empty(), "data: there is no ", (folder / (needed + ".tsv")).string());
  for (const std::string set : {"train", "dev", "test"}) {
    if (!gathering.reads(set)) continue;
    if (const auto file = file_of(set); !file.empty()) read_list(gathering, file, set);
  }
}

}  // namespace quatrain::data
