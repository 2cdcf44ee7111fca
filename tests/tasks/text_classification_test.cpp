// Text classification as a task: figures, order of the answers, and a run from texts to a resumed checkpoint.

#include "quatrain/tasks/text_classification.h"

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>

#include "quatrain/train/trainer.h"
#include "train/toy_task.h"

namespace quatrain::tasks {
namespace {

using train::contents, train::copies, train::expect_same_bits, train::message_of;
using train::Evaluation, train::Existing, train::FolderTest, train::Progress, train::Result,
    train::RunOptions;
using train::Trainer, train::TrainerOptions;

// A text is of class "good" where it holds the word; groups 0 and 2, the second one mostly bad.
data::Splits texts() {
  data::Splits splits;
  splits.labels = {"bad", "good"};
  splits.group_name = "attractors";
  const auto make = [](int64_t count) {
    std::vector<data::Example> examples;
    for (int64_t i = 0; i < count; ++i) {
      const bool good = i % 2 == 0 && i % 8 != 4;
      std::string text = good ? "a good film" : "a bad film";
      for (int64_t word = 0; word < i % 5; ++word) text += " indeed";
      examples.push_back({text, good ? 1 : 0, i % 4 == 0 ? 2 : 0});
    }
    return examples;
  };
  splits.train = make(64);
  splits.dev = make(20);
  splits.test = make(23);
  return splits;
}

TextClassification task(const data::Splits& splits, const std::string& algebra = "quaternion") {
  torch::manual_seed(1);
  auto vocabulary = data::Vocabulary::build(texts().train, splits.tokenizer);
  models::TextClassifier model(models::TextClassifierOptions(vocabulary.size(), 2)
                                   .width(16)
                                   .heads(2)
                                   .feed_forward(32)
                                   .layers(1)
                                   .dropout(0.1)
                                   .algebra(algebra));
  TextClassificationOptions options;
  options.batch_size = 8;
  options.evaluation_batch_size = 6;
  options.seed = 4;
  options.recipe = "name = \"x\"\n";
  return TextClassification(model, splits, vocabulary, options);
}

TrainerOptions training() {
  TrainerOptions options;
  options.steps = 40;
  options.optimizer.learning_rate = 0.01;
  options.evaluate_every = 10;
  return options;
}

class TextClassificationTest : public FolderTest {};

TEST_F(TextClassificationTest, FiguresAreThoseOfTheAnswersInTheDatasOrder) {
  const data::Splits splits = texts();
  TextClassification classification = task(splits);
  classification.model().eval();
  const torch::NoGradGuard no_grad;
  const Evaluation found = classification.evaluate("test", {});
  ASSERT_EQ(found.predictions.size(), splits.test.size());
  std::map<int64_t, std::pair<double, double>> by_group;  // right, all; -1 for all together
  for (size_t i = 0; i < splits.test.size(); ++i) {
    EXPECT_EQ(found.targets[i], splits.test[i].label) << i;
    for (const int64_t group : {int64_t{-1}, splits.test[i].group}) {
      by_group[group].first += found.predictions[i] == splits.test[i].label;
      ++by_group[group].second;
    }
  }
  const auto share = [&](int64_t group) { return by_group[group].first / by_group[group].second; };
  EXPECT_DOUBLE_EQ(found.figures.at("accuracy"), share(-1));
  EXPECT_DOUBLE_EQ(found.figures.at("accuracy/attractors=0"), share(0));
  EXPECT_DOUBLE_EQ(found.figures.at("accuracy/attractors=2"), share(2));
  EXPECT_EQ(found.figures.at("count"), 23);
  EXPECT_EQ(found.figures.at("count/attractors=2"), 6);
  EXPECT_DOUBLE_EQ(found.figures.at("majority"), data::majority(splits.test).overall.share());
  EXPECT_DOUBLE_EQ(found.figures.at("majority/attractors=2"), 0.5);
}

// The same texts give the same answers whatever batches they come in.
TEST_F(TextClassificationTest, LossIsTheMeanOverExamples) {
  data::Splits splits = texts();
  splits.test.resize(7);  // batches of 6 and 1
  TextClassification classification = task(splits);
  classification.model().eval();
  const torch::NoGradGuard no_grad;
  const double whole = classification.evaluate("test", {}).figures.at("loss");
  double sum = 0;
  for (const data::Example& example : splits.test) {
    data::Splits one = splits;
    one.test = {example};
    TextClassification single = task(one);
    single.model().eval();
    sum += single.evaluate("test", {}).figures.at("loss");
  }
  EXPECT_NEAR(whole, sum / 7, 1e-5);
}

TEST_F(TextClassificationTest, LearnsAndResumesWithTheSameBits) {
  const data::Splits splits = texts();
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    SCOPED_TRACE(algebra);
    const auto whole = folder_ / algebra / "whole", parts = folder_ / algebra / "parts";
    TextClassification straight = task(splits, algebra), begun = task(splits, algebra),
                       resumed = task(splits, algebra);
    const Result expected = Trainer(straight, training(), {.folder = whole}).run();
    EXPECT_EQ(expected.test.at("accuracy"), 1);
    EXPECT_GT(expected.facts.at("encoder_parameters"), 0);
    std::atomic<bool> stop{false};
    RunOptions first{.folder = parts, .stop = &stop};
    first.on_progress = [&](const Progress& p) { stop = p.step >= 17; };
    EXPECT_FALSE(Trainer(begun, training(), first).run().finished);
    torch::manual_seed(99);
    const Result got = Trainer(resumed, training(), {.folder = parts, .existing = Existing::resume}).run();
    EXPECT_EQ(got.test, expected.test);
    EXPECT_EQ(got.dev, expected.dev);
    expect_same_bits(copies(resumed.model()), copies(straight.model()));
    EXPECT_EQ(contents(whole / "last" / "training.safetensors"),
              contents(parts / "last" / "training.safetensors"));
    EXPECT_EQ(contents(parts / "predictions.tsv").substr(0, 18), "target\tprediction\n");
    EXPECT_EQ(contents(parts / "best" / "labels.txt"), "bad\ngood\n");
    EXPECT_EQ(contents(parts / "best" / "recipe.toml"), "name = \"x\"\n");
    EXPECT_EQ(data::Vocabulary::load(parts / "best" / "vocabulary.txt").id("film"),
              data::Vocabulary::build(splits.train, splits.tokenizer).id("film"));
  }
}

TEST_F(TextClassificationTest, ABatchIsNamedByItsExamples) {
  TextClassification classification = task(texts());
  EXPECT_THAT(classification.describe_batch(2, 3),
              testing::MatchesRegex("batch 3 of epoch 2: training examples [0-9]+(, [0-9]+){7}"));
}

// Scoring a set needs no other: the same figures without them.
TEST_F(TextClassificationTest, ASetIsScoredAlone) {
  const data::Splits splits = texts();
  data::Splits alone = splits;
  alone.train.clear(), alone.dev.clear();
  TextClassification whole = task(splits), part = task(alone);
  whole.model().eval(), part.model().eval();
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(part.evaluate("test", {}).figures, whole.evaluate("test", {}).figures);
  EXPECT_FALSE(part.has("train"));
  EXPECT_THAT(message_of([&] { Trainer(part, training(), {.folder = folder_ / "run"}); }),
              testing::HasSubstr("the training set must have a batch"));
}

TEST_F(TextClassificationTest, WhatDoesNotFitTogetherIsRefused) {
  const data::Splits splits = texts();
  data::Splits none = splits, third = splits;
  none.train.clear(), none.dev.clear(), none.test.clear();
  third.labels.push_back("neither");
  EXPECT_THAT(message_of([&] { task(none); }), testing::HasSubstr("must have an example"));
  EXPECT_THAT(message_of([&] { task(third); }), testing::HasSubstr("2 classes, the data 3 labels"));
  EXPECT_THAT(message_of([&] {
                TextClassification(models::TextClassifier(models::TextClassifierOptions(99, 2).width(16)),
                                   splits, data::Vocabulary());
              }),
              testing::HasSubstr("made for 99 words, the vocabulary has 2"));
  EXPECT_FALSE(task(splits).has("validation"));
  EXPECT_THAT(message_of([&] { task(splits).evaluate("validation", {}); }),
              testing::HasSubstr("have no 'validation' set"));
  EXPECT_TRUE(task(splits).has("dev"));
}

}  // namespace
}  // namespace quatrain::tasks
