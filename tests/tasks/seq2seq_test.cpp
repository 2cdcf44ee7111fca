// Lines become other lines: training, resuming, answers, and what is refused.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "quatrain/tasks/run.h"
#include "quatrain/train/checkpoint.h"
#include "quatrain/train/trainer.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Three letters backwards: a task for seconds.
constexpr const char* kBackwards = R"toml(
[task]
kind = "seq2seq"
data = "reverse"
[reverse]
shortest = 1
longest = 4
symbols = 7
train = 4000
dev = 50
test = 100
[model]
algebra = "quaternion"
norm = "pre"
width = 32
heads = 2
feed_forward = 64
encoder_layers = 1
decoder_layers = 1
dropout = 0.0
[train]
rate = 5e-3
schedule = "cosine"
warmup = 20
steps = 500
batch = 64
evaluate_every = 100
label_smoothing = 0.0
select = "exact"
)toml";

std::vector<Setting> settings_of_tests(const std::vector<std::string>& settings) {
  std::vector<Setting> all;
  for (const auto& text : settings) all.push_back(Setting::parse(text));
  return all;
}

class Seq2SeqKindTest : public test::FolderTest {
 protected:
  // Layers this small gain nothing from a second thread.
  void SetUp() override {
    test::FolderTest::SetUp();
    at::set_num_threads(1);
  }
  void TearDown() override {
    at::set_num_threads(threads_);
    test::FolderTest::TearDown();
  }

  Recipe recipe(const std::vector<std::string>& settings = {}) {
    return parse_recipe(kBackwards, "backwards.toml", "backwards", settings_of_tests(settings));
  }
  // A corpus of lines and the same lines in capitals.
  Recipe corpus(const std::vector<std::string>& settings = {}) {
    for (const auto& [split, count] : {std::pair{"train", 60}, std::pair{"dev", 8}, std::pair{"test", 8}})
      write_corpus(split, count);
    std::vector<std::string> all{
        "task.data=parallel", "task.source=low",        "task.target=up", "task.folder=" + folder_.string(),
        "train.steps=12",     "train.evaluate_every=6", "train.batch=16"};
    all.insert(all.end(), settings.begin(), settings.end());
    return recipe(all);
  }
  void write_corpus(const std::string& split, int count, const std::string& more = "") {
    std::ofstream low(folder_ / (split + ".low")), up(folder_ / (split + ".up"));
    for (int i = 0; i < count; ++i) {
      std::string line;
      for (int j = 0; j < 2 + i % 5; ++j) line += static_cast<char>('a' + (i * 3 + j * j) % 26);
      low << line << "\n";
      for (char& c : line) c = static_cast<char>(c - 32);
      up << line << more << "\n";
    }
  }
  train::Result learn(const Recipe& recipe, train::RunOptions run = {}) {
    const auto data = load_data(recipe);
    const auto task = make_task(data->recipe(), *data);
    if (run.folder.empty()) run.folder = folder_ / "run";
    return train::Trainer(*task, data->recipe().train, run).run();
  }
  std::string refusal_of(const Recipe& recipe, train::RunOptions run) {
    try {
      learn(recipe, std::move(run));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string text_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  const int threads_ = at::get_num_threads();
};

TEST_F(Seq2SeqKindTest, LearnsToReverseAndAnswers) {
  const train::Result result = learn(recipe());
  EXPECT_GT(result.test.at("exact"), 0.9);
  EXPECT_GT(result.test.at("bleu"), 50);
  EXPECT_LT(result.test.at("loss"), 0.2);
  EXPECT_NEAR(result.test.at("perplexity"), std::exp(result.test.at("loss")), 1e-9);
  // The answers to the test set lie in the run.
  const std::string hypotheses = text_of(folder_ / "run" / "test.hypotheses.txt");
  EXPECT_EQ(std::count(hypotheses.begin(), hypotheses.end(), '\n'), 100);

  const auto model = load_run(folder_ / "run");
  const auto answers = model->predict({"a b c", "", "d e"});
  EXPECT_EQ(answers, (std::vector<std::string>{"c b a", "", "e d"}));
  EXPECT_THAT(model->summary(), HasSubstr("10 tokens written"));
  // Each by itself.
  EXPECT_EQ(model->predict({"d e"}), (std::vector<std::string>{"e d"}));
}

TEST_F(Seq2SeqKindTest, SeveralHypothesesWithScores) {
  learn(recipe({"train.steps=30", "decode.beam=4", "decode.best=3", "decode.scores=true"}));
  const auto model = load_run(folder_ / "run");
  const std::string answer = model->predict({"a b c"}).front();
  EXPECT_EQ(std::count(answer.begin(), answer.end(), '\t'), 5) << answer;
  const double first = std::stod(answer), third = std::stod(answer.substr(answer.find_last_of('-')));
  EXPECT_GE(first, third);
}

TEST_F(Seq2SeqKindTest, RepeatsAndPhrasesAreBanned) {
  learn(recipe({"train.steps=1", "vocabulary.pieces=words"}));
  const auto answer = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all{"decode.shortest=6", "decode.beam=1"};
    all.insert(all.end(), settings.begin(), settings.end());
    return load_run(folder_ / "run", settings_of_tests(all))->predict({"a b c"}).front();
  };
  // Of a model that knows nothing, one letter again and again.
  std::istringstream free(answer({}));
  std::string letter, second;
  free >> letter >> second;
  ASSERT_EQ(letter, second);
  EXPECT_THAT(answer({"decode.no_repeat=2"}), testing::Not(HasSubstr(letter + " " + letter + " " + letter)));
  EXPECT_THAT(answer({"decode.banned=" + letter}), testing::Not(HasSubstr(letter)));
  const std::string pair = letter + " " + letter;
  EXPECT_THAT(answer({"decode.banned=" + pair + " | <unk>"}),
              testing::AllOf(testing::StartsWith(letter), testing::Not(HasSubstr(pair))));
  const auto refused = [&](const std::string& phrases) -> std::string {
    try {
      answer({"decode.banned=" + phrases});
    } catch (const RecipeError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refused("a | Q"), HasSubstr("decode.banned has \"Q\", which the target's vocabulary"));
  EXPECT_THAT(refused("a |  | b"), HasSubstr("decode.banned must have phrases"));
}

TEST_F(Seq2SeqKindTest, ResumesBitForBitWithinAnEpoch) {
  for (const char* pieces : {"characters", "unigram"}) {
    const Recipe whole = corpus({std::string("vocabulary.pieces=") + pieces, "vocabulary.size=60",
                                 "model.dropout=0.1", "train.batch_tokens=60"});
    learn(whole, {.folder = folder_ / "whole"});
    std::atomic<bool> stop = false;
    train::RunOptions half{.folder = folder_ / "half"};
    half.stop = &stop;
    half.on_progress = [&](const train::Progress& progress) { stop = progress.step >= 5; };
    EXPECT_FALSE(learn(whole, half).finished);
    learn(whole, {.folder = folder_ / "half", .existing = train::Existing::resume});
    for (const char* name : {"best/model.safetensors", "test.hypotheses.txt"})
      EXPECT_EQ(text_of(folder_ / "whole" / name), text_of(folder_ / "half" / name)) << pieces << " " << name;
    fs::remove_all(folder_ / "whole");
    fs::remove_all(folder_ / "half");
  }
}

TEST_F(Seq2SeqKindTest, ACorpusThatWasReplacedIsRefusedAndNamed) {
  const Recipe recipe = corpus();
  std::atomic<bool> stop = false;
  train::RunOptions run{.folder = folder_ / "run"};
  run.stop = &stop;
  run.on_progress = [&](const train::Progress& progress) { stop = progress.step >= 3; };
  learn(recipe, run);
  {
    std::ofstream up(folder_ / "train.up", std::ios::in | std::ios::out);
    up.seekp(0);
    up << "Z";  // a letter that the vocabulary has
  }
  const std::string refusal =
      refusal_of(recipe, {.folder = folder_ / "run", .existing = train::Existing::resume});
  EXPECT_THAT(refusal, HasSubstr("train.up.checksum"));
  EXPECT_THAT(refusal, testing::Not(HasSubstr("train.low.checksum")));
}

TEST_F(Seq2SeqKindTest, AnotherVocabularyIsRefused) {
  learn(corpus(), {.folder = folder_ / "first"});
  write_corpus("train", 60, "!");
  const Recipe other =
      parse_recipe(kBackwards, "backwards.toml", "backwards",
                   settings_of_tests({"task.data=parallel", "task.source=low", "task.target=up",
                                      "task.folder=" + folder_.string(), "train.steps=2",
                                      "train.weights=" + (folder_ / "first").string()}));
  EXPECT_THAT(refusal_of(other, {.folder = folder_ / "second"}), HasSubstr("the vocabulary of the run"));
}

TEST_F(Seq2SeqKindTest, LongLinesAreCutAndCounted) {
  learn(recipe({"train.steps=4", "task.max_source=6"}));
  const auto model = load_run(folder_ / "run");
  std::string line;
  for (int i = 0; i < 100000; ++i) line += "a ";
  EXPECT_EQ(model->predict({line, "a"}).size(), 2U);
  EXPECT_THAT(model->summary(), HasSubstr("1 line cut at 6 tokens"));
}

TEST_F(Seq2SeqKindTest, BadPairsAreErrorsOrCounted) {
  corpus();
  std::ofstream(folder_ / "train.up", std::ios::app) << "\n";
  std::ofstream(folder_ / "train.low", std::ios::app) << "word\n";
  const auto asked = [&](const char* skip) {
    return recipe({"task.data=parallel", "task.source=low", "task.target=up",
                   "task.folder=" + folder_.string(), std::string("task.skip_bad=") + skip});
  };
  try {
    load_data(asked("false"));
    FAIL() << "no error";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("train.up:61"));
  }
  const auto notes = load_data(asked("true"))->notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes.front(), testing::AllOf(HasSubstr("1 pair left out"), HasSubstr("train.up:61")));
}

TEST_F(Seq2SeqKindTest, RulesThatJoinKeys) {
  const auto refused = [&](const std::vector<std::string>& settings) -> std::string {
    try {
      recipe(settings);
    } catch (const RecipeError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refused({"vocabulary.joint=false"}), HasSubstr("model.share_embeddings"));
  EXPECT_THAT(refused({"decode.best=5", "decode.beam=4"}),
              HasSubstr("decode.best must be at most decode.beam"));
  EXPECT_THAT(refused({"decode.shortest=9", "decode.longest=8"}), HasSubstr("decode.shortest"));
  EXPECT_THAT(refused({"math.lowest=9", "math.highest=9"}), HasSubstr("math.highest"));
  EXPECT_THAT(refused({"reverse.longest=2", "reverse.shortest=3"}), HasSubstr("reverse.longest"));
  EXPECT_EQ(refused({"vocabulary.joint=false", "model.share_embeddings=false"}), "no error");
}

TEST_F(Seq2SeqKindTest, TwoVocabulariesAndTwins) {
  const Recipe two = corpus({"vocabulary.joint=false", "model.share_embeddings=false", "model.output=real",
                             "model.algebra=phm(4)"});
  learn(two);
  EXPECT_TRUE(fs::exists(folder_ / "run" / "best" / "target.pieces"));
  const auto model = load_run(folder_ / "run");
  EXPECT_EQ(model->predict({"abc"}).size(), 1U);
  const auto real = model->in_algebra("real");
  EXPECT_EQ(real->recipe().selecting().name, "exact");
}

}  // namespace
}  // namespace quatrain::tasks
