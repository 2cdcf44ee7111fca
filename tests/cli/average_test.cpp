// Checkpoints of a run are averaged into another run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf, testing::HasSubstr, testing::Not;

class AverageCommand : public testing::Test {
 protected:
  void train(const std::string& more = "") const {
    const Outcome outcome = place_.run("train agreement" + kSmall +
                                       " --set train.steps=12 --set train.evaluate_every=4 --keep 3"
                                       " --out run" +
                                       more);
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  }
  void expect_refused(const std::string& words, int code, const std::string& sentence) const {
    SCOPED_TRACE(words);
    const Outcome outcome = place_.run("average " + words);
    EXPECT_EQ(outcome.code, code);
    EXPECT_THAT(outcome.error, HasSubstr(sentence));
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
    EXPECT_THAT(outcome.out, testing::IsEmpty());
    EXPECT_FALSE(fs::exists(place_.path("mean")) || fs::exists(place_.path("mean.part")));
  }
  json result_of(const std::string& run) const { return json::parse(place_.read(run + "/result.json")); }

  Workplace place_;
};

TEST_F(AverageCommand, a_mean_is_a_run_like_others) {
  train();
  const Outcome outcome = place_.run("average run --last 2 --out mean");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("2 checkpoints, of steps 8 and 12"), HasSubstr("run's best"),
                                 HasSubstr("test accuracy"), HasSubstr("quatrain predict mean")));
  const json result = result_of("mean");
  EXPECT_NE(result["weights"], result_of("run")["weights"]);
  EXPECT_EQ(json::parse(place_.run("evaluate mean --json -").out)["figures"], result["test"]);
  EXPECT_EQ(json::parse(place_.run("evaluate mean --split dev --json -").out)["figures"], result["dev"]);
  EXPECT_EQ(place_.run("predict mean", "the key\n").code, 0);
  const Outcome checked = place_.run("check mean");
  EXPECT_EQ(checked.code, 0) << checked.error;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("a mean of checkpoints"), HasSubstr("60 answers"),
                                 Not(HasSubstr("last")), Not(HasSubstr("metrics"))));
  EXPECT_THAT(place_.run("runs .").out, testing::ContainsRegex("mean +finished +real"));
  const Outcome converted = place_.run("convert mean small --algebra quaternion");
  EXPECT_EQ(converted.code, 0) << converted.error;
  // It is where training starts; it cannot be gone on with.
  const std::string still = " --set train.rate=1e-12 --set train.steps=1 --out tuned";
  ASSERT_EQ(place_.run("train mean" + still).code, 0);
  EXPECT_NEAR(result_of("tuned")["test"]["loss"].get<double>(), result["test"]["loss"].get<double>(), 1e-5);
  EXPECT_EQ(place_.run("train mean --resume").code, 0);
  const Outcome further = place_.run("train mean --resume --set train.steps=20");
  EXPECT_EQ(further.code, 1);
  EXPECT_THAT(further.error, HasSubstr("start a new run in another folder"));
  // Damage is told with what helps.
  std::ofstream(place_.path("mean/predictions.tsv"), std::ios::app) << "1\n";
  EXPECT_THAT(place_.run("check mean").out, HasSubstr("make the mean again with quatrain average"));
}

TEST_F(AverageCommand, takes_all_that_are_kept) {
  train();
  const Outcome all = place_.run("average run --out mean");
  ASSERT_EQ(all.code, 0) << all.error;
  EXPECT_THAT(all.out, HasSubstr("3 checkpoints, of steps 4, 8 and 12"));
  EXPECT_THAT(all.error, Not(HasSubstr("train.keep")));
  const Outcome more = place_.run("average run --last 5 --out more");
  EXPECT_THAT(more.error, HasSubstr("the run keeps 3 checkpoints, not 5: train.keep says how many"));
  EXPECT_EQ(result_of("more")["test"], result_of("mean")["test"]);
  EXPECT_THAT(more.error, Not(HasSubstr("is learned")));
}

TEST_F(AverageCommand, takes_the_best_of_those_that_are_kept) {
  train(" --set train.rate=3e-2 --set train.warmup=0");
  // What the run says of each evaluation, the best last.
  std::vector<std::pair<double, int64_t>> evaluated;
  std::istringstream metrics(place_.read("run/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);)
    if (const json record = json::parse(line); record["kind"] == "evaluation")
      evaluated.emplace_back(record["figures"]["accuracy"], record["step"]);
  ASSERT_EQ(evaluated.size(), 3U);
  std::sort(evaluated.begin(), evaluated.end());
  const auto [older, newer] = std::minmax(evaluated[1].second, evaluated[2].second);
  const Outcome outcome = place_.run("average run --best 2 --out mean");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("2 checkpoints, of steps " + std::to_string(older) + " and " +
                                     std::to_string(newer) + ": the best of 3"));
  const json record = json::parse(place_.read("mean/best/average.json"));
  EXPECT_EQ(record["best_by"], "accuracy");
  ASSERT_EQ(record["mean_of"].size(), 2U);
  EXPECT_EQ(record["mean_of"][0]["step"], older);
  EXPECT_EQ(std::max(record["mean_of"][0]["dev"]["accuracy"], record["mean_of"][1]["dev"]["accuracy"]),
            evaluated[2].first);
  EXPECT_EQ(place_.run("check mean").code, 0);
  EXPECT_THAT(place_.run("average run --best 5 --out more").error,
              HasSubstr("the run keeps 3 checkpoints, not 5: train.keep says how many"));
}

TEST_F(AverageCommand, says_what_a_mean_of_learned_algebras_is) {
  train(" --set model.width=16 --set 'model.algebra=phm(4)'");
  EXPECT_THAT(place_.run("average run --out mean").error, HasSubstr("the algebra phm(4) is learned"));
}

TEST_F(AverageCommand, what_cannot_be_done_gets_a_sentence) {
  train();
  expect_refused("nowhere --out mean", 2, "'nowhere' is not a run");
  expect_refused("run", 2, "--out is required");
  expect_refused("run --out mean --last 1", 2, "--last");
  expect_refused("run --out mean --last 2 --best 2", 2, "--last excludes --best");
  fs::create_directory(place_.path("bare"));
  expect_refused("run --out bare", 2, "'bare' exists already: choose another --out");
  expect_refused("run --out run/last/mean", 2, "belongs to");
  expect_refused("bare --out mean", 1, "0 checkpoints to average");
  place_.write("run/step-000008/model.safetensors", "torn");
  expect_refused("run --out mean", 1, "checkpoint 'run/step-000008' is damaged");
  place_.write("file", "");
  fs::remove_all(place_.path("run/step-000008"));
  const Outcome inside = place_.run("average run --out file/mean");
  EXPECT_EQ(inside.code, 1);
  EXPECT_THAT(inside.error, HasSubstr("file"));
}

TEST_F(AverageCommand, refuses_a_run_that_trains_and_leaves_nothing_when_stopped) {
  train();
  const std::string folder = place_.path("run").string(), mean = place_.path("mean").string();
  {
    const Background trainer("train " + folder + " --resume --set train.steps=1000000",
                             place_.path("trainer.error"));
    trainer.wait_until_it_catches(SIGINT);
    for (int i = 0;
         i < 3000 &&
         json::parse(place_.read("run/last/checkpoint.json"), nullptr, false).value("step", int64_t{0}) <= 12;
         ++i)
      usleep(20000);
    expect_refused("run --out mean", 1, "another process trains in 'run'");
    trainer.signal(SIGINT);
    EXPECT_EQ(trainer.wait(), 130);
  }
  const Background average("average " + folder + " --out " + mean, place_.path("average.error"));
  average.wait_until_it_catches(SIGINT);
  average.signal(SIGINT);
  const int code = average.wait();
  EXPECT_TRUE(code == 130 ? !fs::exists(mean) : code == 0 && fs::exists(mean)) << code;
  EXPECT_FALSE(fs::exists(mean + ".part"));
}

}  // namespace
}  // namespace quatrain::cli
