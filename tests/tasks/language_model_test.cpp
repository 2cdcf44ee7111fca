// The next token of a text: training, resuming, figures, answers, and what is refused.

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <sstream>

#include "quatrain/data/pieces.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/changed_set.h"
#include "tasks/settings.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kSmallText = R"toml(
[task]
kind = "language_model"
window = 8
[model]
algebra = "quaternion"
norm = "pre"
width = 32
heads = 2
feed_forward = 64
layers = 1
dropout = 0.0
[train]
rate = 1e-2
schedule = "cosine"
warmup = 10
steps = 60
batch = 8
evaluate_every = 20
)toml";

// Sentences of which each word but the first follows from the one before.
std::string sentences(int count, int first) {
  const std::vector<std::string> words{"the", "old", "king", "saw", "a", "small", "green", "bird"};
  std::string text;
  for (int i = first; i < first + count; ++i) {
    for (size_t word = static_cast<size_t>(i) % 3; word < words.size(); ++word) text += " " + words[word];
    text += i % 5 == 4 ? " .\n\n" : " .\n";
  }
  return text;
}

class LanguageKindTest : public test::FolderTest {
 protected:
  LanguageKindTest() {
    write("train.txt", sentences(200, 0));
    write("valid.txt", sentences(20, 1));
    write("test.txt", sentences(25, 2));
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::vector<Setting> settings_with_folder(const std::vector<std::string>& settings) const {
    std::vector<Setting> all{Setting::parse("task.folder=" + folder_.string())};
    for (const auto& text : settings) all.push_back(Setting::parse(text));
    return all;
  }
  Recipe recipe(const std::vector<std::string>& settings = {}) const {
    return parse_recipe(kSmallText, "small.toml", "small", settings_with_folder(settings));
  }
  train::Result learn(const Recipe& recipe, train::RunOptions run = {}) const {
    const auto data = load_data(recipe);
    const auto task = make_task(data->recipe(), *data);
    if (run.folder.empty()) run.folder = folder_ / "run";
    return train::Trainer(*task, data->recipe().train, run).run();
  }
  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(LanguageKindTest, LearnsWhatFollowsAndContinues) {
  const train::Result result = learn(recipe({"generate.temperature=0"}));
  EXPECT_LT(result.test.at("perplexity"), 2.5);  // all but the first word of a sentence is certain
  EXPECT_NEAR(result.test.at("perplexity"), std::exp(result.test.at("loss")), 1e-9);
  EXPECT_FALSE(result.test.contains("word_perplexity"));
  EXPECT_EQ(result.facts.at("vocabulary_size"), 4 + 9);
  const auto model = load_run(folder_ / "run");
  EXPECT_THAT(model->predict({"the old king", "", "a small"}),
              testing::ElementsAre("saw a small green bird .", "", "green bird ."));
  EXPECT_THAT(model->summary(), HasSubstr("9 tokens written, "));
}

// The pieces of one run as SentencePiece's own file, which a second one takes.
TEST_F(LanguageKindTest, PiecesMayBeThoseOfAFile) {
  learn(recipe({"train.steps=1", "vocabulary.pieces=bpe", "vocabulary.size=40"}),
        {.folder = folder_ / "first"});
  const std::string pieces = text_of(folder_ / "first/best/text.pieces");
  write("spm.model", pieces.substr(pieces.find('\n') + 1));
  learn(recipe({"train.steps=1", "vocabulary.file=spm.model"}));  // in the folder of the data
  EXPECT_TRUE(text_of(folder_ / "run/best/text.pieces") == pieces);
  EXPECT_EQ(find_value(load_run(folder_ / "run")->recipe(), "vocabulary.pieces"), "bpe");
}

// A mean over tokens, each of which is predicted once from what stands before it in its window.
TEST_F(LanguageKindTest, FiguresArePlainMeans) {
  // Of a line of spaces characters see one, and mark its end.
  const std::string test = sentences(25, 2) + " \n \n";
  write("test.txt", test);
  for (const int64_t stride : {0, 3}) {
    const auto data =
        load_data(recipe({"evaluate.stride=" + std::to_string(stride), "vocabulary.pieces=characters"}));
    const std::shared_ptr<Model> model = make_model(data->recipe(), *data);
    model->module().eval();
    const torch::NoGradGuard no_grad;
    const auto figures = data->make_task(model)->evaluate("test", {}).figures;

    model->store(folder_);
    const auto pieces = data::Pieces::load(folder_ / "text.pieces");
    std::vector<int64_t> text;
    int64_t words = 0;
    std::istringstream lines(test);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      for (const int32_t id : pieces.encode(line)) text.push_back(id);
      text.push_back(data::Pieces::kEnd);
      words += line == " "
                   ? 1
                   : std::count(line.begin(), line.end(), ' ') + 1;  // a space before each word, and the end
    }
    double loss = 0;
    for (size_t i = 1; i < text.size(); ++i) {
      size_t begin = 0;
      while (begin + 8 < i) begin += stride > 0 ? 3 : 8;
      const std::vector<int64_t> seen(text.begin() + static_cast<int64_t>(begin),
                                      text.begin() + static_cast<int64_t>(i));
      loss -=
          model->forward({torch::tensor(seen).unsqueeze(0)})[0][-1].log_softmax(0)[text[i]].item<double>();
    }
    const auto count = static_cast<double>(text.size() - 1);
    EXPECT_EQ(figures.at("count"), count);
    EXPECT_NEAR(figures.at("loss"), loss / count, 1e-5);
    EXPECT_NEAR(figures.at("perplexity"), std::exp(loss / count), 1e-3);
    EXPECT_NEAR(std::log(figures.at("word_perplexity")), loss / static_cast<double>(words), 1e-4);
  }
}

TEST_F(LanguageKindTest, ALossIsTheMeanOfABatchsTokens) {
  const auto data = load_data(recipe({"task.mark_ends=false"}));
  const std::shared_ptr<Model> model = make_model(data->recipe(), *data);
  const auto task = data->make_task(model);
  const auto inputs = data->inputs("train", data->recipe(), 8, 2);
  ASSERT_EQ(inputs.size(), 2);
  EXPECT_EQ(inputs[1].units, 64);
  const at::Tensor all = torch::cat({inputs[0].tensors[0], inputs[1].tensors[0]}, 1);
  const at::Tensor scores = model->forward({inputs[0].tensors[0]}).log_softmax(2);
  const double expected = -scores.gather(2, all.narrow(1, 1, 8).unsqueeze(2)).mean().item<double>();
  const auto batch = task->loss(0, 0);
  EXPECT_NEAR(batch.loss.item<double>(), expected, 1e-5);
  EXPECT_EQ(batch.examples, 64);
  EXPECT_EQ(task->describe_batch(1, 2),
            "batch 2 of epoch 1: tokens 16 to 23 of each of the training text's 8 columns");
}

TEST_F(LanguageKindTest, ResumesBitForBitWithinAnEpoch) {
  for (const char* pieces : {"words", "characters"}) {
    const Recipe whole = recipe({std::string("vocabulary.pieces=") + pieces, "model.dropout=0.1",
                                 "train.steps=30", "train.evaluate_every=10", "model.algebra=phm(4)",
                                 "model.embedding_in_algebra=true", "model.output=algebra"});
    const auto straight = learn(whole, {.folder = folder_ / "whole"});
    std::atomic<bool> stop = false;
    train::RunOptions half{.folder = folder_ / "half", .stop = &stop};
    half.on_progress = [&](const train::Progress& progress) { stop = progress.step >= 13; };
    EXPECT_FALSE(learn(whole, half).finished);
    const auto resumed = learn(whole, {.folder = folder_ / "half", .existing = train::Existing::resume});
    EXPECT_EQ(straight.test, resumed.test);
    for (const char* name : {"best/model.safetensors", "last/training.safetensors"})
      EXPECT_EQ(text_of(folder_ / "whole" / name), text_of(folder_ / "half" / name)) << pieces << " " << name;
    fs::remove_all(folder_ / "whole");
    fs::remove_all(folder_ / "half");
  }
}

TEST_F(LanguageKindTest, ATextThatWasReplacedIsRefusedAndNamed) {
  std::atomic<bool> stop = false;
  train::RunOptions run{.folder = folder_ / "run", .stop = &stop};
  run.on_progress = [&](const train::Progress& progress) { stop = progress.step >= 3; };
  learn(recipe(), run);
  for (const std::string name : {"train.txt", "valid.txt"}) {
    const std::string text = text_of(folder_ / name);
    std::string other = text;
    other.replace(other.find("old king"), 8, "king old");  // the vocabulary stays
    write(name, other);
    const std::string refusal = message_of(
        [&] { learn(recipe(), {.folder = folder_ / "run", .existing = train::Existing::resume}); });
    EXPECT_THAT(refusal, testing::AllOf(HasSubstr("with these data " + name + ".checksum differs"),
                                        HasSubstr("use the data that the run was started with")));
    write(name, text);
  }
  // Also where another vocabulary makes a model of another size.
  write("train.txt", sentences(200, 0) + " queen\n");
  EXPECT_THAT(
      message_of([&] { learn(recipe(), {.folder = folder_ / "run", .existing = train::Existing::resume}); }),
      testing::AllOf(HasSubstr("text.pieces"), HasSubstr("train.txt.checksum")));
  write("train.txt", sentences(200, 0));
  EXPECT_TRUE(learn(recipe(), {.folder = folder_ / "run", .existing = train::Existing::resume}).finished);
  for (const char* set : {"train", "dev", "test"})
    EXPECT_THAT(changed_set(folder_ / "run", set), testing::IsEmpty()) << set;
  write("valid.txt", sentences(20, 2));
  EXPECT_THAT(changed_set(folder_ / "run", "dev"), testing::ElementsAre("valid.txt"));
  EXPECT_THAT(changed_set(folder_ / "run", "test"), testing::IsEmpty());
}

TEST_F(LanguageKindTest, TextsThatAreNoneAreErrors) {
  const auto refusal = [&](const std::string& name, const std::string& text) {
    const std::string before = text_of(folder_ / name);
    write(name, text);
    const std::string message = message_of([&] {
      const auto data = load_data(recipe({"task.mark_ends=false"}));
      make_task(data->recipe(), *data);
    });
    write(name, before);
    return message;
  };
  EXPECT_THAT(refusal("train.txt", "a king\nb\xff\n"),
              testing::AllOf(HasSubstr("train.txt:2"), HasSubstr("UTF-8")));
  EXPECT_THAT(refusal("valid.txt", "\n  \n"), HasSubstr("must have at least one piece"));
  EXPECT_THAT(refusal("test.txt", "king\n"), HasSubstr("the test text must have 2 tokens or more"));
  EXPECT_THAT(refusal("train.txt", "a king saw\n"),
              testing::ContainsRegex(
                  "train.batch must be less than the 3 tokens of the train text, up to .*train.txt:1, got "));
  fs::remove(folder_ / "train.txt");
  EXPECT_THAT(message_of([&] { load_data(recipe()); }), HasSubstr("train.txt"));
}

TEST_F(LanguageKindTest, AnAnswerDependsOnItsLineAndTheSeedAlone) {
  learn(recipe({"train.steps=5", "generate.tokens=12", "generate.temperature=1.5"}));
  const auto model = load_run(folder_ / "run");
  std::vector<std::string> lines;
  for (int i = 0; i < 80; ++i) lines.push_back(sentences(1, i).substr(0, static_cast<size_t>(10 + i % 20)));
  const auto all = model->predict(lines);
  EXPECT_EQ(all, model->predict(lines));
  for (const size_t i : {size_t{0}, size_t{41}, size_t{79}})
    EXPECT_EQ(model->predict({lines[i]}).front(), all[i]);
  EXPECT_EQ(model->predict({"a bird", "a bird"})[0], model->predict({"old", "a bird"})[1]);
  EXPECT_NE(model->predict({"a bird"}), model->predict({"a  bird"})) << "the same words, but another line";

  const auto changed = [&](const std::string& setting) {
    const fs::path stored = folder_ / "run" / "best" / "recipe.toml";
    Recipe other = read_recipe(stored.string(), {Setting::parse(setting)});
    auto again = other.kind->load_model(std::move(other), folder_ / "run" / "best");
    again->module().eval();
    return again->predict(lines);
  };
  EXPECT_NE(changed("generate.seed=1"), all);
  EXPECT_EQ(changed("generate.seed=0"), all);
  const auto greedy = changed("generate.temperature=0");
  EXPECT_EQ(changed("generate.top_k=1"), greedy);
  EXPECT_EQ(changed("generate.top_p=1e-9"), greedy);
}

TEST_F(LanguageKindTest, LinesAreScored) {
  learn(recipe({"generate.score=true"}));
  const auto model = load_run(folder_ / "run");
  const auto answers = model->predict({"the old king saw", "", "king old the saw", "old king"});
  ASSERT_EQ(answers.size(), 4);
  EXPECT_EQ(answers[1], "");
  const auto numbers = [&](size_t i) {
    std::pair<double, double> both;
    EXPECT_EQ(std::count(answers[i].begin(), answers[i].end(), '\t'), 1) << answers[i];
    std::istringstream(answers[i]) >> both.first >> both.second;
    return both;
  };
  EXPECT_GT(numbers(0).first, numbers(2).first + 3);
  EXPECT_LT(numbers(0).second, numbers(2).second);
  // The mark of the end before, the words, the mark of the end.
  const auto pieces = data::Pieces::load(folder_ / "run" / "best" / "text.pieces");
  const torch::NoGradGuard no_grad;
  const int64_t old = pieces.id("old"), king = pieces.id("king"), end = data::Pieces::kEnd;
  const at::Tensor p = model->forward({torch::tensor({end, old, king}).unsqueeze(0)})[0].log_softmax(1);
  const double expected = (p[0][old] + p[1][king] + p[2][end]).item<double>();
  EXPECT_NEAR(numbers(3).first, expected, 2e-4);
  EXPECT_NEAR(numbers(3).second, std::exp(-expected / 3), 1e-3);
  EXPECT_THAT(model->summary(), HasSubstr("13 tokens scored, "));
}

// Without marks of ends the first token is given, and nothing ends a continuation but its length.
TEST_F(LanguageKindTest, TextWithoutMarksOfEnds) {
  learn(recipe({"task.mark_ends=false", "generate.tokens=20", "train.steps=5"}));
  const auto model = load_run(folder_ / "run");
  const auto answer = model->predict({"the old"}).front();
  EXPECT_EQ(std::count(answer.begin(), answer.end(), ' '), 19) << answer;
  Recipe scoring = read_recipe((folder_ / "run" / "best" / "recipe.toml").string(),
                               {Setting::parse("generate.score=true")});
  const auto scorer = scoring.kind->load_model(std::move(scoring), folder_ / "run" / "best");
  scorer->module().eval();
  const auto [answers, problem] =
      tasks::answer(*scorer, std::vector<std::string>{"the old", "the", "old king"});
  // The first token has no score, so a line of one has none.
  EXPECT_THAT(answers, ElementsAre(HasSubstr("\t"), "", HasSubstr("\t")));
  EXPECT_EQ(problem, "");
}

// A vocabulary so small that the text is mostly <unk>.
TEST_F(LanguageKindTest, UnknownTokensCanBeForbidden) {
  learn(recipe({"vocabulary.size=6", "task.mark_ends=false", "generate.tokens=20", "train.steps=5"}));
  EXPECT_THAT(load_run(folder_ / "run")->predict({"the old"}).front(), HasSubstr("<unk>"));
  EXPECT_THAT(
      load_run(folder_ / "run", settings_of_tests({"generate.unknown=false"}))->predict({"the old"}).front(),
      testing::Not(HasSubstr("<unk>")));
}

TEST_F(LanguageKindTest, LongPromptsAreCutAndCounted) {
  learn(recipe({"train.steps=2", "generate.tokens=3"}));
  const auto model = load_run(folder_ / "run");
  std::string line;
  for (int i = 0; i < 100000; ++i) line += "bird ";
  const auto answers = model->predict({line, "the old king saw", line + "."});
  EXPECT_EQ(answers.size(), 3U);
  EXPECT_THAT(model->summary(), HasSubstr("of 2 lines only the last 8 tokens were read"));
}

TEST_F(LanguageKindTest, WhatStartsFromARunHasItsVocabulary) {
  learn(recipe({"train.steps=2", "vocabulary.pieces=characters"}), {.folder = folder_ / "first"});
  write("train.txt", sentences(200, 0) + " QUEEN\n");
  learn(recipe({"train.steps=2", "train.weights=" + (folder_ / "first").string()}));
  EXPECT_EQ(text_of(folder_ / "run/best/text.pieces"), text_of(folder_ / "first/best/text.pieces"));
  EXPECT_EQ(find_value(read_recipe((folder_ / "run/best/recipe.toml").string()), "vocabulary.pieces"),
            "characters");
}

TEST_F(LanguageKindTest, RulesThatJoinKeys) {
  const auto refused = [&](const std::vector<std::string>& settings) {
    return message_of([&] { recipe(settings); });
  };
  EXPECT_THAT(refused({"evaluate.stride=9"}),
              HasSubstr("evaluate.stride must be at most task.window = 8, got 9"));
  EXPECT_THAT(refused({"model.positions=learned", "model.max_positions=7"}),
              HasSubstr("model.max_positions must be at least task.window = 8, got 7"));
  EXPECT_THAT(refused({"task.data=wikitext"}), HasSubstr("must be one of text, wikitext2"));
  EXPECT_THAT(refused({"generate.top_p=0"}), HasSubstr("generate.top_p"));
  EXPECT_EQ(refused({"evaluate.stride=8", "model.positions=learned", "model.max_positions=8"}), "no error");
}

TEST_F(LanguageKindTest, OnlyTheSplitThatIsScoredIsKept) {
  const auto whole = load_data(recipe());
  const std::shared_ptr<Model> model = make_model(whole->recipe(), *whole);
  model->module().eval();
  const auto part = load_data(recipe(), {"", "test", model.get()});
  EXPECT_TRUE(part->has("test"));
  EXPECT_FALSE(part->has("train") || part->has("dev"));
  const torch::NoGradGuard no_grad;
  fs::create_directory(folder_ / "elsewhere");
  write("elsewhere/test.txt", sentences(25, 2));
  EXPECT_EQ(load_data(recipe(), {(folder_ / "elsewhere").string(), "test", model.get()})
                ->make_task(model)
                ->evaluate("test", {})
                .figures,
            whole->make_task(model)->evaluate("test", {}).figures);
  EXPECT_EQ(part->make_task(model)->evaluate("test", {}).figures,
            whole->make_task(model)->evaluate("test", {}).figures);
}

TEST_F(LanguageKindTest, ARealRunHasTwinsInAlgebras) {
  learn(recipe({"model.algebra=real", "train.steps=1"}));
  const auto twin = load_run(folder_ / "run")->in_algebra("phm(4)");
  EXPECT_EQ(find_value(twin->recipe(), "model.algebra"), "phm(4)");
  EXPECT_EQ(twin->recipe().selecting().name, "loss");
  EXPECT_EQ(twin->forward({torch::zeros({2, 3}, torch::kLong)}).sizes(), (at::IntArrayRef{2, 3, 13}));
}

// The recipe and its twins, small, on this text.
TEST_F(LanguageKindTest, TheRecipeTrains) {
  const std::vector<std::string> small{"task.data=text",     "model.width=32", "model.heads=2",
                                       "model.layers=2",     "train.steps=2",  "model.feed_forward=32",
                                       "vocabulary.size=13", "train.batch=4"};
  const Recipe whole = read_recipe(QUATRAIN_RECIPES "/language_model.toml", settings_with_folder(small));
  ASSERT_GE(whole.twins.size(), 5);
  for (const auto& twin : whole.twins) {
    SCOPED_TRACE(twin.name);
    const train::Result result = learn(twin_recipe(whole, twin), {.folder = folder_ / twin.name});
    EXPECT_TRUE(result.test.contains("perplexity"));
    EXPECT_EQ(load_run(folder_ / twin.name)->predict({"the old"}).size(), 1);
  }
}

// Of its full size, with as many words as the paper has.
TEST_F(LanguageKindTest, TheRecipesSizesArePhydis) {
  std::string words;
  for (int i = 0; i < 28790; ++i) words += "w" + std::to_string(i) + (i % 10 == 9 ? "\n" : " ");
  write("train.txt", words);
  write("valid.txt", "w1 w2\n");
  write("test.txt", "w1 w2\n");
  const Recipe whole =
      read_recipe(QUATRAIN_RECIPES "/language_model.toml", settings_with_folder({"task.data=text"}));
  const auto data = load_data(whole);
  const auto count = [&](const char* twin) {
    int64_t sum = 0;
    for (const auto& one :
         make_model(twin_recipe(data->recipe(), find_twin(whole, twin)), *data)->module().parameters())
      sum += one.numel();
    return sum;
  };
  EXPECT_EQ(count("phydi"), 2277880);
  EXPECT_EQ(count("pre"), 2284012 + 256);  // the norm at the end
  EXPECT_EQ(count("post"), 2284012);
  EXPECT_NEAR(static_cast<double>(count("real-narrow")), 2277880, 50000);
}

}  // namespace
}  // namespace quatrain::tasks
