// Every recipe and every twin of it makes two steps and is scored; on another device too, where
// scripts/device_tests asks for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "data/picture_files.h"
#include "quatrain/tasks/about.h"
#include "quatrain/tasks/recipe.h"
#include "tasks/speech_corpora.h"

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// What makes a recipe small: by its kind and its data.
std::string small_settings(const tasks::Recipe& recipe) {
  const std::string& kind = recipe.about().name;
  const std::string reader = tasks::find_value(recipe, "task.data").value_or("");
  if (kind == "text_classification")
    return kSmall + (reader == "agreement" ? "" : reader == "imdb" ? " --data reviews" : " --data data");
  std::string all = " --set train.evaluate_every=0 --set train.threads=1";
  if (kind == "regression") return all;
  if (kind == "copy_memory") return all + " --set task.dev=4 --set task.test=4";
  const auto set = [&](const char* setting) { all += std::string(" --set ") + setting; };
  if (kind == "text_pairs") {
    for (const char* key : {"model.width=40", "model.word_width=40", "train.batch=8", "entailment.train=60",
                            "entailment.dev=10", "entailment.test=10"})
      set(key);
    if (reader == "entailment") return all;
    const bool ranked = reader == "wikiqa" || reader == "trecqa";
    return all + (ranked ? " --data answers --set task.data=wikiqa" : " --data entailed --set task.data=tsv");
  }
  if (kind == "speech") {
    for (const char* key : {"model.hidden=8", "model.layers=1", "train.batch=2", "features.bands=16"})
      set(key);
    if (reader == "timit") return all + " --data phones --set task.test_speakers=mdave0";
    return all + " --data tones --set task.data=tsv";
  }
  if (kind == "images") {
    for (const char* key : {"'model.widths=8 8 8 8'", "train.batch=4", "augmentation.padding=2"}) set(key);
    if (reader != "shapes") return all + " --data colours --set task.data=folders --set task.side=12";
    for (const char* key : {"shapes.train=20", "shapes.dev=10", "shapes.test=10"}) set(key);
    return all;
  }
  for (const char* key :
       {"model.width=64", "model.feed_forward=64", "vocabulary.pieces=characters", "vocabulary.size=0"})
    set(key);
  if (kind == "language_model") {
    for (const char* key : {"model.layers=1", "task.data=text", "train.batch=4"}) set(key);
    return all + " --data prose";
  }
  for (const char* key : {"model.heads=4", "model.encoder_layers=1", "model.decoder_layers=1",
                          "decode.beam=2", "decode.longest=12"})
    set(key);
  if (reader == "math" || reader == "reverse") {
    for (const char* size : {".train=60", ".dev=8", ".test=8"}) set((reader + size).c_str());
    return all;
  }
  set("task.data=parallel");
  return all + " --data pairs";
}

// The device that scripts/device_tests asks for, or "".
std::string wanted_device() {
  const char* name = std::getenv("QUATRAIN_TEST_DEVICE");
  return name ? name : "";
}
constexpr const char* kNoDevice = "needs a device: scripts/device_tests runs it where there is one";

// "cuda" of "cuda:1".
std::string kind_of(const std::string& device) {
  return device.substr(0, device.find(':'));
}

// A recipe of the program's, by its file.
class Recipes : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    place_ = new Workplace;
    place_->make_data();
    test::write_tones(place_->path("tones"), 6, 2, 2, 2);
    test::write_phones(place_->path("phones"));
    test::write_colours(place_->path("colours"), 3, 1, 1);
  }
  static void TearDownTestSuite() {
    delete place_;
    place_ = nullptr;
  }

  // "" is the recipe without a twin.
  std::vector<std::string> variants() const {
    std::vector<std::string> names{""};
    for (const auto& twin : recipe_.twins) names.push_back(twin.name);
    return names;
  }
  std::string train(const std::string& variant, const std::string& more = "") const {
    return "train " + recipe_.name + small_settings(recipe_) + " --set train.steps=2 --overwrite --out run" +
           (variant.empty() ? "" : " --twin " + variant) + more;
  }
  json result() const { return json::parse(place_->read("run/result.json")); }

  const tasks::Recipe recipe_ = tasks::read_recipe(GetParam());
  static inline Workplace* place_ = nullptr;
};

TEST_P(Recipes, every_twin_runs) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant);
    const Outcome outcome = place_->run(train(variant));
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("quatrain predict run"));
    EXPECT_EQ(result()["steps"], 2);
    const char* figure = recipe_.about().name == "text_classification" ? "accuracy" : "loss";
    EXPECT_TRUE(result()["test"].contains(figure));
  }
}

// What was trained on the device is scored alike there and on the CPU.
TEST_P(Recipes, every_twin_runs_on_the_device) {
  const std::string device = wanted_device();
  if (device.empty()) GTEST_SKIP() << kNoDevice;
  const std::string there = " --device " + device;
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant);
    const Outcome trained = place_->run(train(variant, there));
    ASSERT_EQ(trained.code, 0) << trained.error;
    EXPECT_EQ(result()["device"], kind_of(device));
    const Outcome own = place_->run("evaluate run --json -" + there),
                  cpu = place_->run("evaluate run --json -");
    ASSERT_EQ(own.code, 0) << own.error;
    ASSERT_EQ(cpu.code, 0) << cpu.error;
    const json a = json::parse(own.out)["figures"], b = json::parse(cpu.out)["figures"];
    EXPECT_EQ(a.size(), b.size());
    for (const auto& [figure, value] : b.items()) {
      ASSERT_EQ(a[figure].is_null(), value.is_null()) << figure;  // the loss of unknown labels
      if (figure == "loss" && !value.is_null()) {
        EXPECT_NEAR(double(a[figure]), double(value), 2e-3 * std::abs(double(value)) + 1e-6);
      }
    }
  }
}

TEST(Compare, twins_are_trained_on_the_device) {
  const std::string device = wanted_device();
  if (device.empty()) GTEST_SKIP() << kNoDevice;
  const Workplace place;
  const Outcome outcome = place.run("compare agreement --out both --twins real,quaternion" + kSmall +
                                    " --set train.steps=2 --set compare.seconds=0 --set "
                                    "compare.layer_seconds=0 --device " +
                                    device);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const std::string twin : {"real", "quaternion"})
    EXPECT_EQ(json::parse(place.read("both/" + twin + "-seed1/result.json"))["device"], kind_of(device));
  EXPECT_THAT(outcome.out,
              HasSubstr(kind_of(device) == "cpu" ? "in turns\n" : "on the CPU; trained on cuda\n"));
}

std::vector<std::string> recipe_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(QUATRAIN_RECIPES))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(All, Recipes, testing::ValuesIn(recipe_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace quatrain::cli
