#include "quatrain/data/speech_corpus.h"

#include <torch/types.h>

#include "audio_files.h"
#include "flac_files.h"
#include "quatrain/data/audio.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SpeechCorpusTest : public DataTest {
 protected:
  std::filesystem::path record(const std::string& name, int16_t samples = 10) const {
    return write(name, recording(samples));
  }
  SpeechSource source(const std::string& reader, bool skip_bad = false) const {
    SpeechSource source;
    source.reader = reader;
    source.folder = folder_;
    source.skip_bad = skip_bad;
    return source;
  }
  static std::vector<std::string> ids(const std::vector<Utterance>& utterances) {
    std::vector<std::string> all;
    for (const auto& utterance : utterances) all.push_back(utterance.id);
    return all;
  }
  /// The one reason why utterances were left out, its first place and their number.
  static std::string only_reason(const SpeechCorpus& corpus) {
    EXPECT_EQ(corpus.bad.reasons.size(), 1u);
    if (corpus.bad.reasons.empty()) return "";
    const auto& reason = corpus.bad.reasons[0];
    return reason.set + ": " + reason.reason + ", " +
           std::filesystem::path(reason.first).filename().string() + ", " + std::to_string(reason.count);
  }
};

TEST_F(SpeechCorpusTest, NamesItsReaders) {
  std::vector<std::string> names;
  for (const auto& reader : speech_readers()) names.emplace_back(reader.name);
  EXPECT_THAT(names, ElementsAre("timit", "kaldi", "tsv", "fsdd", "yesno"));
  EXPECT_THAT(error_of([&] { load_speech(source("wsj")); }),
              HasSubstr("must be one of timit, kaldi, tsv, fsdd, yesno, got \"wsj\""));
  for (const auto& name : names) {
    EXPECT_THAT(error_of([&] { load_speech(source(name)); }), HasSubstr(folder_.string())) << name;
    SpeechSource none = source(name);
    none.folder = folder_ / "none";
    EXPECT_THAT(error_of([&] { load_speech(none); }), HasSubstr("there is no folder")) << name;
  }
}

TEST_F(SpeechCorpusTest, ReadsTsv) {
  record("clips/a.wav", 20), record("b.wav"), record("c.wav");
  write("train.tsv", "path\ttext\nclips/a.wav\tTwo  words\tann\n\nb.wav\tone\r\n");
  write("val.tsv", "c.wav\tYes\tbob\n");
  const auto corpus = load_speech(source("tsv"));
  ASSERT_THAT(ids(corpus.train), ElementsAre("clips/a.wav", "b.wav"));
  const Utterance& first = corpus.train[0];
  EXPECT_THAT(first.tokens, ElementsAre("Two", "words"));
  EXPECT_EQ(first.speaker, "ann");
  EXPECT_EQ(first.path, folder_ / "clips/a.wav");
  EXPECT_EQ(first.rate, 8000);
  EXPECT_EQ(first.samples(), 20);
  EXPECT_DOUBLE_EQ(first.seconds(), 20 / 8000.0);
  EXPECT_EQ(corpus.train[1].speaker, "b.wav");
  EXPECT_THAT(ids(corpus.dev), ElementsAre("c.wav"));
  EXPECT_THAT(corpus.test, IsEmpty());
  EXPECT_EQ(corpus.bad.count(), 0);
}

TEST_F(SpeechCorpusTest, OneSetOfTsvIsReadAlone) {
  record("c.wav");
  write("valid.tsv", "c.wav\tYes\tbob\n");
  SpeechSource one = source("tsv");
  EXPECT_THAT(error_of([&] { load_speech(one); }), HasSubstr("no file begins with train."));
  one.only = "dev";
  const auto corpus = load_speech(one);
  EXPECT_THAT(ids(corpus.dev), ElementsAre("c.wav"));
  EXPECT_TRUE(corpus.train.empty() && corpus.test.empty());
  write("train.tsv", "missing.wav\tYes\n");
  EXPECT_EQ(load_speech(one).dev.size(), 1u);  // what is not asked for is not read
  one.only = "test";
  EXPECT_THAT(error_of([&] { load_speech(one); }), HasSubstr("missing.wav"));  // there is no test set
  std::filesystem::remove(folder_ / "train.tsv");
  EXPECT_THAT(error_of([&] { load_speech(one); }), HasSubstr("no file begins with test."));
  write("test.csv", "c.wav,Yes\n");
  EXPECT_THAT(error_of([&] { load_speech(one); }),
              HasSubstr("there is no " + (folder_ / "test.tsv").string()));
  write("test.tsv", "missing.wav\tYes\n");
  one.skip_bad = true;
  EXPECT_THAT(error_of([&] { load_speech(one); }), HasSubstr("has no utterance of the test set in the tsv"));
  one.only = "all";
  EXPECT_THAT(error_of([&] { load_speech(one); }), HasSubstr("are train, dev and test, got \"all\""));
  // Speakers who are a set are looked for in all of them.
  one = source("tsv");
  one.only = "test", one.test_speakers = {"bob"};
  write("train.tsv", "c.wav\tYes\tbob\n");
  for (const char* set : {"valid", "test"}) std::filesystem::remove(folder_ / (std::string(set) + ".tsv"));
  EXPECT_THAT(error_of([&] { load_speech(one); }), HasSubstr("no utterance to train on"));
  record("d.wav");
  write("train.tsv", "c.wav\tYes\tbob\nd.wav\tNo\tann\n");
  EXPECT_THAT(ids(load_speech(one).test), ElementsAre("c.wav"));
}

TEST_F(SpeechCorpusTest, TwoDevSetsAreRefused) {
  record("a.wav");
  for (const char* name : {"train.tsv", "dev.tsv", "valid.tsv"}) write(name, "a.wav\tone\n");
  EXPECT_EQ(error_of([&] { load_speech(source("tsv", true)); }),
            "data: there are both " + (folder_ / "dev.tsv").string() +
                " and valid.tsv; remove the one that is not meant");
}

TEST_F(SpeechCorpusTest, RefusesOrCountsBadLines) {
  record("a.wav"), record("b.wav");
  write("torn.wav", wav(sixteen_bits({1, 2}), {}, 100));
  struct Case {
    std::string line, problem, reason;
  };
  for (const auto& [line, problem, reason] :
       {Case{"b.wav", "must have 2 or 3 columns", "a line has other than 2 or 3 columns"},
        {"b.wav\tx\ty\tz", "got 4 in", "a line has other than 2 or 3 columns"},
        {"b.wav\t ", "the text of \"b.wav\" is empty", "the text is empty"},
        {"\tword", "must not be empty", "a path or speaker is empty"},
        {"none.wav\tword", "there is no audio file", "the audio file is missing"},
        {"torn.wav\tword", "torn.wav", "the audio file cannot be read"},
        {"a.wav\tagain", "there is another utterance \"a.wav\"", "two utterances have the same name"},
        {"b.wav\t\xFF", "UTF-8", "a line is not text"}}) {
    write("train.tsv", "a.wav\tword\n" + line + "\n");
    EXPECT_THAT(error_of([&] { load_speech(source("tsv")); }),
                AllOf(testing::StartsWith((folder_ / "train.tsv:2: ").string()), HasSubstr(problem),
                      HasSubstr("; skip_bad leaves such utterances out")))
        << line;
    const auto corpus = load_speech(source("tsv", true));
    EXPECT_THAT(ids(corpus.train), ElementsAre("a.wav"));
    EXPECT_EQ(only_reason(corpus), "train: " + reason + ", train.tsv:2, 1");
  }
  write("train.tsv", "none.wav\tword\n");
  EXPECT_THAT(error_of([&] { load_speech(source("tsv", true)); }),
              AllOf(HasSubstr("no utterance to train on"), HasSubstr("train.tsv:1"), HasSubstr("missing")));
}

TEST_F(SpeechCorpusTest, SortsSpokenDigits) {
  for (const char* speaker : {"ann", "bob"})
    for (int index : {0, 4, 5, 9, 10, 49})
      record("recordings/7_" + std::string(speaker) + "_" + std::to_string(index) + ".wav");
  const auto corpus = load_speech(source("fsdd"));
  EXPECT_THAT(ids(corpus.test), ElementsAre("7_ann_0", "7_ann_4", "7_bob_0", "7_bob_4"));
  EXPECT_THAT(ids(corpus.dev), ElementsAre("7_ann_5", "7_ann_9", "7_bob_5", "7_bob_9"));
  EXPECT_THAT(ids(corpus.train), ElementsAre("7_ann_10", "7_ann_49", "7_bob_10", "7_bob_49"));
  EXPECT_THAT(corpus.train[0].tokens, ElementsAre("7"));
  EXPECT_EQ(corpus.train[0].speaker, "ann");

  SpeechSource held_out = source("fsdd");
  held_out.test_speakers = {"bob"};
  const auto other = load_speech(held_out);
  EXPECT_EQ(other.test.size(), 6u);
  for (const auto& utterance : other.test) EXPECT_EQ(utterance.speaker, "bob");
  EXPECT_THAT(ids(other.dev), ElementsAre("7_ann_5", "7_ann_9"));
  EXPECT_THAT(ids(other.train), ElementsAre("7_ann_0", "7_ann_10", "7_ann_4", "7_ann_49"));

  held_out.test_speakers = {"eve"};
  EXPECT_THAT(error_of([&] { load_speech(held_out); }),
              HasSubstr("no speaker \"eve\" in " + folder_.string() + ", only ann, bob"));
  held_out.dev_speakers = held_out.test_speakers = {"bob"};
  EXPECT_THAT(error_of([&] { load_speech(held_out); }), HasSubstr("\"bob\" is in both"));

  // In any case; FLAC counts where there is no WAV.
  std::filesystem::rename(folder_ / "recordings/7_bob_49.wav", folder_ / "recordings/7_bob_49.WAV");
  const auto write_as_flac = [&](const std::string& name) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_flac(folder_ / name, std::vector<int16_t>(10), 1, 8000);
  };
  write_as_flac("recordings/7_bob_10.flac");
  EXPECT_THAT(ids(load_speech(source("fsdd")).train),
              ElementsAre("7_ann_10", "7_ann_49", "7_bob_10", "7_bob_49"));
  write_as_flac("other/7_eve_3.FLAC");
  SpeechSource flac = source("fsdd");
  flac.folder = folder_ / "other";
  EXPECT_THAT(error_of([&] { load_speech(flac); }), HasSubstr("no utterance to train on"));
  write_as_flac("other/7_eve_30.flac");
  EXPECT_THAT(ids(load_speech(flac).train), ElementsAre("7_eve_30"));

  record("recordings/ten_ann_3.wav");
  EXPECT_THAT(error_of([&] { load_speech(source("fsdd")); }), HasSubstr("must be DIGIT_SPEAKER_INDEX.wav"));
  EXPECT_EQ(only_reason(load_speech(source("fsdd", true))),
            ": a name is not DIGIT_SPEAKER_INDEX.wav, ten_ann_3.wav, 1");
}

TEST_F(SpeechCorpusTest, NamedSpeakersReplaceASet) {
  for (const char* name : {"a.wav", "b.wav", "c.wav"}) record(name);
  write("train.tsv", "a.wav\tx\tann\n");
  write("test.tsv", "b.wav\tx\tbob\nc.wav\tx\tcat\n");
  SpeechSource named = source("tsv");
  named.test_speakers = {"cat"};
  const auto corpus = load_speech(named);
  EXPECT_THAT(ids(corpus.train), ElementsAre("a.wav"));
  EXPECT_THAT(ids(corpus.test), ElementsAre("c.wav"));
}

TEST_F(SpeechCorpusTest, SortsYesAndNo) {
  for (const char* name : {"0_1_1", "0_0_1", "1_1_1", "1_0_0"})
    record("waves_yesno/" + std::string(name) + ".wav");
  write("waves_yesno/README", "not audio");
  const auto corpus = load_speech(source("yesno"));
  EXPECT_THAT(ids(corpus.train), ElementsAre("0_0_1", "1_0_0"));
  EXPECT_THAT(ids(corpus.test), ElementsAre("0_1_1", "1_1_1"));
  EXPECT_THAT(corpus.train[0].tokens, ElementsAre("NO", "NO", "YES"));
  record("waves_yesno/0_2.wav");
  EXPECT_THAT(error_of([&] { load_speech(source("yesno")); }), HasSubstr("zeros and ones"));
}

TEST_F(SpeechCorpusTest, ReadsTheSamplesOfAnUtterance) {
  Utterance utterance;
  utterance.id = "part";
  utterance.path = record("a.wav", 100);
  utterance.begin = 30, utterance.end = 33;
  const auto audio = read_audio(utterance);
  EXPECT_EQ(audio.rate, 8000);
  EXPECT_TRUE(audio.samples.mul(32768).equal(torch::tensor({{30.f, 31.f, 32.f}})));
  utterance.begin = 99, utterance.end = 100;
  EXPECT_TRUE(read_audio(utterance).samples.mul(32768).equal(torch::tensor({{99.f}})));
  utterance.begin = 30, utterance.end = 101;
  EXPECT_THAT(error_of([&] { read_audio(utterance); }),
              HasSubstr("100 samples, but \"part\" is from 30 to 101"));
}

TEST_F(SpeechCorpusTest, OnlyKaldiKnowsStoredFeatures) {
  for (const char* reader : {"timit", "tsv", "fsdd", "yesno"})
    for (const bool stored : {false, true}) {
      SpeechSource wrong = source(reader);
      (stored ? wrong.stored_features : wrong.alignments) = true;
      EXPECT_THAT(error_of([&] { load_speech(wrong); }),
                  AllOf(HasSubstr("the reader " + std::string(reader)), HasSubstr("only kaldi does"),
                        HasSubstr(stored ? "leave stored_features off" : "leave alignments off")));
    }
  Utterance utterance;
  utterance.id = "heard";
  EXPECT_THAT(error_of([&] { read_stored_features(utterance); }),
              HasSubstr("\"heard\" has no stored features"));
  EXPECT_THAT(error_of([&] { read_audio(utterance); }), HasSubstr("\"heard\" has no audio"));
  EXPECT_EQ(utterance.seconds(), 0);
}

}  // namespace
}  // namespace quatrain::data
