// Numbers that are none: what a step that is skipped leaves, what reaches no checkpoint, what is told.

#include "train/finite.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "quatrain/train/trainer.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

class FiniteTest : public FolderTest {
 protected:
  FiniteTest() { run_.folder = folder_ / "run"; }

  RunOptions run_;
};

// As batch norms count and gather in each pass.
TEST_F(FiniteTest, ASkippedStepLeavesRunningStatisticsAsTheyWere) {
  ToyTask task;
  const at::Tensor seen = task.model().register_buffer("seen", torch::zeros({}));
  task.fail_at = 7;
  task.on_loss = [&] { seen.add_(task.asked.size() == 7 ? std::numeric_limits<double>::infinity() : 1.0); };
  TrainerOptions o = toy_options();
  o.nonfinite = NonFinite::skip;
  o.accumulate = 2;
  task.dev = false;
  const Result result = Trainer(task, o, run_).run();
  EXPECT_EQ(result.skipped, 1);
  EXPECT_EQ(seen.item<float>(), 46);
}

TEST_F(FiniteTest, RunningStatisticsThatAreNotFiniteReachNoCheckpoint) {
  ToyTask task;
  const at::Tensor seen = task.model().register_buffer("seen", torch::zeros({}));
  task.on_loss = [&] {
    if (task.asked.size() == 9) seen.fill_(std::numeric_limits<double>::infinity());
  };
  try {
    Trainer(task, toy_options(), run_).run();
    FAIL();
  } catch (const NotFinite& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("the running statistics 'seen' are not finite after step 12; "
                                   "the checkpoint of step 6"));
  }
}

// Whatever figure selects: an accuracy is a number even of answers that are none.
TEST_F(FiniteTest, AnswersThatAreNoNumbersAreNotSelected) {
  ToyTask task;
  task.selecting = "true_loss";  // which falls with every evaluation
  task.scripted = {1, std::nan(""), std::nan(""), 1, 1};
  std::vector<std::string> told;
  RunOptions where = run_;
  where.on_message = [&](const std::string& text) { told.push_back(text); };
  EXPECT_EQ(Trainer(task, toy_options(), where).run().best_step, 24);
  EXPECT_THAT(told,
              testing::ElementsAre(testing::HasSubstr("step 12: the loss of the dev set is not a number"),
                                   testing::HasSubstr("step 18: the loss of the dev set")));
  ToyTask worse;
  worse.selecting = "true_loss";
  worse.scripted = {1, std::nan("")};
  where.folder = run_.folder.string() + "-2";
  EXPECT_EQ(Trainer(worse, toy_options(), where).run().best_step, 6);
}

// What no figure is and what is no number stay different things on the disk.
TEST_F(FiniteTest, AResumedRunRemembersThatItsBestIsNoNumber) {
  ToyTask begun, resumed;
  begun.scripted = resumed.scripted = {std::nan("")};
  EXPECT_EQ(Trainer(begun, toy_options(9), run_).run().best_step, 6);
  run_.existing = Existing::resume;
  EXPECT_EQ(Trainer(resumed, toy_options(24), run_).run().best_step, 6);
}

TEST_F(FiniteTest, ATestLossThatIsNoNumberIsTold) {
  ToyTask task;
  task.scripted = {1, 1, 1, 1, std::nan("")};
  std::vector<std::string> told;
  RunOptions where = run_;
  where.on_message = [&](const std::string& text) { told.push_back(text); };
  EXPECT_TRUE(Trainer(task, toy_options(), where).run().finished);
  EXPECT_THAT(told, testing::Contains(testing::HasSubstr("the loss of the test set is not a number")));
}

}  // namespace
}  // namespace quatrain::train
