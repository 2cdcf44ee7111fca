// What a run goes on from: folders that have lost a part, other data, other patience.

#include "train/resume.h"

#include <c10/util/StringUtil.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"
#include "train/checkpoint.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

class ResumeTest : public FolderTest {
 protected:
  static TrainerOptions options(int64_t steps = 24) {
    TrainerOptions options = toy_options(steps);
    options.keep = 9;
    return options;
  }

  Result train(ToyTask& task, const TrainerOptions& o, const std::string& from = "last") {
    RunOptions run;
    run.folder = run_;
    run.existing = Existing::resume;
    run.from = from;
    run.stop = &stop_;
    run.on_progress = [&](const Progress& p) { stop_ = p.step == stop_at_; };
    run.on_message = [&](const std::string& text) { told_ += text + "\n"; };
    return Trainer(task, o, run).run();
  }
  std::string refusal(ToyTask& task, const TrainerOptions& o, const std::string& from = "last") {
    return message_of([&] { train(task, o, from); });
  }

  std::string weights(const std::string& checkpoint) const {
    return contents(run_ / checkpoint / "model.safetensors");
  }
  static void tear(const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }

  fs::path run_ = folder_ / "run";
  std::atomic<bool> stop_{false};
  int64_t stop_at_ = -1;
  std::string told_;
};

TEST_F(ResumeTest, ARunHasACheckpointFromTheStart) {
  ToyTask straight, killed, resumed;
  const Result whole = train(straight, options());
  fs::rename(run_, folder_ / "whole");
  killed.fail_at = 1;
  EXPECT_THAT(refusal(killed, options()), HasSubstr("the checkpoint of step 0 in"));
  EXPECT_TRUE(fs::exists(run_ / "last" / "recipe.toml"));
  EXPECT_EQ(sound_checkpoints(run_).front().step, 0);
  torch::manual_seed(99);
  EXPECT_EQ(train(resumed, options()).test, whole.test);
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
}

TEST_F(ResumeTest, AFinishedRunWithoutCheckpointsIsNotTrainedAnew) {
  ToyTask task, again, more;
  const Result result = train(task, options());
  for (const auto& checkpoint : sound_checkpoints(run_)) fs::remove_all(run_ / checkpoint.name);
  const std::string best = weights("best"), metrics = contents(run_ / "metrics.jsonl");
  EXPECT_EQ(train(again, options()).test, result.test);
  EXPECT_TRUE(again.asked.empty());
  EXPECT_THAT(refusal(more, options(30)),
              AllOf(HasSubstr("finished after 24 steps"), HasSubstr("is missing")));
  EXPECT_EQ(weights("best"), best);
  EXPECT_EQ(contents(run_ / "metrics.jsonl"), metrics);
}

TEST_F(ResumeTest, AFinishedRunWithoutItsLastCheckpointGivesItsResult) {
  ToyTask task, again, more;
  const Result result = train(task, options());
  fs::remove_all(run_ / "last");
  ASSERT_TRUE(has_checkpoint(run_));  // older ones are there
  EXPECT_EQ(train(again, options()).test, result.test);
  EXPECT_TRUE(again.asked.empty());
  EXPECT_THAT(refusal(more, options(30)),
              AllOf(HasSubstr("no checkpoint 'last'"), HasSubstr("--from step-")));
}

TEST_F(ResumeTest, TheAdviceForAFinishedRunWithoutItsBestWeightsIsTheOneThatHelps) {
  ToyTask task, resumed;
  task.scripted = {0.5, 0.2, 0.9, 0.8, 0.7};
  EXPECT_EQ(train(task, options()).best_step, 12);
  fs::remove_all(run_ / "best");
  try {
    find_checkpoint(run_, "best");
    ADD_FAILURE() << "it is missing";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the run is finished"), HasSubstr("or delete '"),
                                    testing::Not(HasSubstr("--from"))));
  }
  fs::remove(run_ / "result.json");
  resumed.scripted = {0.6};
  EXPECT_TRUE(train(resumed, options()).finished);
}

// It is that of the weights on the disk until others take their place.
TEST_F(ResumeTest, AFinishedRunThatGoesOnKeepsItsResultUntilTheNextCheckpoint) {
  ToyTask task, killed, stopped;
  EXPECT_TRUE(train(task, options(24)).finished);
  const std::string before = contents(run_ / "result.json");
  const std::string lines = contents(run_ / "metrics.jsonl");
  ToyTask again;
  killed.fail_at = 5;
  EXPECT_THAT(refusal(killed, options(48)), HasSubstr("at step 29"));
  EXPECT_EQ(contents(run_ / "result.json"), before);
  EXPECT_NE(contents(run_ / "metrics.jsonl"), lines);
  EXPECT_TRUE(train(again, options(24)).finished);
  EXPECT_EQ(contents(run_ / "metrics.jsonl"), lines);
  stop_at_ = 26;
  EXPECT_FALSE(train(stopped, options(48)).finished);
  EXPECT_FALSE(fs::exists(run_ / "result.json"));
}

TEST_F(ResumeTest, AStoppedRunWithoutCheckpointsIsNotTrainedAnew) {
  ToyTask task, resumed;
  stop_at_ = 14;
  EXPECT_FALSE(train(task, options()).finished);
  for (const auto& checkpoint : sound_checkpoints(run_)) fs::remove_all(run_ / checkpoint.name);
  const std::string best = weights("best");
  stop_at_ = -1;
  EXPECT_THAT(refusal(resumed, options()), HasSubstr("'last' is missing"));
  EXPECT_EQ(weights("best"), best);
}

TEST_F(ResumeTest, BestWeightsThatAreGoneAreSelectedAnew) {
  for (const bool damaged : {false, true}) {
    for (const bool finished : {false, true}) {
      SCOPED_TRACE(damaged);
      SCOPED_TRACE(finished);
      ToyTask task, resumed, stored;
      task.scripted = {0.5, 0.2, 0.9, 0.8, 0.7};
      stop_at_ = finished ? -1 : 14;
      EXPECT_EQ(train(task, options()).best_step, 12);
      damaged ? tear(run_ / "best" / "model.safetensors") : (void)fs::remove_all(run_ / "best");
      stop_at_ = -1;
      stop_ = false;
      told_.clear();
      resumed.scripted = {0.6, 0.8};
      if (finished) {  // with a result that is sound, which is not given up
        const std::string before = contents(run_ / "result.json");
        EXPECT_THAT(refusal(resumed, options()),
                    AllOf(HasSubstr("it is finished, and its best weights"),
                          HasSubstr(damaged ? "model.safetensors has" : "it is missing"),
                          HasSubstr("delete result.json and resume")));
        EXPECT_EQ(contents(run_ / "result.json"), before);
        EXPECT_EQ(fs::exists(run_ / "best"), damaged);
        fs::remove(run_ / "result.json");
      }
      const Result result = train(resumed, options());
      EXPECT_EQ(fs::exists(run_ / "best.damaged"), damaged);
      EXPECT_TRUE(result.finished);
      EXPECT_THAT(told_, AllOf(HasSubstr("those of step 12"), HasSubstr("selects new ones")));
      EXPECT_EQ(result.best_step, finished ? 24 : 18);
      EXPECT_EQ(result.dev.at("loss"), 0.6);
      EXPECT_EQ(step_of(find_checkpoint(run_, "best")), result.best_step);
      EXPECT_TRUE(train(stored, options()).finished);  // and stays so
      EXPECT_TRUE(stored.asked.empty());
      fs::remove_all(run_);
    }
  }
}

TEST_F(ResumeTest, BestWeightsThatAreTheLastAreWrittenAgain) {
  ToyTask task, resumed;
  task.scripted = {0.5, 0.4, 0.3, 0.2, 0.1};
  const Result result = train(task, options());
  const std::string best = weights("best");
  tear(run_ / "best" / "model.safetensors");
  EXPECT_EQ(train(resumed, options()).best_step, 24);
  EXPECT_THAT(told_, AllOf(HasSubstr("is damaged (model.safetensors has"), HasSubstr("best.damaged'")));
  EXPECT_EQ(weights("best"), best);
  EXPECT_EQ(read_result(run_).dev, result.dev);
}

// best/ is of a later step than what is gone on from.
TEST_F(ResumeTest, AnOlderCheckpointKnowsNothingOfLaterWeights) {
  for (const int64_t from : {12, 18}) {
    ToyTask task, resumed;
    task.scripted = {0.5, 0.4, 0.6, 0.1};
    EXPECT_EQ(train(task, options()).best_step, 24);
    resumed.scripted = {0.9};
    const Result result = train(resumed, options(from + 2), "step-0000" + std::to_string(from));
    // The weights of step 12 are those of the checkpoint; from that of step 18 they cannot be had again.
    EXPECT_EQ(result.best_step, from == 12 ? 12 : 20);
    EXPECT_EQ(step_of(find_checkpoint(run_, "best")), result.best_step);
    EXPECT_EQ(read_result(run_).dev.at("loss"), from == 12 ? 0.4 : 0.9);
    fs::remove_all(run_);
  }
}

// As where a backup brings back a part of a folder.
TEST_F(ResumeTest, CheckpointsOfAnotherRunAreRefused) {
  ToyTask one, two;
  TrainerOptions otherwise = options();
  otherwise.seed = 2;
  train(one, otherwise);
  fs::rename(run_, folder_ / "other");
  train(two, options());
  fs::rename(run_, folder_ / "own");
  for (const std::string which : {"best", "last", "step-000012"})
    for (const bool finished : {true, false}) {
      SCOPED_TRACE(which);
      fs::remove_all(run_);
      fs::copy(folder_ / "own", run_, fs::copy_options::recursive);
      fs::remove_all(run_ / which);
      fs::copy(folder_ / "other" / which, run_ / which);
      if (!finished) fs::remove(run_ / "result.json");
      const std::string best = weights("best"), last = weights("last");
      ToyTask again;
      EXPECT_THAT(refusal(again, options(30)),
                  AllOf(HasSubstr("is of another run than '"), HasSubstr("'" + which + "'")));
      EXPECT_EQ(weights("best"), best);
      EXPECT_EQ(weights("last"), last);
      EXPECT_EQ(fs::exists(run_ / "result.json"), finished);
    }
  // What older versions wrote does not say so; gone on from, it is of the run that the others name.
  seal_checkpoint(run_ / "step-000012", 12, "");
  const std::string name = run_of(run_ / "last");
  ToyTask older;
  TrainerOptions longer = otherwise;
  longer.steps = 30;
  EXPECT_TRUE(train(older, longer, "step-000012").finished);
  EXPECT_EQ(run_of(run_ / "last"), name);
}

// The state between two renames.
TEST_F(ResumeTest, AnOldLastCheckpointCanBeNamed) {
  ToyTask straight, task, resumed;
  const Result whole = train(straight, options(30));
  fs::remove_all(run_);
  stop_at_ = 12;
  train(task, options(30));
  stop_at_ = -1, stop_ = false;
  fs::rename(run_ / "last", run_ / "last.old");
  EXPECT_EQ(sound_checkpoints(run_).front().name, "last.old");
  EXPECT_EQ(train(resumed, options(30), "last.old").test, whole.test);
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
  EXPECT_TRUE(fs::exists(run_ / "last"));
  EXPECT_FALSE(fs::exists(run_ / "last.old"));
}

TEST_F(ResumeTest, OtherWordsThanTheCheckpointsAreRefused) {
  ToyTask task, other;
  stop_at_ = 9;
  train(task, options());
  stop_at_ = -1;
  other.words = "b\n";
  EXPECT_THAT(refusal(other, options()), AllOf(HasSubstr("words.txt differs"), HasSubstr("start a new run")));
  EXPECT_FALSE(fs::exists(run_ / "last.part"));
  stop_ = false;
  EXPECT_TRUE(train(task, options()).finished);
}

// It may be read-only.
TEST_F(ResumeTest, NothingIsWrittenIntoAFinishedRun) {
  struct Watching : ToyTask {
    void store(const fs::path& folder) const override {
      places.push_back(folder);
      ToyTask::store(folder);
    }
    mutable std::vector<fs::path> places;
  };
  Watching task, again;
  const Result result = train(task, options());
  EXPECT_EQ(train(again, options()).test, result.test);
  ASSERT_EQ(again.places.size(), 1u);
  EXPECT_NE(again.places[0].parent_path(), run_);
  EXPECT_FALSE(fs::exists(again.places[0]));
}

TEST_F(ResumeTest, AnInfiniteBestStaysOne) {
  const double infinity = std::numeric_limits<double>::infinity();
  TrainerOptions o = options(48);
  o.patience = 2;
  for (const double figure : {infinity, -infinity, std::nan("")}) {
    fs::remove_all(run_);
    ToyTask task, rest;
    task.scripted = rest.scripted = {figure};
    stop_at_ = 8;
    train(task, o);
    stop_at_ = -1, stop_ = false;
    const Result result = train(rest, o);
    EXPECT_TRUE(result.stopped_early);
    EXPECT_EQ(result.steps, 18) << figure;
    EXPECT_EQ(c10::str(result.dev.at("loss")), c10::str(figure));
  }
}

TEST_F(ResumeTest, MorePatienceLiftsAnEarlyStop) {
  ToyTask task, same, more;
  task.scripted = {0.5, 0.6, 0.7};
  TrainerOptions o = options();
  o.patience = 2;
  EXPECT_TRUE(train(task, o).stopped_early);
  EXPECT_EQ(train(same, o).steps, 18);
  EXPECT_TRUE(same.asked.empty());
  o.patience = 0;
  more.scripted = {0.9};
  const Result result = train(more, o);
  EXPECT_EQ(result.steps, 24);
  EXPECT_FALSE(result.stopped_early);
  EXPECT_EQ(result.best_step, 6);
}

}  // namespace
}  // namespace quatrain::train
