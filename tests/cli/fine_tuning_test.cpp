// Training that starts from the weights of another run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr, testing::Not;

class FineTuning : public testing::Test {
 protected:
  FineTuning() {
    const Outcome outcome = place_.run("train agreement" + kSmall + " --set train.steps=2 --out base");
    EXPECT_EQ(outcome.code, 0) << outcome.error;
  }
  Outcome tune(const std::string& more) const {
    return place_.run("train base --weights base --set train.steps=4 " + more);
  }
  void expect_refused(const Outcome& outcome, const std::string& sentence) const {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error, HasSubstr(sentence));
    EXPECT_THAT(outcome.out, testing::IsEmpty());
  }

  Workplace place_;
};

TEST_F(FineTuning, a_run_does_not_take_the_place_of_that_it_starts_from) {
  expect_refused(tune("--out base --overwrite"),
                 "--overwrite would replace the run 'base' that training starts from (train.weights)");
  expect_refused(place_.run("train base --weights base/best/model.safetensors --out ./base --overwrite"),
                 "that training starts from");
  expect_refused(place_.run("train base --weights '' --out new"), "--weights: must name a run or a file");
  for (const char* out : {"new", "new", "runs/new", "base-2"}) {
    const Outcome outcome = tune("--overwrite --out " + std::string(out));
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("the vocabulary is that of"));
  }
}

TEST_F(FineTuning, a_run_goes_on_and_is_timed_without_that_it_started_from) {
  const std::string evenly = " --weights base --set train.schedule=constant --set train.warmup=0 --out ";
  ASSERT_EQ(place_.run("train base --set train.steps=4" + evenly + "whole").code, 0);
  ASSERT_EQ(place_.run("train base --set train.steps=2" + evenly + "half").code, 0);
  fs::remove_all(place_.path("base"));
  const Outcome outcome = place_.run("train half --resume --set train.steps=4");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, AllOf(Not(HasSubstr("vocabulary")), Not(HasSubstr("random weights"))));
  EXPECT_TRUE(place_.read("half/last/model.safetensors") == place_.read("whole/last/model.safetensors"));
  EXPECT_EQ(place_.run("bench model half --seconds 0.1").code, 0);
}

TEST_F(FineTuning, settings_of_the_vocabulary_that_would_do_nothing_are_refused) {
  expect_refused(tune("--set task.min_count=7 --out new"),
                 "--set task.min_count=7: task.min_count would do nothing: the vocabulary is that of");
  EXPECT_FALSE(fs::exists(place_.path("new")));
  const Outcome outcome = tune("--set task.min_count=1 --out new");  // as it was
  EXPECT_EQ(outcome.code, 0) << outcome.error;
}

TEST_F(FineTuning, weights_beside_a_recipe_are_no_checkpoint) {
  fs::create_directories(place_.path("mine"));
  for (const char* file : {"recipe.toml", "model.safetensors"})
    fs::copy(place_.path("base/best/" + std::string(file)), place_.path("mine/" + std::string(file)));
  const Outcome outcome = place_.run("train mine/recipe.toml --weights mine/model.safetensors --out new");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, Not(HasSubstr("the vocabulary is that of")));
}

// Before the first of them is trained.
TEST_F(FineTuning, twins_that_cannot_start_from_the_weights_are_named) {
  const std::string recipe = place_.read("base/best/recipe.toml");
  place_.write("twins.toml",
               recipe + "\n[[twins]]\nname = \"same\"\n[[twins]]\nname = \"wide\"\nwidth = 64\n");
  const Outcome outcome = place_.run("compare twins.toml --set train.weights=base --out both");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("the twin 'wide' cannot start from train.weights: weights: '"),
                                   Not(HasSubstr("step 1"))));
  EXPECT_FALSE(fs::exists(place_.path("both/same-seed1")));
}

TEST_F(FineTuning, a_folder_that_is_called_like_a_recipe_does_not_hide_it) {
  fs::create_directories(place_.path("agreement"));
  EXPECT_EQ(place_.run("train agreement" + kSmall + " --set train.steps=1 --out new").code, 0);
}

TEST_F(FineTuning, a_plot_says_whose_figure_there_is_not) {
  ASSERT_EQ(place_.run("train hamilton --set train.steps=2 --set train.threads=1 --out other").code, 0);
  const Outcome outcome = place_.run("plot base other --figure accuracy --out both.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("other has no accuracy of the dev set"));
}

}  // namespace
}  // namespace quatrain::cli
