// Text classification as a task: figures, order of the answers, and a run from texts to a resumed checkpoint.

#include "quatrain/tasks/text_classification.h"

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <array>
#include <atomic>
#include <fstream>

#include "quatrain/train/trainer.h"
#include "tasks/changed_set.h"
#include "tasks/settings.h"
#include "threads.h"
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

TextClassification task(const data::Splits& splits, const std::string& algebra = "quaternion",
                        std::map<std::string, std::string> checksums = {}) {
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
  options.checksums = std::move(checksums);
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
  EXPECT_EQ(found.figures.at("count/label=good") + found.figures.at("count/label=bad"), 23);
  EXPECT_DOUBLE_EQ(found.figures.at("f1"), found.figures.at("f1/label=good"));
  EXPECT_TRUE(found.files.at("test.confusions.tsv").starts_with("label\tanswer\tcount\n"));
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
  const test::Threads threads(2);
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

constexpr const char* kOwnTexts = R"toml(
[task]
kind = "text_classification"
data = "tsv"
[model]
width = 16
heads = 2
feed_forward = 32
layers = 1
[train]
steps = 4
batch = 8
evaluate_every = 2
threads = 1
)toml";

class OwnTextsTest : public TextClassificationTest {
 protected:
  OwnTextsTest() {
    for (const char* set : {"train", "dev", "test"})
      write(set, "good\ta fine film\nbad\ta dull film\nbad\ta dull plot\n");
  }
  void write(const std::string& set, const std::string& lines) const {
    std::ofstream(folder_ / (set + ".tsv")) << lines;
  }
  std::unique_ptr<Data> load(const std::vector<std::string>& settings = {}) const {
    auto all = settings_of_tests(settings);
    if (settings.empty()) all.push_back(Setting::parse("task.folder=" + folder_.string()));
    return load_data(parse_recipe(kOwnTexts, "own.toml", "own", all));
  }
  Result learn(const RunOptions& run) const {
    const auto data = load();
    return Trainer(*make_task(data->recipe(), *data), data->recipe().train, run).run();
  }
};

TEST_F(OwnTextsTest, ARunGoesOnWithTheSameTextsAlone) {
  std::atomic<bool> stop{false};
  RunOptions half{.folder = folder_ / "run", .stop = &stop};
  half.on_progress = [&](const Progress& progress) { stop = progress.step >= 3; };
  EXPECT_FALSE(learn(half).finished);
  for (const std::string set : {"train", "dev", "test"}) {
    const std::string before = contents(folder_ / (set + ".tsv"));
    for (const char* other : {"good\ta dull film\nbad\ta fine film\nbad\ta dull plot\n",     // other labels
                              "good\ta fine film\nbad\ta dull plot\nbad\ta dull film\n",     // another order
                              "good\ta fine film\nbad\ta dull film plot\nbad\ta dull\n"}) {  // the same words
      write(set, other);
      const std::string refusal =
          message_of([&] { learn({.folder = folder_ / "run", .existing = Existing::resume}); });
      EXPECT_THAT(refusal, testing::HasSubstr("with these data " + set + ".texts.checksum differs")) << other;
    }
    write(set, before);
  }
  std::vector<std::string> told;
  RunOptions rest{.folder = folder_ / "run", .existing = Existing::resume};
  rest.on_message = [&](const std::string& text) { told.push_back(text); };
  EXPECT_TRUE(learn(rest).finished);
  EXPECT_THAT(told, testing::IsEmpty());
}

// They bring their rows of the last layer along. A checkpoint's file of weights is as good as its run.
TEST_F(OwnTextsTest, LabelsInAnotherOrderKeepTheLastLayer) {
  learn({.folder = folder_ / "run"});
  const auto trained = load_run(folder_ / "run")->module().named_parameters();
  std::filesystem::copy(folder_ / "run" / "best", folder_ / "copy");
  for (const bool other_order : {false, true}) {
    std::ofstream(folder_ / "copy" / "labels.txt") << (other_order ? "good\nbad\n" : "bad\ngood\n");
    const auto data = load({"task.folder=" + folder_.string(),
                            "train.weights=" + (folder_ / "copy" / "model.safetensors").string()});
    EXPECT_THAT(data->notes(), testing::Contains(testing::HasSubstr("the vocabulary is that of")));
    EXPECT_THAT(data->notes(), testing::Not(testing::Contains(testing::HasSubstr("random weights"))));
    const auto model = make_model(data->recipe(), *data);
    for (const auto& item : model->module().named_parameters()) {
      at::Tensor expected = trained[item.key()];
      if (other_order && item.key().starts_with("head."))
        expected = expected.flip(std::max<int64_t>(0, expected.dim() - 2));
      EXPECT_TRUE(torch::equal(item.value(), expected)) << item.key();
    }
  }
}

// A file of vectors is not needed again, since the weights have them.
TEST_F(OwnTextsTest, VectorsComeWithTheWeights) {
  std::ofstream(folder_ / "vectors.txt") << "fine 1 0 0\ndull 0 1 0\n";
  const std::string folder = "task.folder=" + folder_.string(),
                    vectors = "task.vectors=" + (folder_ / "vectors.txt").string();
  const auto data = load({folder, vectors});
  Trainer(*make_task(data->recipe(), *data), data->recipe().train, {.folder = folder_ / "run"}).run();
  std::filesystem::remove(folder_ / "vectors.txt");
  const auto tuned = load({folder, vectors, "train.weights=" + (folder_ / "run").string()});
  const auto words = make_model(tuned->recipe(), *tuned)->module().named_parameters()["embedding.weight"];
  EXPECT_TRUE(words.equal(load_run(folder_ / "run")->module().named_parameters()["embedding.weight"]));
  EXPECT_EQ(words.size(1), 3);
}

// Fine-tuning on other labels: all but the head is the run's.
TEST_F(OwnTextsTest, OtherLabelsGetAHeadOfTheirOwn) {
  learn({.folder = folder_ / "run"});
  const auto parse = [&] {
    return parse_recipe(kOwnTexts, "own.toml", "own",
                        settings_of_tests({"task.folder=" + folder_.string(),
                                           "train.weights=" + (folder_ / "run").string()}));
  };
  const auto head_and_rest = [](torch::nn::Module& module) {
    std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> parts;
    for (const auto& item : module.named_parameters())
      (item.key().starts_with("head") ? parts.first : parts.second).push_back(item.value());
    return parts;
  };
  const auto run = load_run(folder_ / "run");
  const auto [head, rest] = head_and_rest(run->module());
  // The same labels keep all, others of the same number or of another one do not.
  for (const auto& [labels, own_head] : {std::pair{std::array{"good", "bad", "bad"}, false},
                                         {{"happy", "sad", "sad"}, true},
                                         {{"a", "b", "c"}, true}}) {
    for (const char* set : {"train", "dev", "test"})
      write(set, std::string(labels[0]) + "\ta fine film\n" + labels[1] + "\ta dull film\n" + labels[2] +
                     "\ta dull plot\n");
    const Recipe recipe = parse();
    const auto data = load_data(recipe);
    const std::string note = "the last layer starts from random weights: the labels of these data, ";
    EXPECT_EQ(testing::Matches(testing::Contains(testing::HasSubstr(note)))(data->notes()), own_head);
    const auto model = make_model(data->recipe(), *data, true);
    const auto [new_head, new_rest] = head_and_rest(model->module());
    ASSERT_EQ(new_rest.size(), rest.size());
    for (size_t i = 0; i < rest.size(); ++i) EXPECT_TRUE(torch::equal(new_rest[i], rest[i]));
    EXPECT_EQ(torch::equal(new_head[0], head[0]), !own_head) << labels[0];
    EXPECT_EQ(new_head[0].numel(), std::string(labels[0]) == "a" ? head[0].numel() / 2 * 3 : head[0].numel());
  }
}

TEST_F(OwnTextsTest, ASetThatWasReplacedIsToldWhereItIsScored) {
  learn({.folder = folder_ / "run"});
  for (const char* set : {"train", "dev", "test"})
    EXPECT_THAT(changed_set(folder_ / "run", set), testing::IsEmpty()) << set;
  write("test", "good\ta fine film\nbad\ta dull film\n");
  EXPECT_THAT(changed_set(folder_ / "run", "test"), testing::ElementsAre("test.texts"));
  EXPECT_THAT(changed_set(folder_ / "run", "dev"), testing::IsEmpty());
}

TEST_F(OwnTextsTest, LabelsAreToldBeforeTraining) {
  EXPECT_THAT(load()->notes(), testing::ElementsAre("labels: bad 2, good 1 of 3 texts"));
  std::string lines;
  for (int i = 0; i < 1012; ++i) lines += "l" + std::to_string(i % 1000 < 12 ? i % 1000 : 0) + "\tfilm\n";
  write("train", lines);
  EXPECT_THAT(message_of([&] { load(); }), testing::HasSubstr("must be one of those of the training set"));
  for (const char* set : {"dev", "test"}) write(set, "l0\tfilm\n");
  EXPECT_THAT(load()->notes(), testing::ElementsAre("labels: l0 990, l1 2, l10 2, l11 2, l2 2, l3 2, l4 2, "
                                                    "l5 2, l6 2, l7 2 and 2 more of 1,012 texts"));
  // The recipe decides what is generated.
  const auto generated = load({"task.data=agreement", "agreement.train=20"});
  EXPECT_THAT(generated->checksums(), testing::IsEmpty());
  EXPECT_THAT(generated->notes(), testing::ElementsAre(testing::EndsWith("of 20 texts")));
}

TEST_F(TextClassificationTest, ACheckpointOfAnOlderVersionHasNoChecksums) {
  const data::Splits splits = texts();
  std::vector<std::string> told;
  const auto go_on = [&](TextClassification classification, int64_t steps) {
    TrainerOptions options = training();
    options.steps = steps;
    RunOptions run{.folder = folder_ / "run", .existing = Existing::resume};
    run.on_message = [&](const std::string& text) { told.push_back(text); };
    return Trainer(classification, options, run).run().steps;
  };
  const std::map<std::string, std::string> one{{"train.texts", "1"}}, other{{"train.texts", "2"}};
  EXPECT_EQ(go_on(task(splits), 10), 10);
  EXPECT_THAT(told, testing::IsEmpty());
  EXPECT_EQ(go_on(task(splits, "quaternion", one), 20), 20);
  EXPECT_THAT(told, testing::ElementsAre(testing::HasSubstr("kept no checksums of such data")));
  EXPECT_EQ(contents(folder_ / "run" / "last" / "train.texts.checksum"), "1\n");
  EXPECT_THAT(message_of([&] { go_on(task(splits, "quaternion", other), 30); }),
              testing::HasSubstr("train.texts.checksum differs"));
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
