// Lines become other lines: training, resuming, answers, and what is refused.

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "quatrain/data/pieces.h"
#include "quatrain/train/checkpoint.h"
#include "tasks/changed_set.h"
#include "tasks/seq2seq_runs.h"
#include "threads.h"
#include "train/autocast.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

// With the answers of the weights that are evaluated: while the loss selects, those of a greedy search.
TEST_F(Seq2SeqKindTest, AnEvaluationShowsSentencesOfTheDevSet) {
  for (const std::string select : {"loss", "exact"}) {
    SCOPED_TRACE(select);
    std::vector<std::string> told;
    train::RunOptions run{.folder = folder_ / select};
    run.on_sample = [&](const std::string& text) { told.push_back(text); };
    learn(corpus({"train.select=" + select, "train.samples=3", "train.steps=80", "train.evaluate_every=40",
                  "vocabulary.pieces=characters"}),
          run);
    ASSERT_EQ(told.size(), 6U);  // of two evaluations
    const std::vector<std::string> sources{"ab", "deh", "ghkp"}, targets{"AB", "DEH", "GHKP"};
    const bool greedy = select == "loss";
    const auto answers = load_checkpoint(folder_ / select / "last",
                                         settings_of_tests({greedy ? "decode.beam=1" : "decode.beam=4"}))
                             ->predict(sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(told[3 + i], sources[i] + " -> " + answers[i] + "  [" + targets[i] + "]");
      EXPECT_THAT(told[i], testing::AllOf(testing::StartsWith(sources[i] + " -> "),
                                          testing::EndsWith("  [" + targets[i] + "]")));
    }
  }
}

// At a rate that grows until it is far too high, so that BLEU rises and falls, whatever the last bits are.
TEST_F(Seq2SeqKindTest, TheHighestBleuSelects) {
  const Recipe whole = recipe({"train.select=bleu", "train.rate=0.5", "train.schedule=constant",
                               "train.warmup=160", "train.steps=160", "train.evaluate_every=20"});
  const train::Result result = learn(whole, {.folder = folder_ / "whole"});
  EXPECT_EQ(result.figure, "bleu");
  std::map<int64_t, double> bleu;  // of each evaluation
  std::ifstream lines(folder_ / "whole/metrics.jsonl");
  for (std::string text; std::getline(lines, text);)
    if (const auto line = nlohmann::json::parse(text); line["kind"] == "evaluation")
      bleu[line["step"].get<int64_t>()] = line["figures"]["bleu"].get<double>();
  ASSERT_EQ(bleu.size(), 8U);
  const auto best = std::max_element(bleu.begin(), bleu.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  ASSERT_LT(best->first, 160) << "it did not fall: whoever keeps the last one would pass";
  EXPECT_EQ(result.best_step, best->first);
  EXPECT_EQ(result.dev.at("bleu"), best->second);
  const auto data = load_data(whole);
  const std::shared_ptr<Model> model = load_run(folder_ / "whole");
  EXPECT_NEAR(data->make_task(model)->evaluate("dev", {}).figures.at("bleu"), best->second, 1e-9);

  EXPECT_FALSE(learn_until(50, whole, folder_ / "half").finished);
  const auto resumed = learn(whole, {.folder = folder_ / "half", .existing = train::Existing::resume});
  EXPECT_EQ(resumed.best_step, result.best_step);
  EXPECT_EQ(text_of(folder_ / "half/best/model.safetensors"),
            text_of(folder_ / "whole/best/model.safetensors"));
}

// Of smoothing s: (1 - s) of the loss of the words themselves, and s of the mean loss of all words.
TEST_F(Seq2SeqKindTest, TheLossThatIsLearnedIsSmoothedAndNoFigure) {
  const auto data = load_data(recipe({"train.select=loss"}));
  const auto task_of = [&](const char* smoothing) {
    auto task =
        make_task(recipe({"train.select=loss", std::string("train.label_smoothing=") + smoothing}), *data);
    task->model().eval();  // without dropout both ways are the same
    return task;
  };
  const auto plain = task_of("0.0");
  const double words = plain->loss(0, 0).loss.item<double>();

  const torch::NoGradGuard no_grad;
  const auto model = make_model(data->recipe(), *data);  // of the same weights
  const Input batch = data->inputs("train", data->recipe(), 64, 1).front();
  const at::Tensor scores = model->forward(batch.tensors);
  const at::Tensor places = batch.tensors.at(3).logical_not();  // that hold a token
  const double all = -scores.log_softmax(-1).mean(-1).masked_select(places).mean().item<double>();
  EXPECT_GT(all, std::log(static_cast<double>(scores.size(-1))));
  EXPECT_GT(std::abs(all - words), 1e-2) << "smoothing could not be seen";

  const double figure = plain->evaluate("dev", {}).figures.at("loss");
  for (const auto& [name, share] : {std::pair{"0.1", 0.1}, {"0.5", 0.5}, {"0.9", 0.9}}) {
    const auto smoothed = task_of(name);
    EXPECT_NEAR(smoothed->loss(0, 0).loss.item<double>(), (1 - share) * words + share * all, 1e-5) << name;
    EXPECT_EQ(smoothed->evaluate("dev", {}).figures.at("loss"), figure) << name;
  }
}

TEST_F(Seq2SeqKindTest, AnswersThatAreTheirSourceAreCounted) {
  const std::vector<std::string> quick{"vocabulary.pieces=characters", "train.steps=200",
                                       "train.evaluate_every=100", "train.rate=1e-2"};
  const Recipe capitals = corpus(quick);
  for (const std::string split : {"train", "dev", "test"}) {
    const std::string lines = text_of(folder_ / (split + ".up"));  // are capitals already
    for (const char* side : {".low", ".up"}) std::ofstream(folder_ / (split + side), std::ios::app) << lines;
  }
  const auto figures = learn(capitals).test;
  std::ifstream sources(folder_ / "test.low"), answers(folder_ / "run/test.hypotheses.txt");
  double same = 0;
  for (std::string source, answer; std::getline(sources, source) && std::getline(answers, answer);)
    same += source == answer;
  EXPECT_GT(same, 0);
  EXPECT_LT(same, 16);
  EXPECT_EQ(figures.at("unchanged"), same / 16);

  auto apart = quick;
  apart.insert(apart.end(), {"vocabulary.joint=false", "model.share_embeddings=false"});
  EXPECT_FALSE(learn(corpus(apart), {.folder = folder_ / "apart"}).test.contains("unchanged"));
}

TEST_F(Seq2SeqKindTest, ResumesBitForBitWithinAnEpoch) {
  const test::Threads threads(2);
  for (const char* pieces : {"characters", "unigram"}) {
    const Recipe whole = corpus({std::string("vocabulary.pieces=") + pieces, "vocabulary.size=60",
                                 "model.dropout=0.1", "train.batch_tokens=60"});
    learn(whole, {.folder = folder_ / "whole"});
    EXPECT_FALSE(learn_until(5, whole, folder_ / "half").finished);
    learn(whole, {.folder = folder_ / "half", .existing = train::Existing::resume});
    for (const char* name : {"best/model.safetensors", "test.hypotheses.txt"})
      EXPECT_EQ(text_of(folder_ / "whole" / name), text_of(folder_ / "half" / name)) << pieces << " " << name;
    fs::remove_all(folder_ / "whole");
    fs::remove_all(folder_ / "half");
  }
}

// Decoding too, on as many threads as there are.
TEST_F(Seq2SeqKindTest, LearnsAndAnswersInBfloat16) {
  const auto result =
      learn(recipe({"train.precision=bfloat16", "train.steps=60", "train.evaluate_every=30"}));
  EXPECT_TRUE(std::isfinite(result.test.at("loss")));
  const auto model = load_run(folder_ / "run", settings_of_tests({"decode.scores=true", "decode.batch=4"}));
  std::vector<std::string> lines;
  for (int i = 0; i < 16; ++i) lines.push_back(i % 2 ? "a b c" : "d e");
  const torch::NoGradGuard no_grad;
  const train::Autocast autocast(true, at::kCPU);
  const auto answers = model->predict(lines);
  EXPECT_EQ(answers[0], answers[2]);
  const test::Threads threads(2);
  EXPECT_EQ(model->predict(lines), answers);
}

TEST_F(Seq2SeqKindTest, ADevSetThatWasReplacedIsRefusedToo) {
  const Recipe recipe = corpus();
  learn_until(3, recipe, folder_ / "run");
  write_corpus("dev", 7);
  EXPECT_THAT(refusal_of(recipe, {.folder = folder_ / "run", .existing = train::Existing::resume}),
              HasSubstr("dev.low.checksum"));
}

// Before anything is trained.
TEST_F(Seq2SeqKindTest, WhatCouldNotEndIsNotBegun) {
  const auto refusal = [&](const std::vector<std::string>& settings) {
    try {
      return refusal_of(corpus(settings), {.folder = folder_ / "run"});
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refusal({"decode.beam=1000"}), HasSubstr("decode.beam must be at most"));
  EXPECT_THAT(refusal({"task.data=math", "train.select=bleu"}), HasSubstr("train.select"));
  EXPECT_THAT(refusal({"task.max_ratio=0.5"}), HasSubstr("task.max_ratio must be at least 1"));
  const std::vector<std::string> learned{"model.positions=learned", "model.max_positions=40"};
  EXPECT_EQ(refusal(learned), "no error");
  std::filesystem::remove_all(folder_ / "run");
  const Recipe recipe = corpus(learned);
  write_corpus("test", 3, std::string(40, '!'));
  EXPECT_THAT(refusal_of(recipe, {.folder = folder_ / "run"}),
              HasSubstr("model.max_positions must be at least"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(Seq2SeqKindTest, ACorpusThatWasReplacedIsRefusedAndNamed) {
  const Recipe recipe = corpus();
  learn_until(3, recipe, folder_ / "run");
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

TEST_F(Seq2SeqKindTest, ASetThatWasReplacedIsToldWhereItIsScored) {
  learn(corpus({"train.steps=2", "train.evaluate_every=2"}), {.folder = folder_ / "run"});
  for (const char* set : {"train", "dev", "test"})
    EXPECT_THAT(changed_set(folder_ / "run", set), testing::IsEmpty()) << set;
  write_corpus("test", 7);
  EXPECT_THAT(changed_set(folder_ / "run", "test"), testing::ElementsAre("test.low", "test.up"));
  EXPECT_THAT(changed_set(folder_ / "run", "dev"), testing::IsEmpty());
}

// As for fine-tuning: characters that the first run did not have are unknown.
TEST_F(Seq2SeqKindTest, WhatStartsFromARunHasItsVocabulary) {
  const std::string apart = "model.share_embeddings=false";
  learn(corpus({"vocabulary.joint=false", apart}), {.folder = folder_ / "first"});
  write_corpus("train", 60, "!");
  const Recipe other =
      parse_recipe(kBackwards, "backwards.toml", "backwards",
                   settings_of_tests({"task.data=parallel", "task.source=low", "task.target=up",
                                      "task.folder=" + folder_.string(), "train.steps=2", apart,
                                      "train.weights=" + (folder_ / "first").string()}));
  learn(other, {.folder = folder_ / "second"});
  for (const char* pieces : {"source.pieces", "target.pieces"})
    EXPECT_EQ(text_of(folder_ / "second/best" / pieces), text_of(folder_ / "first/best" / pieces));
  EXPECT_EQ(load_run(folder_ / "second")->predict({"ab"}).size(), 1U);  // by the recipe that was stored
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
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], testing::AllOf(HasSubstr("1 pair left out"), HasSubstr("train.up:61")));
  EXPECT_THAT(notes[1], HasSubstr("BLEU is sacrebleu's: nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"));
  write_corpus("test", 3, std::string(12, '!'));
  const auto cut = load_data(recipe({"task.data=parallel", "task.source=up", "task.target=low",
                                     "task.folder=" + folder_.string(), "task.skip_bad=true",
                                     "task.max_source=10", "vocabulary.pieces=characters"}))
                       ->notes();
  EXPECT_THAT(cut, testing::Contains("test set: 3 sources cut at 10 tokens (task.max_source)"));
}

// Whatever was learned: its lines may be longer than any that the model was trained on.
TEST_F(Seq2SeqKindTest, AnySetIsScored) {
  learn(corpus({"model.positions=learned", "model.max_positions=40", "vocabulary.pieces=characters"}),
        {.folder = folder_ / "run"});
  const std::string long_line(50, 'a');
  std::ofstream(folder_ / "test.low", std::ios::app) << long_line << "\na b\n";
  std::ofstream(folder_ / "test.up", std::ios::app) << "A\n" << long_line << "\n";
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  const auto data = load_data(model->recipe(), {folder_.string(), "test", model.get()});
  EXPECT_THAT(data->notes(),
              testing::IsSupersetOf({"test set: 1 source cut at 39 tokens (model.max_positions)",
                                     "test set: 1 pair left out of the loss, beyond model.max_positions"}));
  const auto figures = data->make_task(model)->evaluate("test", [] {}).figures;
  EXPECT_TRUE(std::isfinite(figures.at("loss")));
  std::ifstream lines(folder_ / "test.low");
  EXPECT_EQ(figures.at("count"), std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
}

TEST_F(Seq2SeqKindTest, SetsUnderOtherNamesAreNotedWhereOneIsMissing) {
  const Recipe recipe = corpus();
  write_corpus("tst2012", 4);
  const auto note = HasSubstr("the sets tst2012 in " + folder_.string() + " are not read");
  EXPECT_THAT(load_data(recipe)->notes(), testing::Not(testing::Contains(note)));
  for (const char* side : {"dev.low", "dev.up"}) fs::remove(folder_ / side);
  EXPECT_THAT(load_data(recipe)->notes(), testing::Contains(note));
  EXPECT_THAT(load_data(recipe, {.split = "test"})->notes(), testing::Not(testing::Contains(note)));
}

TEST_F(Seq2SeqKindTest, BatchesThatCannotFillAreNoted) {
  const auto notes = [&](const std::vector<std::string>& settings) {
    return load_data(corpus(settings))->notes();
  };
  const auto note = HasSubstr("tokens, and train.batch_tokens = 4,096 are not reached");
  EXPECT_THAT(notes({"train.batch=8", "train.batch_tokens=4096"}), testing::Contains(note));
  EXPECT_THAT(notes({"train.batch=10000", "train.batch_tokens=4096"}), testing::Not(testing::Contains(note)));
  EXPECT_THAT(notes({"train.batch=8"}), testing::Not(testing::Contains(note)));
}

TEST_F(Seq2SeqKindTest, ScoresThatAreNotFiniteAreTold) {
  learn(corpus({"vocabulary.pieces=characters", "vocabulary.joint=false", "model.share_embeddings=false"}),
        {.folder = folder_ / "run"});
  const auto model = load_run(folder_ / "run", settings_of_tests({"decode.beam=3", "decode.best=2"}));
  const auto b = data::Pieces::load(folder_ / "run/best/source.pieces").id("b");
  const torch::NoGradGuard no_grad;
  model->module().named_parameters()["source.embedding.S"].select(1, b).fill_(
      std::numeric_limits<float>::quiet_NaN());
  const std::vector<std::string> lines{"a", "a c", "a b", "c"};
  const Answers answers = answer(*model, lines);
  EXPECT_EQ(answers.answers.size(), 2U);
  EXPECT_EQ(answers.problem, "the model's scores are not finite");
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
  EXPECT_THAT(
      refused({"decode.replace_unknown=true"}),
      HasSubstr("decode.replace_unknown = true needs vocabulary.pieces = words or basic_english, whose "
                "tokens are words to be copied, got characters"));
  EXPECT_THAT(refused({"model.positions=learned", "model.max_positions=31"}),
              HasSubstr("model.max_positions must be at least 32 with decode.exact = true, got 31"));
  EXPECT_EQ(refused({"model.positions=learned", "model.max_positions=31", "decode.exact=false"}), "no error");
  EXPECT_EQ(refused({"vocabulary.joint=false", "model.share_embeddings=false"}), "no error");
}

// 7 letters and the marks are no multiple of 4.
TEST_F(Seq2SeqKindTest, AnyVocabularyMayBeInTheAlgebra) {
  learn(recipe(
      {"train.steps=2", "model.output=algebra", "model.embedding_in_algebra=true", "model.algebra=phm(4)"}));
  const auto model = load_run(folder_ / "run", settings_of_tests({"decode.beam=3"}));
  EXPECT_EQ(model->predict({"a b c"}).size(), 1U);
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
