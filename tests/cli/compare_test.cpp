#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/bootstrap.h"
#include "cli/program.h"

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kTwoTwins = R"toml(
[task]
data = "agreement"
[agreement]
train = 200
dev = 50
test = 60
[model]
width = 16
heads = 1
feed_forward = 16
layers = 1
[train]
steps = 2
[compare]
seconds = 0.1
layer_seconds = 0.1
layer_width = 16
[[twins]]
name = "quaternion"
algebra = "quaternion"
[[twins]]
name = "real"
algebra = "real"
)toml";

TEST(Compare, prints_one_table_and_stores_everything) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const Outcome outcome = place.run("compare two.toml --seeds 2 --out both --json all.json");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* words :
       {"parameters", "of the encoder", "model file", "accuracy, test set", "4 attractors", "majority",
        "points to real [95%]", "training step", "inference, batch 1 ", "inference, batch 32", "\u00b1",
        "Single layers, 16 -> 16, float32", "octonion", "The runs are in both", "quatrain predict both/"})
    EXPECT_THAT(outcome.out, HasSubstr(words));
  EXPECT_THAT(outcome.error, HasSubstr("[4/4] real seed 2"));

  const json all = json::parse(place.read("all.json"));
  EXPECT_EQ(all, json::parse(place.read("both/compare.json")));
  EXPECT_EQ(all["reference"], "real");
  ASSERT_EQ(all["twins"].size(), 2);
  for (const auto& twin : all["twins"]) {
    ASSERT_EQ(twin["runs"].size(), 2);
    EXPECT_EQ(twin["runs"][1]["seed"], 2);
    const double a = twin["runs"][0]["test"]["accuracy"], b = twin["runs"][1]["test"]["accuracy"];
    EXPECT_NEAR(twin["accuracy"]["mean"].get<double>(), (a + b) / 2, 1e-12);
    EXPECT_NEAR(twin["accuracy"]["deviation"].get<double>(), std::abs(a - b) / std::sqrt(2.0), 1e-12);
    EXPECT_GT(twin["training_step_seconds"].get<double>(), 0);
    EXPECT_GT(twin["inference_seconds"]["batch_32"].get<double>(), 0);
    EXPECT_TRUE(std::filesystem::exists(place.path(twin["runs"][0]["folder"].get<std::string>() + "/best")));
  }
  const auto& quaternion = all["twins"][0];
  const auto& real = all["twins"][1];
  // 4 maps of 16 x 16 and 2 of 16 x 16: a quarter of the weights, the same biases and norms.
  EXPECT_EQ(real["encoder_parameters"].get<double>() - quaternion["encoder_parameters"].get<double>(),
            6 * 256 * 3 / 4);
  EXPECT_NEAR(quaternion["difference"]["mean"].get<double>(),
              quaternion["accuracy"]["mean"].get<double>() - real["accuracy"]["mean"].get<double>(), 1e-9);
  EXPECT_EQ(real["difference"]["low"], 0);
  // Three algebras, two passes, four batches, in the fields of `bench linear`.
  ASSERT_EQ(all["layers"].size(), 3 * 2 * 4);
  for (const auto& layer : all["layers"]) {
    EXPECT_EQ(layer["in"], 16);
    EXPECT_GT(layer["ratio_real"].get<double>(), 0);
  }
}

// A comparison goes on in its folder: what is finished is not trained again, what is missing is.
TEST(Compare, goes_on_where_it_stopped) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  ASSERT_EQ(place.run("compare two.toml --seeds 2 --out both").code, 0);
  const auto time = std::filesystem::last_write_time(place.path("both/real-seed1/result.json"));
  std::filesystem::remove_all(place.path("both/real-seed2"));
  const Outcome outcome = place.run("compare both");  // its own recipe and seeds
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(std::filesystem::exists(place.path("both/real-seed2/result.json")));
  EXPECT_EQ(std::filesystem::last_write_time(place.path("both/real-seed1/result.json")), time);
  ASSERT_EQ(place.run("compare both --seeds 1,2,9").code, 0);
  EXPECT_EQ(json::parse(place.read("both/compare.json"))["twins"][0]["runs"].size(), 3);
  const Outcome other = place.run("compare two.toml --set model.width=32 --out both");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("they differ in model.width"));
}

TEST(Compare, a_signal_loses_nothing) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const std::string folder = place.path("both").string();
  const Background program("compare " + place.path("two.toml").string() +
                               " --seeds 2 --set train.steps=1000000" + " --set train.log_every=1 --out " +
                               folder,
                           place.path("background.error"));
  wait_for(place.path("both/quaternion-seed1/metrics.jsonl"), 1000);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_THAT(place.read("background.error"), HasSubstr("go on with: quatrain compare " + folder));
  const int64_t made = json::parse(place.read("both/quaternion-seed1/last/checkpoint.json"))["step"];
  const Outcome outcome = place.run("compare both --json - --set train.steps=" + std::to_string(made + 1));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const json all = json::parse(outcome.out);
  ASSERT_EQ(all["twins"][1]["runs"].size(), 2);
  EXPECT_EQ(all["twins"][1]["runs"][1]["steps"], made + 1);
}

TEST(Bootstrap, finds_the_interval_of_a_mean) {
  // 400 examples, a difference of 0.1 on average with a standard error of 0.015.
  std::vector<double> differences(400);
  for (size_t i = 0; i < differences.size(); ++i) differences[i] = i % 10 == 0 ? 1 : 0;
  const Interval interval = paired_bootstrap(differences);
  EXPECT_NEAR(interval.mean, 0.1, 1e-12);
  EXPECT_NEAR(interval.low, 0.1 - 1.96 * 0.015, 0.003);
  EXPECT_NEAR(interval.high, 0.1 + 1.96 * 0.015, 0.003);
  const Interval again = paired_bootstrap(differences);
  EXPECT_EQ(again.low, interval.low);
  EXPECT_NE(paired_bootstrap(differences, 10000, 1).low, 0);
  const Interval none = paired_bootstrap(std::vector<double>(50, 0.0));
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 0);
  EXPECT_EQ(paired_bootstrap({}).mean, 0);
}

TEST(Bootstrap, spread_is_that_of_a_sample) {
  EXPECT_EQ(spread({3}).deviation, 0);
  EXPECT_NEAR(spread({1, 2, 3, 4}).deviation, std::sqrt(5.0 / 3), 1e-12);
  EXPECT_EQ(spread({1, 2, 3, 4}).mean, 2.5);
}

}  // namespace
}  // namespace quatrain::cli
