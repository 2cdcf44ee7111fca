#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/program.h"
#include "quatrain/tasks/recipe.h"
#include "tasks/speech_corpora.h"

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
  EXPECT_THAT(place_.run("plot small --out small.svg").error,
              HasSubstr("holds weights without curves, as a converted run does"));
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
  // A folder that was moved starts from its own weights, whatever is where it was.
  ASSERT_EQ(place_.run("convert run small --algebra 'phm(2)'").code, 0);
  EXPECT_EQ(place_.run("train moved --weights run" + still + "wrong").code, 1);  // a real run's do not fit
  ASSERT_EQ(place_.run("train moved" + still + "again").code, 0);
  EXPECT_NEAR(json::parse(place_.read("again/result.json"))["test"]["loss"].get<double>(),
              converted["figures"]["loss"].get<double>(), 1e-5);
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

TEST_F(ConvertTest, only_models_that_translate_are_written_for_ctranslate2) {
  expect_refused(
      "run out --to ctranslate2", 2,
      "models of kind text_classification cannot be written for ctranslate2: those of kind seq2seq can");
  expect_refused("run out --to onnx", 2,
                 "there is no format 'onnx' to write a model in: the formats are ctranslate2");
  expect_refused("run out --to ctranslate3", 2, "(did you mean ctranslate2?)");
  expect_refused("run out --to ctranslate2 --algebra quaternion", 2, "excludes");
  expect_refused("run out --to ctranslate2 --heads 2", 2, "are for another algebra");
  expect_refused("run out --algebra quaternion --split dev", 2, "--split requires --to");
  expect_refused("run run --to ctranslate2", 2, "'run' exists: choose another name");
  expect_refused(kWeights + " out --to ctranslate2", 2, "is not a run");
  EXPECT_FALSE(exists("out") || exists("out.part"));
}

// tests/python/test_ctranslate2.py lets CTranslate2 translate with them.
TEST(ConvertTranslators, are_written_for_ctranslate2) {
  const Workplace place;
  const std::string train =
      "train reverse --set reverse.train=200 --set reverse.dev=10 --set reverse.test=10 --set model.width=16"
      " --set model.heads=1 --set train.steps=5 --set train.threads=1 --set reverse.symbols=20 ";
  ASSERT_EQ(place.run(train + "--set model.attention=real --out run").code, 0);
  const Outcome outcome = place.run("convert run made --to ctranslate2");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, testing::AllOf(HasSubstr("The run run is written for ctranslate2, in made."),
                                          HasSubstr("cut lines at white space")));
  EXPECT_EQ(json::parse(place.read("made/config.json"))["eos_token"], "</s>");
  EXPECT_EQ(json::parse(place.read("made/shared_vocabulary.json"))[3], "</s>");
  EXPECT_TRUE(std::filesystem::exists(place.path("made/model.bin")));
  EXPECT_FALSE(std::filesystem::exists(place.path("made.part")) ||
               std::filesystem::exists(place.path("made/model")) ||
               std::filesystem::exists(place.path("made/source.spm")));

  ASSERT_EQ(
      place
          .run(train +
               "--set vocabulary.pieces=bpe --set vocabulary.size=40 --set model.attention=real --out pieces")
          .code,
      0);
  const Outcome pieces = place.run("convert pieces made2 --to ctranslate2");
  ASSERT_EQ(pieces.code, 0) << pieces.error;
  EXPECT_THAT(pieces.out, HasSubstr("made2/source.spm"));
  const std::string kept = place.read("pieces/best/source.pieces");
  EXPECT_EQ(place.read("made2/source.spm"), kept.substr(kept.find('\n') + 1));
  EXPECT_EQ(place.read("made2/target.spm"), place.read("made2/source.spm"));

  for (const std::string what : {"--split dev", "--data .", "--set decode.beam=2"}) {
    const Outcome chosen = place.run("convert run made3 --to ctranslate2 " + what);
    EXPECT_EQ(chosen.code, 2);
    EXPECT_THAT(chosen.error, HasSubstr("say what is scored, and --to ctranslate2 writes the model alone"));
  }

  ASSERT_EQ(place.run(train + "--out componentwise").code, 0);
  const Outcome refused = place.run("convert componentwise made3 --to ctranslate2");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(
      refused.error,
      "quatrain: the model cannot be written: CTranslate2 has real attention, got attention = componentwise "
      "over quaternion (train with attention = real)\n");
  EXPECT_FALSE(std::filesystem::exists(place.path("made3")) ||
               std::filesystem::exists(place.path("made3.part")));
}

// What is to be decoded has neither an alignment nor a text.
TEST(ConvertSpeech, other_recordings_are_scored_for_kaldi) {
  const Workplace place;
  const std::vector<int16_t> samples(800, 100);
  for (const std::string folder : {"data/train", "new/test"}) {
    std::filesystem::create_directories(place.path(folder));
    test::write_recording(place.path(folder + "/a.wav"), samples);
    place.write(folder + "/wav.scp", folder.substr(0, folder.find('/')) + " a.wav\n");
  }
  place.write("data/train/ali.ark", "data 0 0 0 0 0 1 1 1 1 1\n");
  const Outcome trained = place.run(
      "train yesno --data data --out run --set task.data=kaldi --set task.objective=frames --set "
      "features.stack=1 --set features.speeds= --set model.hidden=8 --set train.steps=1");
  ASSERT_EQ(trained.code, 0) << trained.error;
  const Outcome none = place.run("convert run made --to kaldi");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.error, HasSubstr("neither a dev nor a test set to score: name another set"));
  const Outcome outcome = place.run("convert run made --to kaldi --data new --set decode.prior_scale=0.5");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("test.ark holds the log posteriors of 2 classes"));
  EXPECT_THAT(place.read("made/test.scp"), testing::StartsWith("new "));
  EXPECT_EQ(place.run("convert run seen --to kaldi --split train").code, 0);
  EXPECT_THAT(place.read("seen/train.scp"), testing::StartsWith("data "));
  const Outcome shown = place.run("convert run other --to kaldi --set decode.times=true");
  EXPECT_EQ(shown.code, 2);
  EXPECT_THAT(shown.error, HasSubstr("decode.times would do nothing"));
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
  expect_refused("run run/best/small --algebra quaternion", 2,
                 "/run/best', a checkpoint, which training replaces");
  expect_refused(kWeights + " " + kWeights + " --algebra quaternion --heads 2 --overwrite", 2,
                 "a checkpoint");
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
  refused("--twin real --weights data", "not a run with a checkpoint");
}

TEST_F(ConvertTest, fine_tuning_keeps_the_vocabulary_and_outlives_the_run_that_it_began_with) {
  const std::string words = place_.read("run/best/vocabulary.txt");
  const std::string few = std::regex_replace(place_.read("run/best/recipe.toml"),
                                             std::regex("max_vocabulary = [0-9]+"), "max_vocabulary = 5");
  ASSERT_THAT(few, HasSubstr("max_vocabulary = 5\n"));
  place_.write("few.toml", few);
  const Outcome tuned =
      place_.run("train few.toml --weights run --set train.steps=1 --data data --out tuned");
  EXPECT_EQ(tuned.code, 0) << tuned.error;
  EXPECT_THAT(tuned.error, HasSubstr("the vocabulary is that of "));
  std::filesystem::remove_all(place_.path("run"));
  const Outcome resumed = place_.run("train tuned --resume --set train.steps=2");
  EXPECT_EQ(resumed.code, 0) << resumed.error;
  EXPECT_EQ(place_.read("tuned/best/vocabulary.txt"), words);
  EXPECT_EQ(place_.run("evaluate tuned").code, 0);
}

}  // namespace
}  // namespace quatrain::cli
