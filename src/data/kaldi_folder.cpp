#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "data/kaldi_alignments.h"
#include "data/kaldi_values.h"
#include "data/speech_readers.h"
#include "data/split_files.h"
#include "data/text_file.h"
#include "support/parse_number.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct Line {
  std::string key, rest, place;
};

std::optional<double> decimal(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// As Kaldi writes them: from 0 on, or the sides of a call.
std::optional<int64_t> channel_of(const std::string& text) {
  if (text == "0" || text == "A") return 0;
  if (text == "1" || text == "B") return 1;
  return std::nullopt;
}

/// What a line of segments cuts out of a recording.
struct Cut {
  double begin, end;  // seconds; an end of -1 is the recording's
  std::optional<int64_t> channel;
};

/// Of "recording begin end [channel]".
std::optional<Cut> cut_of(const std::vector<std::string>& fields) {
  const bool names_channel = fields.size() == 4;
  if (fields.size() != 3 && !names_channel) return std::nullopt;
  const auto begin = decimal(fields[1]), end = decimal(fields[2]);
  if (!begin || !end || *begin < 0 || (*end != -1 && *end <= *begin)) return std::nullopt;
  const auto channel = names_channel ? channel_of(fields[3]) : std::nullopt;
  if (names_channel && !channel) return std::nullopt;
  return Cut{*begin, *end, channel};
}

/// Kaldi's table of phones: the name of each class of an alignment.
void read_class_names(SpeechGathering& gathering, const fs::path& file) {
  std::map<int32_t, std::string> names;
  std::set<std::string> known;
  gathering.for_each_line(file, "", [&](std::string_view line, const std::string& place) {
    const auto fields = split(line, Tokenizer::whitespace);
    const auto number = fields.size() == 2 ? whole_number(fields[1]) : std::nullopt;
    TORCH_CHECK(number && *number >= 0 && *number <= std::numeric_limits<int32_t>::max(), place,
                ": a line must be a name and the number of its class, got ", quote(line));
    TORCH_CHECK(known.insert(fields[0]).second && names.emplace(*number, fields[0]).second, place,
                ": names and numbers must differ, but one of ", quote(line), " is that of a line before");
  });
  gathering.name_classes(std::move(names));
}

/// One set's folder.
class KaldiFolder {
 public:
  KaldiFolder(SpeechGathering& gathering, fs::path folder, std::string set)
      : gathering_(gathering), folder_(std::move(folder)), set_(std::move(set)) {}

  void read() {
    const auto& source = gathering_.source();
    if (source.alignments && set_ != "train" && set_ != source.only && !KaldiAlignments::are_in(folder_))
      return gathering_.note("the " + set_ + " set is left out, because there is no " +
                             KaldiAlignments::kFiles + " in " + folder_.string());
    const bool stored = source.stored_features;
    const bool named = fs::exists(folder_ / "utt2spk"), cut = !stored && fs::exists(folder_ / "segments");
    const auto recordings = stored ? std::vector<Line>() : lines("wav.scp");
    for (const auto& line : recordings) recordings_.emplace(line.key, &line);
    const auto texts = source.words ? lines("text") : std::vector<Line>();
    for (const auto& line : texts) texts_.emplace(line.key, &line);
    if (named)
      for (auto& line : lines("utt2spk")) speakers_.emplace(line.key, line.rest);
    const char* const list = stored ? "feats.scp" : cut ? "segments" : "wav.scp";
    const auto utterances = stored || cut ? lines(list) : recordings;
    std::optional<KaldiAlignments> alignments;
    if (source.alignments) {
      std::set<std::string_view> names;
      for (const auto& line : utterances) names.insert(line.key);
      alignments.emplace(folder_, [&](const std::string& key) { return names.contains(key); });
    }

    for (const auto& line : utterances) {
      Utterance utterance;
      utterance.id = line.key;
      if (source.words && !take_text(utterance, line)) continue;
      const auto speaker = speakers_.find(line.key);
      if (named && (speaker == speakers_.end() || speaker->second.empty())) {
        refuse("an utterance has no speaker", line,
               "the utterance " + quote(line.key) + " has no speaker in utt2spk");
        continue;
      }
      utterance.speaker = named ? speaker->second : line.key;
      if (!(stored ? open_stored(utterance, line)
            : cut  ? open_segment(utterance, line)
                   : open(utterance, line)))
        continue;
      if (!alignments || align(utterance, *alignments, line))
        gathering_.add(std::move(utterance), set_, line.place);
    }
    for (const auto& line : texts)
      if (texts_.contains(line.key))
        refuse("a text has no utterance", line,
               "the utterance " + quote(line.key) + " has no line in " + list);
  }

 private:
  void refuse(const std::string& reason, const Line& line, const std::string& problem) {
    gathering_.refuse(set_, reason, line.place, problem);
  }

  bool take_text(Utterance& utterance, const Line& line) {
    const auto text = texts_.find(line.key);
    if (text == texts_.end()) {
      refuse("an utterance has no text", line, "the utterance " + quote(line.key) + " has no line in text");
      return false;
    }
    utterance.tokens = split(text->second->rest, Tokenizer::whitespace);
    texts_.erase(text);
    return true;
  }

  /// A file's lines: a name, which no other line of the file has, and the rest.
  std::vector<Line> lines(const char* name) {
    const fs::path file = folder_ / name;
    TORCH_CHECK(fs::exists(file), "data: there is no ", file.string(), "; the kaldi format needs ",
                needed_files(), " in the folder of each set");
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
    if (!is_there(utterance.path) && is_there(line.rest)) utterance.path = line.rest;
    const size_t colon = line.rest.rfind(':');
    if (!is_there(utterance.path) && colon != std::string::npos &&
        whole_number(line.rest.substr(colon + 1))) {
      refuse("a recording is in an archive", line,
             "the recording " + quote(line.key) + " is a place in an archive (" + shorten(line.rest) +
                 "), and audio is read from files alone; write it to a file and name that file here");
      return false;
    }
    return gathering_.open_audio(utterance, set_, line.place);
  }

  /// Opens a part of a recording, of a line of segments.
  bool open_segment(Utterance& utterance, const Line& line) {
    const auto fields = split(line.rest, Tokenizer::whitespace);
    const auto cut = cut_of(fields);
    if (!cut) {
      refuse("a line of segments is bad", line,
             "a line of segments must be utterance, recording, begin and end in seconds (-1: of the "
             "recording), and perhaps a channel (0 or 1, A or B), got " +
                 quote(line.key + " " + line.rest));
      return false;
    }
    const auto recording = recordings_.find(fields[0]);
    if (recording == recordings_.end()) {
      refuse("a segment's recording is unknown", line,
             "the recording " + quote(fields[0]) + " has no line in wav.scp");
      return false;
    }
    utterance.recording = fields[0];
    if (!open(utterance, *recording->second)) return false;
    utterance.channel = cut->channel;
    if (utterance.channel && *utterance.channel >= gathering_.channels(utterance)) {
      refuse("a segment's channel is missing", line,
             "the segment is of channel " + fields[3] + ", but the recording " + quote(fields[0]) +
                 " has one channel, 0 (A)");
      return false;
    }
    // Kaldi allows an end of half a second after the recording's.
    constexpr double kMostBeyond = 0.5;
    const auto rate = static_cast<double>(utterance.rate);
    const double length = utterance.seconds();
    if (cut->begin >= length || cut->end > length + kMostBeyond) {
      refuse("a segment exceeds its recording", line,
             "the segment is from " + fields[1] + " to " + fields[2] + " s, but the recording " +
                 quote(fields[0]) + " has only " + std::to_string(length) + " s");
      return false;
    }
    utterance.begin = std::llround(cut->begin * rate);
    if (cut->end != -1) utterance.end = std::min<int64_t>(utterance.end, std::llround(cut->end * rate));
    if (utterance.samples() > 0) return true;
    refuse("a segment holds no sample", line,
           "the segment from " + fields[1] + " to " + fields[2] + " s holds no sample at " +
               std::to_string(utterance.rate) + " Hz");
    return false;
  }

  /// Finds stored features, of a line of feats.scp.
  bool open_stored(Utterance& utterance, const Line& line) {
    if (line.rest.empty()) {
      refuse("stored features have no file", line,
             "the features of " + quote(line.key) + " have no file behind their name");
      return false;
    }
    KaldiSize size;
    try {
      utterance.stored = resolve_location(line.rest, folder_);
      size = read_kaldi_size(utterance.stored);
    } catch (const c10::Error& error) {
      refuse("stored features cannot be read", line, error.what_without_backtrace());
      return false;
    }
    if (size.rows == 0) {
      refuse("stored features have no frame", line, "the features of " + quote(line.key) + " have no frame");
      return false;
    }
    utterance.frames = size.rows;
    gathering_.check_columns(line.key, size.columns, line.place);
    return true;
  }

  /// Gives an utterance its classes.
  bool align(Utterance& utterance, KaldiAlignments& alignments, const Line& line) {
    const std::string whose = "the alignment of " + quote(line.key);
    std::optional<std::vector<int32_t>> labels;
    try {
      labels = alignments.take(line.key);
    } catch (const c10::Error& error) {
      refuse("an alignment cannot be read", line, whose + ": " + error.what_without_backtrace());
      return false;
    }
    if (!labels || labels->empty()) {
      refuse("an utterance has no alignment", line, "the utterance " + quote(line.key) + " has no alignment");
      return false;
    }
    if (const auto least = *std::min_element(labels->begin(), labels->end()); least < 0) {
      refuse("an alignment has a negative class", line,
             whose + " must have classes from 0 on, but one is " + std::to_string(least));
      return false;
    }
    utterance.labels = std::move(*labels);
    const auto count = static_cast<int64_t>(utterance.labels.size());
    if (utterance.stored.empty() || count == utterance.frames) return true;
    refuse("an alignment is not as long as its features", line,
           whose + " has " + std::to_string(count) + " frames, but its stored features have " +
               std::to_string(utterance.frames));
    return false;
  }

  std::string needed_files() const {
    const auto& source = gathering_.source();
    return std::string(source.stored_features ? "feats.scp" : "wav.scp") + (source.words ? " and text" : "");
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
  const std::string list = gathering.source().stored_features ? "feats.scp" : "wav.scp";
  const auto folder_of = [&](const std::string& set) {
    return find_one(stems_of(set), [&](const std::string& stem) {
      return fs::exists(folder / stem / list) ? folder / stem : fs::path();
    });
  };
  if (gathering.source().alignments && !folder.empty() && fs::exists(folder / "phones.txt"))
    read_class_names(gathering, folder / "phones.txt");
  if (!folder.empty() && fs::exists(folder / list)) return KaldiFolder(gathering, folder, "train").read();
  const std::string& needed = gathering.settle(folder_of);
  const std::string text = gathering.source().words ? " and " + needed + "/text" : "";
  const std::string names = needed + "/" + list + text;
  check_folder("kaldi", folder, names);
  if (gathering.lacks_wanted()) return;
  TORCH_CHECK(!folder_of(needed).empty(), "data: there is no ", list, " in ", folder.string(), " or ",
              (folder / needed).string(), "; the kaldi format needs ", names);
  for (const std::string set : {"train", "dev", "test"}) {
    if (!gathering.reads(set)) continue;
    if (const fs::path found = folder_of(set); !found.empty()) KaldiFolder(gathering, found, set).read();
  }
}

}  // namespace quatrain::data
