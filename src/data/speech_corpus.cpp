#include "quatrain/data/speech_corpus.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "data/line_file.h"
#include "data/speech_readers.h"
#include "data/split_files.h"
#include "data/text_file.h"
#include "quatrain/data/audio.h"
#include "quatrain/data/kaldi_archive.h"
#include "support/text.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct SpeechEntry {
  Reader reader;
  void (*read)(SpeechGathering&);
};

const std::vector<SpeechEntry>& speech_entries() {
  static const std::vector<SpeechEntry> all{
      {{"timit", "TIMIT: folders of speakers with .wav, .phn and .wrd; words and 61 phones", true},
       read_timit},
      {{"kaldi",
        "your recordings as Kaldi lists them (train, dev, test with wav.scp, text, utt2spk, segments), or "
        "features and alignments that it made (feats.scp, ali.*.gz)",
        true},
       read_kaldi_folders},
      {{"tsv",
        "your recordings (train.tsv, dev.tsv, test.tsv: audio path, tab, text, and a speaker if known)",
        true},
       read_speech_tsv},
      {{"fsdd", "Free Spoken Digit Dataset (DIGIT_SPEAKER_INDEX.wav)", true}, read_fsdd},
      {{"yesno", "yes and no in Hebrew, eight words an utterance (0_1_0_....wav)", true}, read_yesno},
  };
  return all;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

SpeechGathering::SpeechGathering(const SpeechSource& source) : source_(source) {
  for (const auto& speaker : source.dev_speakers)
    TORCH_CHECK(!contains(source.test_speakers, speaker), "data: a speaker must be in dev or in test, but ",
                quote(speaker), " is in both");
  needed_set(source.only, "speech");
}

const std::string& SpeechGathering::settle(const std::function<fs::path(const std::string&)>& find) {
  // Speakers who are a set may be in any.
  if (source_.only.empty() || !source_.dev_speakers.empty() || !source_.test_speakers.empty()) return needed_;
  const bool there = !find(source_.only).empty();
  lacks_wanted_ = !there && source_.only_if_there;
  alone_ = there || lacks_wanted_ || find("train").empty();
  if (alone_) needed_ = source_.only;
  return needed_;
}

void SpeechGathering::refuse(std::string_view set, const std::string& reason, const std::string& place,
                             const std::string& problem) {
  TORCH_CHECK(source_.skip_bad, place, ": ", problem, "; skip_bad leaves such utterances out");
  corpus_.bad.add(set, reason, place);
}

bool SpeechGathering::open_audio(Utterance& utterance, std::string_view set, const std::string& place) {
  if (!is_there(utterance.path)) {
    constexpr size_t kLongest = 300;  // of a sentence about one name
    const std::string name = utterance.path.string();
    refuse(set, "the audio file is missing", place,
           "there is no audio file " + (name.size() > kLongest ? shorten(name) : name));
    return false;
  }
  auto found = opened_.find(utterance.path);
  if (found == opened_.end()) {
    try {
      const AudioInfo info = read_audio_info(utterance.path);
      found = opened_.emplace(utterance.path, Header{info.rate, info.frames, info.channels}).first;
    } catch (const c10::Error& error) {
      refuse(set, "the audio file cannot be read", place, error.what_without_backtrace());
      return false;
    }
  }
  utterance.rate = found->second.rate;
  utterance.begin = 0;
  utterance.end = found->second.frames;
  return true;
}

int64_t SpeechGathering::channels(const Utterance& utterance) const {
  return opened_.at(utterance.path).channels;
}

void SpeechGathering::check_columns(const std::string& id, int64_t columns, const std::string& place) {
  if (columns_ == 0) {
    columns_ = columns;
    first_features_ = id;
  }
  TORCH_CHECK(columns == columns_, place, ": the features of ", quote(id), " have ", columns,
              " columns, but those of ", quote(first_features_), " have ", columns_,
              "; make all of them in the same way");
}

void SpeechGathering::add(Utterance utterance, std::string_view set, const std::string& place) {
  if (source_.words && utterance.tokens.empty())
    return refuse(set, "the text is empty", place, "the text of " + quote(utterance.id) + " is empty");
  if (const auto [other, added] = places_.emplace(utterance.id, place); !added)
    return refuse(set, "two utterances have the same name", place,
                  "there is another utterance " + quote(utterance.id) + " at " + other->second +
                      "; names must differ, those of other sets too");
  speakers_.insert(utterance.speaker);
  std::vector<Utterance>* to = nullptr;
  if (contains(source_.test_speakers, utterance.speaker))
    to = &corpus_.test;
  else if (contains(source_.dev_speakers, utterance.speaker))
    to = &corpus_.dev;
  else if (set == "test")
    to = source_.test_speakers.empty() ? &corpus_.test : nullptr;
  else if (set == "dev")
    to = source_.dev_speakers.empty() ? &corpus_.dev : nullptr;
  else
    to = &corpus_.train;
  if (to) to->push_back(std::move(utterance));
}

void SpeechGathering::for_each_line(
    const fs::path& file, std::string_view set,
    const std::function<void(std::string_view line, const std::string& place)>& take) {
  LineFile lines(file);
  for (std::string_view line; lines.next(line);) {
    const std::string problem = line_problem(line);
    if (!problem.empty())
      refuse(set, "a line is not text", lines.place(), problem);
    else if (!is_blank(line))
      take(line, lines.place());
  }
}

SpeechCorpus SpeechGathering::finish() {
  for (const auto* named : {&source_.dev_speakers, &source_.test_speakers})
    for (const auto& speaker : *named)
      TORCH_CHECK(speakers_.contains(speaker), "data: there is no speaker ", quote(speaker), " in ",
                  source_.folder.string(), ", only ",
                  speakers_.size() > 20 ? std::to_string(speakers_.size()) + " others"
                                        : join({speakers_.begin(), speakers_.end()}),
                  corpus_.notes.empty() ? "" : "; " + join(corpus_.notes));
  const auto& needed = needed_ == "train" ? corpus_.train : needed_ == "dev" ? corpus_.dev : corpus_.test;
  TORCH_CHECK(lacks_wanted_ || !needed.empty(), "data: ", source_.folder.string(), " has no utterance ",
              needed_ == "train" ? "to train on" : "of the " + needed_ + " set", " in the ", source_.reader,
              " format",
              corpus_.bad.count() > 0
                  ? "; the first of " + std::to_string(corpus_.bad.count()) +
                        " bad ones: " + corpus_.bad.reasons[0].first + ", " + corpus_.bad.reasons[0].reason
                  : "");
  return std::move(corpus_);
}

const std::vector<Reader>& speech_readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list;
    for (const auto& entry : speech_entries()) list.push_back(entry.reader);
    return list;
  }();
  return all;
}

SpeechCorpus load_speech(const SpeechSource& source) {
  std::vector<std::string> known;
  for (const auto& entry : speech_entries()) {
    known.emplace_back(entry.reader.name);
    if (source.reader != entry.reader.name) continue;
    TORCH_CHECK(entry.read == read_kaldi_folders || !(source.stored_features || source.alignments),
                "data: the reader ", source.reader,
                " knows neither stored features nor alignments, only kaldi "
                "does; leave ",
                source.stored_features ? "stored_features" : "alignments", " off");
    SpeechSource named = source;
    if (entry.read == read_timit)
      for (auto* speakers : {&named.dev_speakers, &named.test_speakers})
        *speakers = timit_speakers(*speakers);
    SpeechGathering gathering(named);
    entry.read(gathering);
    return gathering.finish();
  }
  TORCH_CHECK(false, "data: the reader of speech must be one of ", join(known), ", got ",
              quote(source.reader));
}

at::Tensor read_stored_features(const Utterance& utterance) {
  TORCH_CHECK(!utterance.stored.empty(), "read_stored_features: ", quote(utterance.id),
              " has no stored features, only audio; load the corpus with stored_features");
  auto features = read_kaldi_matrix(utterance.stored);
  TORCH_CHECK(features.size(0) == utterance.frames, "read_stored_features: ", utterance.stored, " has ",
              features.size(0), " frames, but had ", utterance.frames,
              " when the corpus was loaded; load it again");
  return features;
}

Audio read_audio(const Utterance& utterance) {
  TORCH_CHECK(!utterance.path.empty(), "read_audio: ", quote(utterance.id),
              " has no audio, only stored features; load the corpus without stored_features");
  AudioFile file(utterance.path);
  TORCH_CHECK(utterance.begin >= 0 && utterance.begin <= utterance.end && utterance.end <= file.info().frames,
              "read_audio: ", utterance.path.string(), " has ", file.info().frames, " samples, but ",
              quote(utterance.id), " is from ", utterance.begin, " to ", utterance.end);
  file.seek(utterance.begin);
  const at::Tensor samples = file.read(utterance.samples());
  if (!utterance.channel) return {samples, file.info().rate};
  TORCH_CHECK(*utterance.channel >= 0 && *utterance.channel < samples.size(0),
              "read_audio: ", utterance.path.string(), " has ", samples.size(0), " channels, but ",
              quote(utterance.id), " is channel ", *utterance.channel, " (from 0 on)");
  return {samples.narrow(0, *utterance.channel, 1), file.info().rate};
}

}  // namespace quatrain::data
