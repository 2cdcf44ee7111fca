#include <c10/util/Exception.h>

#include <algorithm>
#include <regex>

#include "data/speech_readers.h"
#include "data/text_file.h"
#include "support/text.h"

/// Sets whose files' names say it all.
namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

/// The WAV files of the first of folder/sub that has any, or its FLAC files, by the bytes of their names.
std::vector<fs::path> find_recordings(const SpeechSource& source, const std::vector<std::string>& subs,
                                      const std::string& names) {
  check_folder(source.reader, source.folder, names);
  std::vector<std::string> tried;
  for (const auto& sub : subs) {
    const fs::path here = sub.empty() ? source.folder : source.folder / sub;
    tried.push_back(here.string());
    if (!fs::is_directory(here)) continue;
    for (const char* kind : {".wav", ".flac"}) {
      std::vector<fs::path> files;
      for (const auto& entry : fs::directory_iterator(here))
        if (lower_case(entry.path().extension().string()) == kind) files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      if (!files.empty()) return files;
    }
  }
  TORCH_CHECK(false, "data: there is no .wav or .flac file in ", join(tried), "; the ", source.reader,
              " format needs ", names, " in one folder");
}

}  // namespace

void read_fsdd(SpeechGathering& gathering) {
  const auto& source = gathering.source();
  const std::string names = "DIGIT_SPEAKER_INDEX.wav";
  static const std::regex kName("([0-9])_([^_]+)_([0-9]{1,9})");
  for (const auto& file :
       find_recordings(source, {"", "recordings", "fsdd/recordings", "speech_fsdd/fsdd/recordings"}, names)) {
    Utterance utterance;
    utterance.id = file.stem().string();
    utterance.path = file;
    std::smatch parts;
    if (!std::regex_match(utterance.id, parts, kName)) {
      gathering.refuse("", "a name is not " + names, file.string(),
                       "the name must be " + names + ", got " + quote(file.filename().string()));
      continue;
    }
    utterance.tokens = {parts[1]};
    utterance.speaker = parts[2];
    const auto index = whole_number(parts[3].str()).value();
    const bool test = index < 5 && source.test_speakers.empty();
    const bool dev = index >= 5 && index < 10 && source.dev_speakers.empty();
    const char* set = test ? "test" : dev ? "dev" : "train";
    if (gathering.open_audio(utterance, set, file.string()))
      gathering.add(std::move(utterance), set, file.string());
  }
}

void read_yesno(SpeechGathering& gathering) {
  const std::string names = "0_1_....wav";
  bool even = true;
  for (const auto& file :
       find_recordings(gathering.source(),
                       {"", "waves_yesno", "yesno/waves_yesno", "speech_yesno/yesno/waves_yesno"}, names)) {
    Utterance utterance;
    utterance.id = file.stem().string();
    utterance.speaker = "yesno";  // all is said by one man
    utterance.path = file;
    static const std::regex kName("[01](_[01])*");
    if (!std::regex_match(utterance.id, kName)) {
      gathering.refuse(
          "", "a name is not " + names, file.string(),
          "the name must be zeros and ones as in " + names + ", got " + quote(file.filename().string()));
      continue;
    }
    for (const char mark : utterance.id)
      if (mark != '_') utterance.tokens.emplace_back(mark == '1' ? "YES" : "NO");
    const char* set = even ? "train" : "test";
    even = !even;
    if (gathering.open_audio(utterance, set, file.string()))
      gathering.add(std::move(utterance), set, file.string());
  }
}

}  // namespace quatrain::data
