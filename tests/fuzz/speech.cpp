#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "data/audio_files.h"
#include "fuzz/support.h"
#include "quatrain/data/kaldi_archive.h"
#include "quatrain/data/speech_corpus.h"
#include "quatrain/scores/transcripts.h"

namespace {

struct SpeechReader {
  char first;  // the input's first byte
  const char* reader;
  std::vector<const char*> files;  // an empty one is not there
};

const std::vector<SpeechReader> kSpeechReaders{
    {'f', "kaldi", {"train/feats.scp", "train/feats.ark", "train/text", "train/ali.ark", "test/feats.scp"}},
    {'k',
     "kaldi",
     {"train/wav.scp", "train/text", "train/utt2spk", "train/segments", "train/ali.ark", "test/wav.scp",
      "phones.txt"}},
    {'m', "timit", {"dr1/anna/si1.phn", "dr1/anna/si1.wrd", "dr1/anna/si2.phn", "dr1/anna/si2.txt"}},
    {'t', "tsv", {"train.tsv", "dev.tsv", "test.tsv"}},
};

void check_corpus(const quatrain::data::SpeechCorpus& corpus, bool words) {
  using quatrain::fuzz::Finding;
  if (corpus.train.empty()) throw Finding("the training set has no utterance");
  for (const auto* set : {&corpus.train, &corpus.dev, &corpus.test})
    for (const auto& utterance : *set) {
      if (utterance.id.empty() || utterance.speaker.empty()) throw Finding("an utterance has no name");
      if (words && utterance.tokens.empty()) throw Finding("an utterance has no word");
      if (utterance.begin < 0 || utterance.end < utterance.begin)
        throw Finding("an utterance ends too early");
    }
}

}  // namespace

/// Lists of recordings: the first byte chooses a reader, in upper case one that skips bad utterances, or with
/// 'r' the transcripts of a .trn file. A line `--` ends each of a reader's files but the last. The recordings
/// a.wav and b.wav are there. Kaldi's alignments are wanted where there is a file of them, and no words then.
/// With 'f' Kaldi's features are stored, and those of each utterance are read.
QUATRAIN_FUZZ_TARGET(speech)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const char first = static_cast<char>(data[0] | 0x20);
  auto text = fuzz::text_of(data + 1, size - 1);
  if (first == 'r') {
    const auto file = folder.write("speech.trn", text);
    fuzz::read_or_refuse<std::invalid_argument>(size, 1000, [&] {
      for (const auto& transcript : scores::read_trn(file))
        if (scores::parse_trn_line(scores::trn_line(transcript)) != transcript)
          throw fuzz::Finding("a transcript reads otherwise when it is written: " + transcript.utterance);
    });
    return 0;
  }
  const auto target = std::find_if(kSpeechReaders.begin(), kSpeechReaders.end(),
                                   [&](const auto& t) { return t.first == first; });
  if (target == kSpeechReaders.end()) return 0;
  const bool stored = first == 'f';
  const std::string place = std::string("speech_") + first;
  const std::string recording = data::wav(data::sixteen_bits(std::vector<int16_t>(800, 100)), {.rate = 8000});
  data::SpeechSource source;
  source.reader = target->reader;
  source.folder = folder.path() / place;
  source.stored_features = stored;
  source.skip_bad = data[0] != static_cast<uint8_t>(first);
  const auto write = [&](const std::string& file, std::string_view content) {
    std::filesystem::create_directories((source.folder / file).parent_path());
    folder.write(place + "/" + file, content);
  };
  for (const char* file : {"a.wav", "b.wav", "train/a.wav", "dr1/anna/si1.wav", "dr1/anna/si2.wav"})
    if (!stored && (first != 'm' || std::string_view(file).starts_with("dr1"))) write(file, recording);
  for (const std::string file : target->files) {
    const auto content = file == target->files.back() ? text : fuzz::next_file(text);
    const bool is_alignment = file.ends_with("ali.ark");
    source.alignments = source.alignments || (is_alignment && !content.empty());
    if (content.empty())
      std::filesystem::remove(source.folder / file);
    else
      write(file, content);
  }
  source.words = !source.alignments;
  fuzz::read_or_refuse<c10::Error>(size, 16384, [&] {
    const auto corpus = data::load_speech(source);
    check_corpus(corpus, source.words);
    for (const auto* set : {&corpus.train, &corpus.dev, &corpus.test})
      for (const auto& utterance : *set)
        if (stored && data::read_kaldi_matrix(utterance.stored).size(0) != utterance.frames)
          throw fuzz::Finding("stored features have other frames than their header says");
  });
  return 0;
}
