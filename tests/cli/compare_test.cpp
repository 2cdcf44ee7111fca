#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

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

// Red, green and blue go into real layers as they are, into those over n = 4 with a zero before them.
TEST(Compare, twins_that_read_pictures_in_other_channels_are_timed) {
  const Workplace place;
  const Outcome outcome = place.run(
      "compare shapes --twins real,quaternion --out pictures --set shapes.train=20 --set shapes.dev=10 --set "
      "shapes.test=10 --set \"model.widths=4 4 4 4\" --set train.steps=1 --set train.batch=10 --set "
      "compare.seconds=0.1 --set compare.layer_seconds=0");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("inference, batch 32"));
}

TEST(Compare, prints_one_table_and_stores_everything) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const Outcome outcome = place.run("compare two.toml --seeds 2 --out both --json all.json");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* words :
       {"parameters", "of the encoder", "model file", "accuracy, test set", "4 attractors", "majority",
        "points to real", "95% interval", "so the twin is", "accuracy, dev set", "training step",
        "inference, batch 1 ", "inference, batch 32", "\u00b1", "Single layers, 16 -> 16, float32",
        "octonion", "The runs are in both", "quatrain predict both/", "compare both --seeds 4\n"})
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
constexpr const char* kTranslators = R"toml(
[task]
kind = "seq2seq"
data = "reverse"
[reverse]
train = 200
dev = 20
test = 30
longest = 6
symbols = 5
[vocabulary]
pieces = "words"
[model]
width = 16
heads = 1
feed_forward = 16
encoder_layers = 1
decoder_layers = 1
[train]
steps = 20
samples = 0
rate = 1e-2
[decode]
beam = 1
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

// What is translated is judged by BLEU, whose counts the runs keep.
TEST(Compare, translations_are_judged_by_bleu) {
  const Workplace place;
  place.write("lines.toml", kTranslators);
  const Outcome outcome = place.run("compare lines.toml --seeds 2 --set train.samples=2 --out both");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, Not(HasSubstr(" -> ")));  // those samples are for who watches one run
  for (const char* words : {"exact match, test set", "BLEU, test set", "  difference to real", "95% interval",
                            "Level: within 0.5 BLEU"})
    EXPECT_THAT(outcome.out, HasSubstr(words));
  EXPECT_THAT(outcome.out, Not(HasSubstr("points to real")));
  const json all = json::parse(place.read("both/compare.json"));
  EXPECT_EQ(all["judging"], "bleu");
  EXPECT_EQ(all["margin"], 0.5);
  const auto &quaternion = all["twins"][0], &real = all["twins"][1];
  EXPECT_GT(real["bleu"]["mean"].get<double>(), 0);
  EXPECT_NEAR(quaternion["difference"]["mean"].get<double>(),
              quaternion["bleu"]["mean"].get<double>() - real["bleu"]["mean"].get<double>(), 1e-9);
  EXPECT_LT(quaternion["difference"]["low"], quaternion["difference"]["high"]);
  EXPECT_TRUE(quaternion.contains("verdict"));
  EXPECT_THAT(place.run("check both/real-seed1").out,
              testing::ContainsRegex("bleu.counts.tsv +sound: 30 examples"));

  place.write("both/real-seed1/bleu.counts.tsv", "matched_1\n1\n");
  const Outcome damaged = place.run("compare both");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.error, HasSubstr("'both/real-seed1/bleu.counts.tsv' is not what a trainer wrote"));
  EXPECT_EQ(place.run("check both/real-seed1").code, 1);
  std::filesystem::remove(place.path("both/real-seed1/bleu.counts.tsv"));
  std::filesystem::remove(place.path("both/real-seed1/result.json"));
  ASSERT_EQ(place.run("compare both").code, 0);
  EXPECT_EQ(json::parse(place.read("both/compare.json"))["twins"][0]["difference"], quaternion["difference"]);
}

// Rankings are judged by MAP; MRR and P@1 have intervals beside it.
TEST(Compare, further_figures_of_rankings_have_intervals) {
  const Workplace place;
  for (const char* set : {"train", "dev", "test"}) {
    std::string a, b, relevant, id;
    for (int question = 0; question < 6; ++question)
      for (int i = 0; i < 4; ++i) {
        const std::string number = std::to_string(question);
        a += "where is word" + number + "\n";
        b += "here is word" + std::to_string((question + i) % 6) + "\n";
        relevant += i == question % 4 ? "1\n" : "0\n";
        id += "Q" + number + "-D" + number + "-" + std::to_string(i) + "\n";
      }
    const std::string to = "answers/" + std::string(set) + "/";
    place.write(to + "a.toks", a), place.write(to + "b.toks", b);
    place.write(to + "sim.txt", relevant), place.write(to + "id.txt", id);
  }
  place.write("answers.toml", R"toml(
[task]
kind = "text_pairs"
data = "wikiqa"
folder = "answers"
vectors = ""
[model]
width = 16
word_width = 16
[train]
steps = 6
evaluate_every = 3
batch = 8
[compare]
seconds = 0
layer_seconds = 0
[[twins]]
name = "quaternion"
algebra = "quaternion"
[[twins]]
name = "real"
algebra = "real"
)toml");
  const Outcome outcome = place.run("compare answers.toml --seeds 2 --out both");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("P@1, test set[^\n]*\n *points to real"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("Single layers")));
  const json all = json::parse(place.read("both/compare.json"));
  EXPECT_EQ(all["judging"], "map");
  const auto &quaternion = all["twins"][0], &real = all["twins"][1];
  EXPECT_FALSE(quaternion["map"].contains("difference"));  // the one beside the verdict
  for (const char* figure : {"mrr", "precision_at_1"}) {
    const auto& difference = quaternion[figure]["difference"];
    EXPECT_NEAR(difference["mean"].get<double>(),
                quaternion[figure]["mean"].get<double>() - real[figure]["mean"].get<double>(), 1e-8)
        << figure;
    EXPECT_LE(difference["low"].get<double>(), difference["mean"].get<double>()) << figure;
  }
}

// Where exact answers select, they judge, as labels do.
TEST(Compare, answers_that_must_be_exact_are_judged_in_points) {
  const Workplace place;
  place.write("lines.toml", kTranslators);
  const Outcome outcome = place.run("compare lines.toml --set train.select=exact --seeds 2 --out both");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out,
              testing::AllOf(HasSubstr("Level: within 1 point."),
                             testing::ContainsRegex("exact match, test set[^\n]*\n *points to real"),
                             testing::ContainsRegex("BLEU, test set[^\n]*\n *difference to real")));
  EXPECT_EQ(json::parse(place.read("both/compare.json"))["judging"], "exact");
}

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
  EXPECT_THAT(other.error, HasSubstr("different: model.width"));
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
  EXPECT_THAT(place.read("background.error"), HasSubstr("continue with: quatrain compare " + folder));
  const int64_t made = json::parse(place.read("both/quaternion-seed1/last/checkpoint.json"))["step"];
  const Outcome outcome = place.run("compare both --json - --set train.steps=" + std::to_string(made + 1));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const json all = json::parse(outcome.out);
  ASSERT_EQ(all["twins"][1]["runs"].size(), 2);
  EXPECT_EQ(all["twins"][1]["runs"][1]["steps"], made + 1);
}

// Before data are looked for, of which there are none.
TEST(Compare, runs_that_cannot_be_trained_are_refused_at_once) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const auto expect_refused = [&](const std::string& words) {
    const Outcome outcome = place.run("compare imdb --data . --twins quaternion --out both");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error, HasSubstr(words));
  };
  const Background program("compare " + place.path("two.toml").string() +
                               " --set train.steps=1000000 --set train.log_every=1 --out " +
                               place.path("both").string(),
                           place.path("background.error"));
  wait_for(place.path("both/quaternion-seed1/metrics.jsonl"), 1000);
  EXPECT_THAT(place.run("compare both").error,
              HasSubstr("another process trains in 'both/quaternion-seed1'"));
  expect_refused("another process trains in 'both/quaternion-seed1'");
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  place.write("both/quaternion-seed1/last/training.json", "{}");
  expect_refused("checkpoint 'both/quaternion-seed1/last' is damaged");
}

// Each twin takes the rate that is best on the dev set; runs that chose are not made again.
TEST(Compare, chooses_the_rates_of_its_twins) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const std::string grid =
      " --set train.steps=30 --set 'compare.rates=1e-12, 1e-2' --set compare.rate_seeds=1";
  const Outcome outcome = place.run("compare two.toml --seeds 2 --out both" + grid);
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error,
              HasSubstr("[6/6] real rate"));  // two rates and one more seed for each of two twins
  EXPECT_THAT(outcome.out, HasSubstr("learning rate"));
  EXPECT_THAT(outcome.out, HasSubstr("Rates were chosen on the dev set."));
  const json all = json::parse(place.read("both/compare.json"));
  for (const auto& twin : all["twins"]) {
    ASSERT_EQ(twin["rates"].size(), 2);
    const bool second = twin["rates"][1]["dev"] > twin["rates"][0]["dev"];
    EXPECT_EQ(twin["rate"], second ? 1e-2 : 1e-12);
    ASSERT_EQ(twin["runs"].size(), 2);
    for (const auto& run : twin["runs"])
      EXPECT_THAT(run["folder"].get<std::string>(), HasSubstr(second ? "-rate1e-2-seed" : "-rate1e-12-seed"));
  }
  EXPECT_THAT(place.run("compare both").error, Not(HasSubstr("step")));
  const auto refused = [&](const std::string& rates, const std::string& words) {
    const Outcome other = place.run("compare two.toml --set 'compare.rates=" + rates + "'");
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.error, HasSubstr(words));
  };
  refused("1e-3,fast", "compare.rates: train.rate must be a number, got 'fast'");
  refused("1e-3,0.001", "compare.rates names 0.001 twice");
  refused("1e-3,0", "train.rate must be at least 1e-12, got 0");
}

// A search for rates goes beyond those that train.
TEST(Compare, leaves_out_rates_that_diverge) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const std::string common =
      " --twins real --set train.steps=30 --set train.optimizer=sgd --set train.clip=0 --set train.warmup=0";
  const Outcome outcome =
      place.run("compare two.toml --out some" + common + " --set 'compare.rates=1000, 1e-2'");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("the rate 1000 is left out: the "));
  const json twin = json::parse(place.read("some/compare.json"))["twins"][0];
  EXPECT_TRUE(twin["rates"][0]["dev"].is_null());
  EXPECT_EQ(twin["rate"], 1e-2);
  const Outcome none = place.run("compare two.toml --out none" + common + " --set 'compare.rates=1000, 900'");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.error, HasSubstr("no rate of compare.rates trains the twin 'real'"));
}

TEST(Compare, takes_the_twins_that_are_asked_for) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const Outcome outcome = place.run("compare two.toml --twins quaternion --out one");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(json::parse(place.read("one/compare.json"))["twins"].size(), 1);
  EXPECT_EQ(place.run("compare one").code, 0);  // goes on with that one
  EXPECT_FALSE(std::filesystem::exists(place.path("one/real-seed1")));
  const Outcome wrong = place.run("compare two.toml --twins quaternoin");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("has no twin 'quaternoin' (did you mean quaternion?)"));
  EXPECT_THAT(place.run("compare two.toml --twins real,real").error, HasSubstr("--twins names real twice"));
}

TEST(Compare, one_seed_has_no_interval) {
  const Workplace place;
  place.write("two.toml", kTwoTwins);
  const Outcome outcome = place.run("compare two.toml --out both");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, Not(HasSubstr("95% interval")));
  EXPECT_THAT(outcome.out, HasSubstr("--seeds 5 gives intervals"));
  EXPECT_TRUE(json::parse(place.read("both/compare.json"))["twins"][0]["difference"]["low"].is_null());
}

}  // namespace
}  // namespace quatrain::cli
