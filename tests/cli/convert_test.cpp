#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kWeights = "run/best/model.safetensors";

// A real model, trained a little.
class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    place_.make_data();
    const Outcome outcome =
        place_.run("train text" + kSmall +
                   " --set model.heads=2 --set train.steps=20 --twin real --data data --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  }

  json report(const std::string& words) const {
    const Outcome outcome = place_.run("convert " + words + " --json -");
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return json::parse(outcome.out);
  }

  void expect_refused(const std::string& words, int code, const std::string& sentence) const {
    SCOPED_TRACE(words);
    const Outcome outcome = place_.run("convert " + words);
    EXPECT_EQ(outcome.code, code);
    EXPECT_THAT(outcome.error, HasSubstr(sentence));
    EXPECT_THAT(outcome.out, testing::IsEmpty());
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  }

  bool exists(const std::string& name) const { return std::filesystem::exists(place_.path(name)); }

  Workplace place_;
};

const json& layer_of(const json& report, const std::string& name) {
  for (const auto& layer : report["layers"])
    if (layer["name"] == name) return layer;
  throw std::out_of_range(name);
}

// The converted run is used and trained further; its weights are where that starts.
TEST_F(ConvertTest, runs_become_runs) {
  const Outcome outcome = place_.run("convert run small --algebra 'phm(4)' --json report.json");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("encoder.layers.0.attention.query"));
  EXPECT_THAT(outcome.out, HasSubstr("6 of 7 layers in the algebra phm(4); written to small"));
  const json report = json::parse(place_.read("report.json"));
  EXPECT_EQ(report["converted"], 6);
  EXPECT_GT(layer_of(report, "encoder.layers.0.feed_forward.linear1")["error"], 0.1);
  EXPECT_TRUE(layer_of(report, "head")["error"].is_null());
  EXPECT_LT(report["after"], report["before"]);

  const auto recipe = tasks::read_recipe(place_.path("small/best/recipe.toml").string());
  EXPECT_EQ(tasks::find_value(recipe, "model.algebra"), "phm(4)");
  EXPECT_EQ(tasks::find_value(recipe, "model.attention"), "real");
  EXPECT_EQ(place_.read("small/best/vocabulary.txt"), place_.read("run/best/vocabulary.txt"));
  const json converted = json::parse(place_.run("evaluate small --json -").out);
  EXPECT_EQ(place_.run("predict small", "a good film\n").code, 0);

  // With a rate of almost nothing the figures stay those of the converted weights.
  const std::string still = " --set train.rate=1e-12 --set train.steps=1 --data data --out ";
  ASSERT_EQ(place_.run("train small" + still + "tuned").code, 0);
  EXPECT_NEAR(json::parse(place_.read("tuned/result.json"))["test"]["loss"].get<double>(),
              converted["figures"]["loss"].get<double>(), 1e-5);
  ASSERT_EQ(place_
                .run("train text" + kSmall + " --set model.heads=2 --twin phm4 --set model.attention=real" +
                     still + "named --weights small")
                .code,
            0);
  EXPECT_NEAR(json::parse(place_.read("named/result.json"))["test"]["loss"].get<double>(),
              converted["figures"]["loss"].get<double>(), 1e-5);
  // Trained further, it goes on from its own checkpoint, wherever the first weights are.
  std::filesystem::rename(place_.path("small"), place_.path("moved"));
  const Outcome further = place_.run("train tuned --resume --set train.steps=2");
  EXPECT_EQ(further.code, 0) << further.error;
  EXPECT_EQ(place_.run("train moved --set train.steps=1 --data data --out lost").code, 2);
}

TEST_F(ConvertTest, weights_files_become_weights_files) {
  const json all = report(kWeights + " all.safetensors --algebra quaternion --heads 2");
  EXPECT_EQ(all["converted"], 6);
  EXPECT_EQ(layer_of(all, "head")["skipped"], "n = 4 does not divide 2");
  EXPECT_EQ(layer_of(all, "encoder.layers.0.attention.query")["after"], 32 * 32 / 4 + 32);
  EXPECT_TRUE(exists("all.safetensors"));

  const json some = report(kWeights +
                           " some.safetensors --algebra quaternion --heads 2 --where '*.attention.*' "
                           "--where '*linear1' --except '*query'");
  EXPECT_EQ(some["converted"], 4);
  EXPECT_EQ(layer_of(some, "encoder.layers.0.attention.query")["skipped"], "excluded by except");
  EXPECT_EQ(layer_of(some, "encoder.layers.0.feed_forward.linear2")["skipped"], "excluded by where");

  // The whole run's conversion and the file's give one model.
  ASSERT_EQ(place_.run("convert run small --algebra quaternion").code, 0);
  const std::string still =
      " --twin quaternion --set model.heads=2 --set model.attention=real --set train.rate=1e-12 --set "
      "train.steps=1"
      " --data data";
  ASSERT_EQ(place_.run("train text" + kSmall + still + " --weights small --out a").code, 0);
  ASSERT_EQ(place_.run("train text" + kSmall + still + " --weights all.safetensors --out b").code, 0);
  EXPECT_EQ(json::parse(place_.read("a/result.json"))["test"],
            json::parse(place_.read("b/result.json"))["test"]);
}

TEST_F(ConvertTest, what_cannot_be_done_gets_a_sentence) {
  const std::string to = " out.safetensors --algebra quaternion";
  expect_refused("nowhere" + to, 2, "there is no weights file or run 'nowhere'");
  expect_refused(kWeights + " out.safetensors --algebra quaternoin --heads 2", 2, "quaternion");
  expect_refused(kWeights + " out.safetensors --algebra real --heads 2", 2, "must be hypercomplex");
  expect_refused("run out --algebra 'phm(4, trained_rank=6)'", 2, "trained factors");
  expect_refused(kWeights + " out.safetensors", 2, "--algebra is required");
  expect_refused(kWeights + to, 2, "is attention");
  expect_refused(kWeights + to + " --heads 3", 2, "divisible by n * heads = 12, got 32");
  expect_refused(kWeights + to + " --heads 2 --where nothing", 1, "no layer of");
  expect_refused("run out --algebra 'phm(5)'", 2, "divisible by n * heads = 10");
  expect_refused("run out --algebra quaternion --where '*'", 2, "for weights files");
  expect_refused("run run --algebra quaternion", 2, "'run' exists");
  expect_refused("run run --algebra quaternion --overwrite", 2, "is the run IN itself");
  expect_refused("run data --algebra quaternion", 2, "'data' exists");
  place_.write("torn.safetensors", "torn");
  expect_refused("torn.safetensors" + to, 1, "not a safetensors file");
  std::filesystem::create_directory(place_.path("bare"));
  expect_refused("bare out --algebra quaternion", 2, "no checkpoint");
  EXPECT_FALSE(exists("out"));
  EXPECT_FALSE(exists("out.safetensors"));

  place_.write("other.safetensors", "something");
  expect_refused(kWeights + " other.safetensors --algebra quaternion --heads 2", 2,
                 "'other.safetensors' exists");
  EXPECT_EQ(place_.read("other.safetensors"), "something");
  expect_refused(kWeights + " data --algebra quaternion --heads 2 --overwrite", 2, "is a folder");
  // In the place of IN itself: it is written beside and renamed.
  std::filesystem::copy_file(place_.path(kWeights), place_.path("mine.safetensors"));
  EXPECT_EQ(
      report("mine.safetensors mine.safetensors --algebra quaternion --heads 2 --overwrite")["converted"], 6);
  expect_refused("mine.safetensors twice.safetensors --algebra quaternion", 1, "is hypercomplex already");
  // A run that was converted is no real one, nor is one that was trained a place to write to.
  ASSERT_EQ(place_.run("convert run small --algebra quaternion").code, 0);
  expect_refused("small smaller --algebra quaternion", 2, "hypercomplex already (quaternion)");
  ASSERT_EQ(
      place_.run("train text" + kSmall + " --twin real --set train.steps=1 --data data --out second").code,
      0);
  expect_refused("run second --algebra quaternion --overwrite", 2, "holds a run that was trained");
  EXPECT_EQ(place_.run("convert run small --algebra 'phm(2)' --overwrite").code, 0);
}

TEST_F(ConvertTest, weights_of_another_model_are_refused) {
  const auto refused = [&](const std::string& words, const std::string& sentence) {
    const Outcome outcome =
        place_.run("train text" + kSmall + " --set train.steps=1 --data data --out out " + words);
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.error, HasSubstr(sentence));
  };
  refused("--twin real --set model.heads=2 --weights nowhere.safetensors", "nowhere.safetensors");
  refused("--twin quaternion --set model.heads=2 --weights run", "does not fit the model");
  refused("--twin real --set model.heads=2 --set task.max_vocabulary=5 --weights run",
          "differs from the vocabulary of these data");
  refused("--twin real --weights data", "not a run with a checkpoint");
}

}  // namespace
}  // namespace quatrain::cli
