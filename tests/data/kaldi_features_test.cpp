#include <torch/types.h>
#include <zlib.h>

#include "kaldi_files.h"
#include "quatrain/data/audio.h"
#include "quatrain/data/kaldi_archive.h"
#include "quatrain/data/speech_corpus.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Folders with stored features, and with alignments.
class KaldiFeaturesTest : public DataTest {
 protected:
  void SetUp() override {
    store("train", {{"u1", 3}, {"u2", 2}});
    write("train/text", "u1 one\nu2 two words\n");
    write("train/ali.ark", "u2 " + kaldi_integers({4, 4}) + "other " + kaldi_integers({9}) + "u1 " +
                               kaldi_integers({0, 1, 2}));
  }
  /// Features that count from 0 on, of so many frames and 2 columns.
  void store(const std::string& set, const std::vector<std::pair<std::string, int64_t>>& utterances) const {
    std::filesystem::create_directories(folder_ / set);
    KaldiArchiveWriter writer(folder_ / set / "feats.ark", folder_ / set / "feats.scp");
    for (const auto& [id, frames] : utterances)
      writer.write(id, torch::arange(frames * 2, torch::kFloat).view({frames, 2}));
    writer.close();
  }
  SpeechSource source() const {
    SpeechSource source;
    source.reader = "kaldi";
    source.folder = folder_;
    source.stored_features = source.alignments = true;
    return source;
  }
  std::string error() const {
    return error_of([&] { load_speech(source()); });
  }
  /// The error without skipping; and the only reason of skipping, of which one utterance remains.
  void expect_bad(const std::string& place, const std::string& problem, const std::string& reason) const {
    EXPECT_THAT(error(), AllOf(testing::StartsWith((folder_ / "train" / place).string() + ": "),
                               HasSubstr(problem), HasSubstr("skip_bad leaves such utterances out")));
    SpeechSource skipping = source();
    skipping.skip_bad = true;
    const auto corpus = load_speech(skipping);
    ASSERT_EQ(corpus.bad.reasons.size(), 1u);
    EXPECT_EQ(corpus.bad.reasons[0].set + ": " + corpus.bad.reasons[0].reason, "train: " + reason);
    EXPECT_EQ(corpus.bad.count(), 1);
    ASSERT_EQ(corpus.train.size(), 1u);
    EXPECT_EQ(corpus.train[0].id, "u1");
  }
};

TEST_F(KaldiFeaturesTest, ReadsStoredFeaturesAndAlignments) {
  store("valid", {{"u3", 4}});
  write("valid/text", "u3 three\n");
  write("valid/utt2spk", "u3 ann\n");
  write("valid/ali.scp", "u3 u3.vec\n");
  write("valid/u3.vec", kaldi_integers({5, 6, 7, 8}));
  write("train/segments", "not read");
  const auto corpus = load_speech(source());
  ASSERT_EQ(corpus.train.size(), 2u);
  const Utterance& first = corpus.train[0];
  EXPECT_EQ(first.id, "u1");
  EXPECT_THAT(first.tokens, ElementsAre("one"));
  EXPECT_EQ(first.frames, 3);
  EXPECT_EQ(first.rate, 0);
  EXPECT_EQ(first.samples(), 0);
  EXPECT_EQ(first.seconds(), 0);
  EXPECT_THAT(first.path.string(), IsEmpty());
  EXPECT_THAT(first.labels, ElementsAre(0, 1, 2));
  EXPECT_EQ(first.stored, (folder_ / "train/feats.ark:3").string());
  EXPECT_TRUE(read_stored_features(first).equal(torch::arange(6, torch::kFloat).view({3, 2})));
  EXPECT_THAT(error_of([&] { read_audio(first); }), HasSubstr("\"u1\" has no audio"));
  EXPECT_THAT(corpus.train[1].labels, ElementsAre(4, 4));
  ASSERT_EQ(corpus.dev.size(), 1u);
  EXPECT_THAT(corpus.dev[0].labels, ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(corpus.dev[0].speaker, "ann");

  Utterance changed = first;
  changed.frames = 4;
  EXPECT_THAT(error_of([&] { read_stored_features(changed); }), HasSubstr("has 3 frames, but had 4"));
}

TEST_F(KaldiFeaturesTest, ReadsRowsOfARecording) {
  const auto ark = (folder_ / "train/feats.ark").string();
  write("train/feats.scp", "u1 " + ark + ":3[1:2]\nu2 feats.ark:3[0:1]\n");
  SpeechSource features = source();
  features.alignments = false;
  const auto corpus = load_speech(features);
  EXPECT_EQ(corpus.train[0].frames, 2);
  EXPECT_THAT(corpus.train[0].labels, IsEmpty());
  EXPECT_TRUE(read_stored_features(corpus.train[0]).equal(torch::tensor({{2.f, 3.f}, {4.f, 5.f}})));
  EXPECT_TRUE(read_stored_features(corpus.train[1]).equal(torch::tensor({{0.f, 1.f}, {2.f, 3.f}})));
}

TEST_F(KaldiFeaturesTest, ReadsAlignmentsOfRecordings) {
  std::filesystem::remove(folder_ / "train/feats.scp");
  write("train/wav.scp", "u1 u1.wav\nu2 u1.wav\n");
  write("train/u1.wav", recording(8000));
  SpeechSource heard = source();
  heard.stored_features = false;
  const auto corpus = load_speech(heard);
  ASSERT_EQ(corpus.train.size(), 2u);
  EXPECT_THAT(corpus.train[0].labels, ElementsAre(0, 1, 2));
  EXPECT_EQ(corpus.train[0].frames, 0);
  EXPECT_THAT(corpus.train[0].stored, IsEmpty());
  EXPECT_EQ(corpus.train[0].samples(), 8000);
}

TEST_F(KaldiFeaturesTest, ReadsArchivesInParts) {
  std::filesystem::remove(folder_ / "train/ali.ark");
  gzFile stream = gzopen((folder_ / "train/ali.1.gz").c_str(), "wb");
  const std::string bytes = "u1 " + kaldi_integers({7, 7, 7});
  gzwrite(stream, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(stream);
  write("train/ali.2.ark", "u2 8 8\n");
  const auto corpus = load_speech(source());
  EXPECT_THAT(corpus.train[0].labels, ElementsAre(7, 7, 7));
  EXPECT_THAT(corpus.train[1].labels, ElementsAre(8, 8));

  write("train/ali.3.ark", "u2 8 9\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("\"u2\" is in ali.2.ark and in "), HasSubstr("ali.3.ark; remove")));
}

TEST_F(KaldiFeaturesTest, RefusesOrCountsBadUtterances) {
  const std::string one = "u1 " + kaldi_integers({0, 1, 2});
  write("train/ali.ark", one);
  expect_bad("feats.scp:2", "\"u2\" has no alignment", "an utterance has no alignment");
  write("train/ali.ark", one + "u2 " + kaldi_integers({1, 2, 3}));
  expect_bad("feats.scp:2", "the alignment of \"u2\" has 3 frames, but its stored features have 2",
             "an alignment is not as long as its features");
  write("train/ali.ark", one + "u2 " + kaldi_integers({1, -2}));
  expect_bad("feats.scp:2", "classes from 0 on, but one is -2", "an alignment has a negative class");
  write("train/u1.vec", kaldi_integers({0, 1, 2}));
  write("train/ali.scp", "u1 u1.vec\nu2 u2.vec\n");
  expect_bad("feats.scp:2", "u2.vec cannot be read: there is no such file", "an alignment cannot be read");
  std::filesystem::remove(folder_ / "train/ali.scp");
  write("train/ali.ark", one + "u2 " + kaldi_integers({1, 2}));

  const auto list = [&](const std::string& location) {
    write("train/feats.scp", "u1 feats.ark:3\nu2" + location + "\n");
  };
  list("");
  expect_bad("feats.scp:2", "have no file behind their name", "stored features have no file");
  list(" copy-feats ark:a ark:- |");
  expect_bad("feats.scp:2", "commands are never run", "stored features cannot be read");
  list(" feats.ark:4");
  expect_bad("feats.scp:2", "feats.ark: the entry at byte 4", "stored features cannot be read");
  list(" empty.mat");
  write("train/empty.mat", kaldi_matrix<float>(0, 0, {}));
  expect_bad("feats.scp:2", "the features of \"u2\" have no frame", "stored features have no frame");
}

TEST_F(KaldiFeaturesTest, RefusesAWrongSetAlways) {
  SpeechSource skipping = source();
  skipping.skip_bad = true;
  const auto always = [&](const std::string& problem) {
    EXPECT_THAT(error_of([&] { load_speech(skipping); }), HasSubstr(problem));
  };
  write("test/feats.scp", "u4 u4.mat\n");
  write("test/u4.mat", kaldi_matrix<float>(1, 3, {1, 2, 3}));
  write("test/text", "u4 four\n");
  write("test/ali.ark", "u4 1\n");
  always("feats.scp:1: the features of \"u4\" have 3 columns, but those of \"u1\" have 2");
  std::filesystem::remove_all(folder_ / "test");
  write("train/ali.ark", "u1 " + kaldi_integers({0, 1, 2}).substr(0, 9));
  always("ali.ark: the entry \"u1\"");
  std::filesystem::remove(folder_ / "train/ali.ark");
  always("there is no ali.scp, ali.ark, ali.gz, ali.*.ark or ali.*.gz in " + (folder_ / "train").string());
  std::filesystem::remove(folder_ / "train/feats.scp");
  always("there is no feats.scp in");
}

}  // namespace
}  // namespace quatrain::data
