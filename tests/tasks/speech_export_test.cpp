#include "quatrain/data/kaldi_archive.h"
#include "tasks/speech_runs.h"

// A run's scores for a hybrid decoder. What is to be decoded has neither an alignment nor a text.
namespace quatrain::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SpeechExportTest : public SpeechRuns {
 protected:
  // Recordings of 5 frames, whose classes are those of a frame of noise or of a tone.
  void write_set(const std::filesystem::path& place, const std::string& name, bool aligned) {
    std::filesystem::create_directories(place);
    std::ofstream list(place / "wav.scp");
    uint64_t state = 3;
    for (int i = 0; i < 2; ++i) {
      const std::string id = name + std::to_string(i);
      auto samples = test::say({i}, state);
      samples.resize(800);
      test::write_recording(place / (id + ".wav"), samples);
      list << id << " " << id << ".wav\n";
      if (aligned) std::ofstream(place / "ali.ark", std::ios::app) << id << " 0 0 0 0 0 1 1 1 1 1\n";
    }
  }
  std::filesystem::path tones(const std::string& set) const { return folder_ / "tones" / set; }
  std::vector<std::string> names(const std::string& list) const {
    std::vector<std::string> all;
    for (const auto& entry : data::read_kaldi_script(folder_ / list)) all.push_back(entry.key);
    return all;
  }
  at::Tensor scores(const std::string& list) const {
    return data::read_kaldi_matrix(data::read_kaldi_script(folder_ / list).front().location);
  }
  std::unique_ptr<Model> trained(const std::vector<std::string>& settings = {}) const {
    return load_run(folder_ / "run", settings_of_tests(settings), Use::scores);
  }

  const std::vector<std::string> settings_{"task.data=kaldi", "task.objective=frames", "features.stack=1",
                                           "train.epochs=1"};
};

TEST_F(SpeechExportTest, ASetWithoutAlignmentsIsNotScoredButWritten) {
  write_set(tones("train"), "train", true);
  write_set(tones("test"), "test", false);
  const std::string missing =
      "there is no ali.scp, ali.ark, ali.gz, ali.*.ark or ali.*.gz in " + tones("test").string();
  EXPECT_THAT(load(settings_)->notes(), testing::Contains("the test set is left out, because " + missing));
  EXPECT_THAT(learn(settings_).test, testing::IsEmpty());
  const auto model = trained();
  EXPECT_THAT(what_is_said([&] { load(settings_, {.split = "test", .model = model.get()}); }),
              HasSubstr(missing));
  // There is no dev set.
  EXPECT_THAT(model->export_to({.format = "kaldi", .folder = folder_ / "made"}),
              ElementsAre(testing::StartsWith("test.ark holds the log posteriors of 2 classes")));
  EXPECT_THAT(names("made/test.scp"), ElementsAre("test0", "test1"));
  EXPECT_EQ(scores("made/test.scp").sizes(), (std::vector<int64_t>{10, 2}));
  // The speakers of such a set cannot be found.
  auto named = settings_;
  named.emplace_back("task.test_speakers=test1");
  EXPECT_THAT(error_of_load(named), testing::AllOf(HasSubstr("no speaker \"test1\""), HasSubstr(missing)));
}

TEST_F(SpeechExportTest, OtherRecordingsAndAPriorScaleAreChosen) {
  write_set(tones("train"), "train", true);
  write_set(tones("test"), "test", true);
  learn(settings_);
  write_set(folder_ / "new", "call", false);  // one folder is the training set
  const auto model = trained({"decode.prior_scale=0.0"});
  const std::string folder = (folder_ / "new").string();
  EXPECT_THAT(what_is_said(
                  [&] { model->export_to({.format = "kaldi", .folder = folder_ / "made", .data = folder}); }),
              HasSubstr("neither a dev nor a test set to score: name another set with --split"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made"));
  // Nor need there be more than the one that is asked for.
  write_set(folder_ / "alone" / "test", "alone", false);
  model->export_to({.format = "kaldi", .folder = folder_ / "one", .data = (folder_ / "alone").string()});
  EXPECT_THAT(names("one/test.scp"), ElementsAre("alone0", "alone1"));
  model->export_to({.format = "kaldi", .folder = folder_ / "made", .data = folder, .split = "train"});
  EXPECT_THAT(names("made/train.scp"), ElementsAre("call0", "call1"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made/test.ark"));
  // Without priors they are probabilities.
  EXPECT_TRUE(scores("made/train.scp").exp().sum(1).allclose(torch::ones({10}), 1e-4, 1e-4));
  trained()->export_to({.format = "kaldi", .folder = folder_ / "less", .data = folder, .split = "train"});
  EXPECT_FALSE(scores("less/train.scp").exp().sum(1).allclose(torch::ones({10}), 1e-4, 1e-4));
}

TEST_F(SpeechExportTest, WhatHasNoScoresIsSaid) {
  write_set(tones("train"), "train", true);
  learn(settings_);
  write_set(tones("test"), "test", false);
  test::write_recording(tones("test") / "test0.wav", {5});
  EXPECT_THAT(trained()->export_to({.format = "kaldi", .folder = folder_ / "made"}),
              testing::Contains("test set: 1 utterance without a frame, left out"));
  EXPECT_THAT(names("made/test.scp"), ElementsAre("test1"));
}

TEST_F(SpeechExportTest, WhatIsStoppedLeavesNothing) {
  write_set(tones("train"), "train", true);
  write_set(tones("test"), "test", true);
  learn(settings_);
  int scored = 0;
  const auto stop = [&] {
    if (++scored == 2) throw std::runtime_error("stopped");
  };
  EXPECT_THAT(what_is_said([&] {
                trained()->export_to({.format = "kaldi", .folder = folder_ / "made", .after_each = stop});
              }),
              HasSubstr("stopped"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith("made")));
}

}  // namespace
}  // namespace quatrain::tasks
