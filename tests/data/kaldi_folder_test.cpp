#include <torch/types.h>

#include "audio_files.h"
#include "quatrain/data/audio.h"
#include "quatrain/data/speech_corpus.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class KaldiFolderTest : public DataTest {
 protected:
  void SetUp() override {
    for (const char* name : {"a.wav", "b.wav"}) write("train/" + std::string(name), recording(8000));
    write("train/wav.scp", "rec1 a.wav\nrec2  " + (folder_ / "train/b.wav").string() + " \n");
    write("train/text", "rec2 yes\nrec1 one two\n");
  }
  SpeechCorpus load(bool skip_bad = false, const std::string& sub = "") const {
    SpeechSource source;
    source.reader = "kaldi";
    source.folder = sub.empty() ? folder_ : folder_ / sub;
    source.skip_bad = skip_bad;
    return load_speech(source);
  }
  /// The error without skipping; and the reasons of skipping.
  void expect_bad(const std::string& place, const std::string& problem, const std::string& reason) const {
    EXPECT_THAT(error_of([&] { load(); }),
                AllOf(HasSubstr((folder_ / "train" / place).string() + ": "), HasSubstr(problem)));
    std::vector<std::string> reasons;
    for (const auto& one : load(true).bad.reasons) reasons.push_back(one.set + ": " + one.reason);
    EXPECT_THAT(reasons, testing::Contains("train: " + reason));
  }
};

TEST_F(KaldiFolderTest, ReadsRecordings) {
  write("valid/wav.scp", "rec3 ../train/a.wav\n");
  write("valid/text", "rec3 three\n");
  write("valid/utt2spk", "rec3 cat\n");
  const auto corpus = load();
  ASSERT_EQ(corpus.train.size(), 2u);
  EXPECT_EQ(corpus.train[0].id, "rec1");
  EXPECT_EQ(corpus.train[0].speaker, "rec1");  // as Kaldi has it where nobody knows
  EXPECT_THAT(corpus.train[0].tokens, ElementsAre("one", "two"));
  EXPECT_EQ(corpus.train[0].samples(), 8000);
  EXPECT_EQ(corpus.train[0].recording, "");
  EXPECT_EQ(corpus.train[1].path, folder_ / "train/b.wav");
  ASSERT_EQ(corpus.dev.size(), 1u);
  EXPECT_EQ(corpus.dev[0].speaker, "cat");
  EXPECT_THAT(corpus.test, IsEmpty());
  EXPECT_EQ(load(false, "train").train.size(), 2u);
}

TEST_F(KaldiFolderTest, OneSetIsReadAlone) {
  write("valid/wav.scp", "rec3 ../train/a.wav\n");
  write("valid/text", "rec3 three\n");
  write("train/wav.scp", "rec1 missing.wav\n");  // what is not asked for is not read
  SpeechSource source;
  source.reader = "kaldi";
  source.folder = folder_;
  source.only = "dev";
  EXPECT_EQ(load_speech(source).dev.size(), 1u);
  source.only = "test";
  EXPECT_THAT(error_of([&] { load_speech(source); }), HasSubstr("missing.wav"));
  write("train/wav.scp", "rec1 a.wav\nrec2 b.wav\n");
  EXPECT_EQ(load_speech(source).train.size(), 2u);  // there is no test set
  std::filesystem::remove(folder_ / "train/wav.scp");
  EXPECT_THAT(error_of([&] { load_speech(source); }),
              AllOf(HasSubstr((folder_ / "test").string()), HasSubstr("needs test/wav.scp and test/text")));
  // One folder is the training set, whatever is asked for.
  source.folder = folder_ / "valid";
  const auto corpus = load_speech(source);
  EXPECT_EQ(corpus.train.size(), 1u);
  EXPECT_THAT(corpus.test, IsEmpty());
}

TEST_F(KaldiFolderTest, WhatNobodyWantsNeedNotBeThere) {
  std::filesystem::remove(folder_ / "train/text");
  SpeechSource source;
  source.reader = "kaldi";
  source.folder = folder_;
  EXPECT_THAT(error_of([&] { load_speech(source); }), HasSubstr("needs wav.scp and text"));
  source.words = false;
  const auto corpus = load_speech(source);
  ASSERT_EQ(corpus.train.size(), 2u);
  EXPECT_THAT(corpus.train[0].tokens, IsEmpty());
  source.only = "test";
  source.only_if_there = true;
  const auto none = load_speech(source);
  EXPECT_TRUE(none.train.empty() && none.dev.empty() && none.test.empty());
}

TEST_F(KaldiFolderTest, ReadsSegments) {
  write("train/text", "u1 one\nu2 two\nu3 three\n");
  write("train/segments", "u1 rec1 0.25 0.5\nu2 rec2 0.5 -1\nu3 rec1 0.9 1.3\n");
  write("train/utt2spk", "u1 ann\nu2 bob\nu3 ann\n");
  const auto corpus = load();
  ASSERT_EQ(corpus.train.size(), 3u);
  const auto span = [&](size_t i) { return std::pair(corpus.train[i].begin, corpus.train[i].end); };
  EXPECT_EQ(span(0), std::pair(int64_t{2000}, int64_t{4000}));
  EXPECT_EQ(span(1), std::pair(int64_t{4000}, int64_t{8000}));
  EXPECT_EQ(span(2), std::pair(int64_t{7200}, int64_t{8000}));  // the end is cut
  EXPECT_EQ(corpus.train[2].speaker, "ann");
  EXPECT_EQ(corpus.train[1].recording, "rec2");
  EXPECT_EQ(corpus.train[1].path, folder_ / "train/b.wav");
}

// Kaldi's extract-segments takes a channel too.
TEST_F(KaldiFolderTest, ASegmentMayNameItsChannel) {
  std::vector<int16_t> samples;
  for (int i = 0; i < 8000; ++i) samples.insert(samples.end(), {1024, -2048});
  write("train/b.wav", wav(sixteen_bits(samples), {.channels = 2, .rate = 8000}));
  write("train/text", "u1 one\nu2 two\nu3 three\nu4 four\nu5 five\n");
  write("train/segments",
        "u1 rec1 0.25 0.5 0\nu2 rec2 0.5 -1 B\nu3 rec2 0.5 0.75 A\nu4 rec2 0 1 1\nu5 rec2 0 1\n");
  const auto corpus = load();
  ASSERT_EQ(corpus.train.size(), 5u);
  const auto samples_of = [&](size_t i) { return read_audio(corpus.train[i]).samples; };
  EXPECT_EQ(samples_of(0).sizes(), (std::vector<int64_t>{1, 2000}));
  EXPECT_EQ(samples_of(1).sizes(), (std::vector<int64_t>{1, 4000}));
  EXPECT_TRUE(samples_of(1).eq(-2048.0 / 32768).all().item<bool>());
  EXPECT_TRUE(samples_of(2).eq(1024.0 / 32768).all().item<bool>());
  EXPECT_TRUE(samples_of(3).equal(samples_of(1).repeat({1, 2})));
  EXPECT_EQ(samples_of(4).size(0), 2);
}

TEST_F(KaldiFolderTest, TellsOfAPlaceInAnArchive) {
  write("train/wav.scp", "rec1 a.wav\nrec2 raw.1.ark:44\n");
  expect_bad("wav.scp:2", "is a place in an archive (raw.1.ark:44)", "a recording is in an archive");
}

TEST_F(KaldiFolderTest, NeverRunsACommand) {
  const auto trace = folder_ / "ran";
  write("train/wav.scp", "rec1 a.wav\nrec2 touch " + trace.string() + " |\n");
  expect_bad("wav.scp:2", "commands are never run; write its audio to a file", "a recording is a command");
  EXPECT_EQ(load(true).train.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST_F(KaldiFolderTest, RefusesOrCountsBadLines) {
  write("train/text", "rec1 one\n");
  expect_bad("wav.scp:2", "\"rec2\" has no line in text", "an utterance has no text");
  write("train/text", "rec1 one\nrec2 two\nrec3 three\n");
  expect_bad("text:3", "\"rec3\" has no line in wav.scp", "a text has no utterance");
  write("train/text", "rec1 one\nrec2\n");
  expect_bad("wav.scp:2", "text of \"rec2\" is empty", "the text is empty");
  write("train/text", "rec1 one\nrec2 two\nrec1 three\n");
  expect_bad("text:3", "begins with \"rec1\" too", "two lines have the same name");
  write("train/text", "rec1 one\nrec2 two\n");
  write("train/utt2spk", "rec1 ann\n");
  expect_bad("wav.scp:2", "\"rec2\" has no speaker in utt2spk", "an utterance has no speaker");
  std::filesystem::remove(folder_ / "train/utt2spk");
  write("train/wav.scp", "rec1 a.wav\nrec2\n");
  expect_bad("wav.scp:2", "has no file behind it", "a recording has no file");
  write("train/wav.scp", "rec1 a.wav\nrec2 none.wav\n");
  expect_bad("wav.scp:2", "there is no audio file", "the audio file is missing");
}

TEST_F(KaldiFolderTest, RefusesOrCountsBadSegments) {
  write("train/text", "u1 one\nu2 two\n");
  const auto expect = [&](const std::string& segment, const std::string& problem, const std::string& reason) {
    write("train/segments", "u1 rec1 0 1\nu2 " + segment + "\n");
    expect_bad("segments:2", problem, reason);
    EXPECT_EQ(load(true).train.size(), 1u);
  };
  for (const char* segment : {"rec1 0", "rec1 0 1 C", "rec1 0 1 2", "rec1 0 1 A A", "rec1 x 1",
                              "rec1 0.5 0.5", "rec1 -1 1", "rec1 0 nan"})
    expect(segment, "begin and end in seconds", "a line of segments is bad");
  expect("rec1 0 1 B", "is of channel B, but the recording \"rec1\" has one channel",
         "a segment's channel is missing");
  expect("rec9 0 1", "\"rec9\" has no line in wav.scp", "a segment's recording is unknown");
  expect("rec1 1 -1", "has only 1.0", "a segment exceeds its recording");
  expect("rec1 0.5 1.6", "from 0.5 to 1.6 s", "a segment exceeds its recording");
  expect("rec1 0.5 0.50001", "no sample at 8000 Hz", "a segment holds no sample");
}

TEST_F(KaldiFolderTest, NamesDifferAcrossSets) {
  write("dev/wav.scp", "rec3 ../train/a.wav\nrec1 ../train/b.wav\n");
  write("dev/text", "rec3 three\nrec1 one\n");
  EXPECT_EQ(error_of([&] { load(); }),
            (folder_ / "dev/wav.scp:2").string() + ": there is another utterance \"rec1\" at " +
                (folder_ / "train/wav.scp:1").string() +
                "; names must differ, those of other sets too; skip_bad leaves such utterances out");
  EXPECT_EQ(load(true).dev.size(), 1u);
}

TEST_F(KaldiFolderTest, TwoDevSetsAreRefused) {
  for (const std::string set : {"dev", "valid"}) {
    write(set + "/wav.scp", set + " ../train/a.wav\n");
    write(set + "/text", set + " three\n");
  }
  EXPECT_EQ(error_of([&] { load(); }), "data: there are both " + (folder_ / "dev").string() +
                                           " and valid; remove the one that is not meant");
}

TEST_F(KaldiFolderTest, NeedsItsFiles) {
  std::filesystem::remove(folder_ / "train/text");
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("there is no " + (folder_ / "train/text").string()));
  std::filesystem::remove(folder_ / "train/wav.scp");
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("there is no wav.scp in"));
}

}  // namespace
}  // namespace quatrain::data
