#include <c10/util/Exception.h>

#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "data/speech_readers.h"
#include "data/split_files.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct Line {
  std::string key, rest, place;
};

std::optional<double> decimal(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// One set's folder.
class KaldiFolder {
 public:
  KaldiFolder(SpeechGathering& gathering, fs::path folder, std::string set)
      : gathering_(gathering), folder_(std::move(folder)), set_(std::move(set)) {}

  void read() {
    const auto recordings = lines("wav.scp");
    for (const auto& line : recordings) recordings_.emplace(line.key, &line);
    const auto texts = lines("text");
    for (const auto& line : texts) texts_.emplace(line.key, &line);
    const bool named = fs::exists(folder_ / "utt2spk"), cut = fs::exists(folder_ / "segments");
    if (named)
      for (auto& line : lines("utt2spk")) speakers_.emplace(line.key, line.rest);

    for (const auto& line : cut ? lines("segments") : recordings) {
      Utterance utterance;
      utterance.id = line.key;
      const auto text = texts_.find(line.key);
      if (text == texts_.end()) {
        refuse("an utterance has no text", line, "the utterance " + quote(line.key) + " has no line in text");
        continue;
      }
      utterance.tokens = split(text->second->rest, Tokenizer::whitespace);
      texts_.erase(text);
      const auto speaker = speakers_.find(line.key);
      if (named && (speaker == speakers_.end() || speaker->second.empty())) {
        refuse("an utterance has no speaker", line,
               "the utterance " + quote(line.key) + " has no speaker in utt2spk");
        continue;
      }
      utterance.speaker = named ? speaker->second : line.key;
      if (cut ? open_segment(utterance, line) : open(utterance, line))
        gathering_.add(std::move(utterance), set_, line.place);
    }
    for (const auto& line : texts)
      if (texts_.contains(line.key))
        refuse("a text has no utterance", line,
               "the utterance " + quote(line.key) + " has no line in " + (cut ? "segments" : "wav.scp"));
  }

 private:
  void refuse(const std::string& reason, const Line& line, const std::string& problem) {
    gathering_.refuse(set_, reason, line.place, problem);
  }

  /// A file's lines: a name, which no other line of the file has, and the rest.
  std::vector<Line> lines(const char* name) {
    const fs::path file = folder_ / name;
    TORCH_CHECK(fs::exists(file), "data: there is no ", file.string(),
                "; the kaldi format needs wav.scp and text in the folder of each set");
    std::vector<Line> all;
    std::set<std::string> keys;
    gathering_.for_each_line(file, set_, [&](std::string_view text, const std::string& place) {
      text = trimmed(text);
      const size_t end = std::min(text.find_first_of(" \t"), text.size());
      Line line{std::string(text.substr(0, end)), std::string(trimmed(text.substr(end))), place};
      if (keys.insert(line.key).second)
        all.push_back(std::move(line));
      else
        refuse("two lines have the same name", line,
               "another line of " + std::string(name) + " begins with " + quote(line.key) + " too");
    });
    return all;
  }

  /// Opens a recording, of a line of wav.scp.
  bool open(Utterance& utterance, const Line& line) {
    if (line.rest.starts_with('|') || line.rest.ends_with('|')) {
      refuse("a recording is a command", line,
             "the recording " + quote(line.key) + " is a command (" + shorten(line.rest) +
                 "), and commands are never run; write its audio to a file and name that file here");
      return false;
    }
    if (line.rest.empty()) {
      refuse("a recording has no file", line, "the recording " + quote(line.key) + " has no file behind it");
      return false;
    }
    utterance.path = folder_ / line.rest;
    if (!fs::exists(utterance.path) && fs::exists(line.rest)) utterance.path = line.rest;
    return gathering_.open_audio(utterance, set_, line.place);
  }

  /// Opens a part of a recording, of a line of segments.
  bool open_segment(Utterance& utterance, const Line& line) {
    const auto fields = split(line.rest, Tokenizer::whitespace);
    const auto begin = fields.size() == 3 ? decimal(fields[1]) : std::nullopt;
    const auto end = fields.size() == 3 ? decimal(fields[2]) : std::nullopt;
    const bool to_end = end == -1;
    if (!begin || !end || *begin < 0 || (!to_end && *end <= *begin)) {
      refuse("a line of segments is bad", line,
             "a line of segments must be utterance, recording, begin and end in seconds (-1: of the "
             "recording), got " +
                 quote(line.key + " " + line.rest));
      return false;
    }
    const auto recording = recordings_.find(fields[0]);
    if (recording == recordings_.end()) {
      refuse("a segment's recording is unknown", line,
             "the recording " + quote(fields[0]) + " has no line in wav.scp");
      return false;
    }
    if (!open(utterance, *recording->second)) return false;
    // Kaldi allows an end of half a second after the recording's.
    constexpr double kMostBeyond = 0.5;
    const auto rate = static_cast<double>(utterance.rate);
    const double length = utterance.seconds();
    if (*begin >= length || *end > length + kMostBeyond) {
      refuse("a segment exceeds its recording", line,
             "the segment is from " + fields[1] + " to " + fields[2] + " s, but the recording " +
                 quote(fields[0]) + " has only " + std::to_string(length) + " s");
      return false;
    }
    utterance.begin = std::llround(*begin * rate);
    if (!to_end) utterance.end = std::min<int64_t>(utterance.end, std::llround(*end * rate));
    if (utterance.samples() > 0) return true;
    refuse("a segment holds no sample", line,
           "the segment from " + fields[1] + " to " + fields[2] + " s holds no sample at " +
               std::to_string(utterance.rate) + " Hz");
    return false;
  }

  SpeechGathering& gathering_;
  fs::path folder_;
  std::string set_;
  std::map<std::string, const Line*> recordings_, texts_;
  std::map<std::string, std::string> speakers_;
};

}  // namespace

void read_kaldi_folders(SpeechGathering& gathering) {
  const auto& folder = gathering.source().folder;
  const std::string names = "train/wav.scp and train/text";
  check_folder("kaldi", folder, names);
  if (fs::exists(folder / "wav.scp")) return KaldiFolder(gathering, folder, "train").read();
  TORCH_CHECK(fs::exists(folder / "train" / "wav.scp"), "data: there is no wav.scp in ", folder.string(),
              " or ", (folder / "train").string(), "; the kaldi format needs ", names);
  const auto read = [&](const std::string& set, const std::vector<std::string>& stems) {
    for (const auto& stem : stems)
      if (fs::exists(folder / stem / "wav.scp")) return KaldiFolder(gathering, folder / stem, set).read();
  };
  read("train", {"train"});
  read("dev", kDevStems);
  read("test", {"test"});
}

}  // namespace quatrain::data
