// The training loop on a toy task: what a run gives, how it resumes, what goes wrong and what is then kept.

#include "quatrain/train/trainer.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"
#include "train/run_files.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

class TrainerTest : public FolderTest {
 protected:
  RunOptions run(const std::string& name, Existing existing = Existing::refuse) const {
    RunOptions run;
    run.folder = folder_ / name;
    run.existing = existing;
    return run;
  }

  /// Trains until a stop is asked for at `step`.
  Result stopped_at(Task& task, const TrainerOptions& options, RunOptions where, int64_t step) const {
    std::atomic<bool> stop{false};
    where.stop = &stop;
    where.on_progress = [&](const Progress& p) { stop = p.step >= step; };
    return Trainer(task, options, where).run();
  }

  /// The lines of metrics.jsonl without what depends on the clock.
  std::vector<std::string> metrics(const std::string& name) const {
    std::ifstream file(folder_ / name / "metrics.jsonl");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      auto json = nlohmann::json::parse(line);
      for (const char* key : {"examples_per_second", "seconds", "checksum"}) json.erase(key);
      lines.push_back(json.dump());
    }
    return lines;
  }
};

TEST_F(TrainerTest, LearnsAndWritesWhatItFound) {
  ToyTask task("quaternion", 0);
  const Result result = Trainer(task, toy_options(200), run("run")).run();
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.steps, 200);
  EXPECT_LT(result.test.at("loss"), 0.2);  // the variance of the target is 0.5
  EXPECT_EQ(std::count(task.evaluated.begin(), task.evaluated.end(), "test"), 1);
  EXPECT_EQ(read_result(folder_ / "run").test, result.test);
  EXPECT_EQ(read_result(folder_ / "run").best_step, result.best_step);
  for (const char* file : {"best/model.safetensors", "best/recipe.toml", "best/words.txt",
                           "last/model.safetensors", "metrics.jsonl", "result.json", "predictions.tsv"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / file)) << file;
}

TEST_F(TrainerTest, TheSameSeedGivesTheSameBits) {
  ToyTask first, second, other;
  Trainer(first, toy_options(), run("first")).run();
  Trainer(second, toy_options(), run("second")).run();
  expect_same_bits(copies(first.model()), copies(second.model()));
  TrainerOptions changed = toy_options();
  changed.seed = 6;
  Trainer(other, changed, run("other")).run();
  EXPECT_FALSE(at::equal(copies(first.model())[0], copies(other.model())[0]));
}

TEST_F(TrainerTest, AResumedRunGivesTheSameBits) {
  int64_t number = 0;
  const auto check = [&](const TrainerOptions& o, const std::string& algebra) {
    SCOPED_TRACE(std::string(name(o.optimizer.kind)) + ", " + name(o.schedule.kind) + ", " + algebra);
    const std::string whole = "whole" + std::to_string(number), parts = "parts" + std::to_string(number++);
    ToyTask straight(algebra), begun(algebra), resumed(algebra), again(algebra);
    const Result expected = Trainer(straight, o, run(whole)).run();
    EXPECT_FALSE(stopped_at(begun, o, run(parts), 9).finished);
    torch::manual_seed(99);  // what a new process would have: any state but the one left behind
    EXPECT_FALSE(stopped_at(resumed, o, run(parts, Existing::resume), 17).finished);
    torch::manual_seed(99);
    const Result got = Trainer(again, o, run(parts, Existing::resume)).run();
    EXPECT_TRUE(got.finished);
    EXPECT_EQ(got.test, expected.test);
    EXPECT_EQ(got.best_step, expected.best_step);
    expect_same_bits(copies(again.model()), copies(straight.model()));
    for (const char* which : {"best", "last"}) {
      ToyTask a(algebra), b(algebra);
      nn::load_weights(a.model(), folder_ / whole / which / "model.safetensors");
      nn::load_weights(b.model(), folder_ / parts / which / "model.safetensors");
      expect_same_bits(copies(a.model()), copies(b.model()));
    }
    EXPECT_EQ(metrics(whole), metrics(parts));
    EXPECT_GT(metrics(whole).size(), 8u);
  };
  {
    const ops::WayGuard factored(
        ops::Way::factored);  // a learned A's factors are followed, and part of the state
    check(toy_options(), "phm(4)");
  }
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd,
                                   OptimizerKind::adagrad, OptimizerKind::rmsprop})
    for (const double momentum : {0.0, 0.9}) {
      TrainerOptions o = toy_options();
      o.optimizer.kind = kind;
      o.optimizer.momentum = momentum;
      o.optimizer.weight_decay = 0.01;
      check(o, momentum > 0 ? "quaternion" : "phm(2)");
    }
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::inverse_square_root,
                                  ScheduleKind::cosine, ScheduleKind::step, ScheduleKind::plateau}) {
    TrainerOptions o = toy_options();
    o.schedule.kind = kind;
    o.schedule.warmup = 3;
    o.accumulate = 2;
    o.clip = 0.5;
    check(o, "quaternion");
  }
}

TEST_F(TrainerTest, ARunThatIsKilledGoesOnFromItsLastCheckpoint) {
  ToyTask straight, killed, resumed;
  Trainer(straight, toy_options(), run("whole")).run();
  killed.fail_at = 15;  // an exception in mid-run, after the checkpoint of step 12
  EXPECT_THROW(Trainer(killed, toy_options(), run("killed")).run(), std::exception);
  Trainer(resumed, toy_options(), run("killed", Existing::resume)).run();
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
  EXPECT_EQ(metrics("whole"), metrics("killed"));
}

// A stop where an evaluation is due leaves that to the resumed run; here that one dies before it can save.
TEST_F(TrainerTest, AnEvaluationIsInTheMetricsOnce) {
  ToyTask straight, begun, killed, resumed;
  Trainer(straight, toy_options(), run("whole")).run();
  stopped_at(begun, toy_options(), run("parts"), 12);
  EXPECT_EQ(begun.evaluated.size(), 1u);
  killed.on_evaluate = [&] { killed.store_fails = true; };
  killed.fail_at = 2;
  EXPECT_THROW(Trainer(killed, toy_options(), run("parts", Existing::resume)).run(), std::exception);
  EXPECT_EQ(killed.evaluated.size(), 1u);
  Trainer(resumed, toy_options(), run("parts", Existing::resume)).run();
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
  EXPECT_EQ(metrics("whole"), metrics("parts"));
}

TEST_F(TrainerTest, ATornLineOfTheMetricsIsDropped) {
  ToyTask straight, begun, resumed;
  Trainer(straight, toy_options(), run("whole")).run();
  stopped_at(begun, toy_options(), run("parts"), 9);
  std::ofstream(folder_ / "parts" / "metrics.jsonl", std::ios::app) << R"({"kind":"training","st)";
  Trainer(resumed, toy_options(), run("parts", Existing::resume)).run();
  EXPECT_EQ(metrics("whole"), metrics("parts"));
}

// Between two renames the old checkpoint has another name.
TEST_F(TrainerTest, ACrashBetweenTwoRenamesLosesNothing) {
  ToyTask straight, begun, resumed;
  Trainer(straight, toy_options(), run("whole")).run();
  stopped_at(begun, toy_options(), run("parts"), 15);
  const auto parts = folder_ / "parts";
  std::filesystem::rename(parts / "last", parts / "last.old");
  std::filesystem::create_directory(parts / "last.part");
  std::ofstream(parts / "last.part" / "model.safetensors") << "torn";
  EXPECT_EQ(find_checkpoint(parts, "last"), parts / "last.old");
  Trainer(resumed, toy_options(), run("parts", Existing::resume)).run();
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
  EXPECT_FALSE(std::filesystem::exists(parts / "last.old"));
  EXPECT_FALSE(std::filesystem::exists(parts / "last.part"));
}

TEST_F(TrainerTest, ACheckpointThatCannotBeWrittenLeavesTheOneBefore) {
  ToyTask begun, full, straight, resumed;
  Trainer(straight, toy_options(), run("whole")).run();
  stopped_at(begun, toy_options(), run("parts"), 9);
  full.store_fails = true;
  EXPECT_THAT(message_of([&] { Trainer(full, toy_options(), run("parts", Existing::resume)).run(); }),
              testing::HasSubstr("disk is full"));
  Trainer(resumed, toy_options(), run("parts", Existing::resume)).run();
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
}

// Of the best weights and of the last ones, and where the best of an earlier step are tried again.
TEST_F(TrainerTest, ACheckpointThatCannotBeWrittenIsToldOnceAStep) {
  ToyTask task;
  task.scripted = {0.5, 0.6, 0.4};
  task.on_evaluate = [&] { task.store_fails = task.evaluated.size() < 2; };
  std::vector<std::string> told;
  RunOptions where = run("run");
  where.on_message = [&](const std::string& text) { told.push_back(text); };
  EXPECT_TRUE(Trainer(task, toy_options(), where).run().finished);
  ASSERT_EQ(told.size(), 2u);
  for (const size_t i : {0u, 1u})
    EXPECT_EQ(told[i], "the checkpoint of step " + std::to_string(6 + 6 * i) +
                           " cannot be written (the disk is full); the checkpoint of step 0 in '" +
                           (folder_ / "run" / "last").string() + "' is kept, and training continues");
}

TEST_F(TrainerTest, OtherDataThanTheCheckpointsAreRefused) {
  ToyTask begun, other("quaternion", 0.2, 16);
  stopped_at(begun, toy_options(), run("run"), 9);
  EXPECT_THAT(message_of([&] { Trainer(other, toy_options(), run("run", Existing::resume)).run(); }),
              testing::HasSubstr("an epoch has 4 steps now, but in the checkpoint 8"));
}

TEST_F(TrainerTest, AnotherOptimizerThanTheCheckpointsIsRefused) {
  ToyTask begun, other;
  stopped_at(begun, toy_options(), run("run"), 9);
  TrainerOptions o = toy_options();
  o.optimizer.kind = OptimizerKind::sgd;
  o.optimizer.momentum = 0.9;
  EXPECT_THAT(message_of([&] { Trainer(other, o, run("run", Existing::resume)).run(); }),
              testing::HasSubstr("another optimizer"));
}

TEST_F(TrainerTest, EpochsEndARunAndEachIsEvaluated) {
  ToyTask task;
  TrainerOptions o = toy_options(0);
  o.epochs = 3;
  o.evaluate_every = 0;
  o.accumulate = 3;  // 8 batches: steps of 3, 3 and 2
  const Result result = Trainer(task, o, run("run")).run();
  EXPECT_EQ(result.steps, 9);
  EXPECT_EQ(task.evaluated, (std::vector<std::string>{"dev", "dev", "dev", "test"}));
  ASSERT_EQ(task.asked.size(), 24u);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(task.asked[i], std::pair(i / 8, i % 8));
}

TEST_F(TrainerTest, WithoutADevSetTheLastWeightsAreTheBest) {
  ToyTask task, stored;
  task.dev = false;
  const Result result = Trainer(task, toy_options(), run("run")).run();
  EXPECT_EQ(result.best_step, 24);
  EXPECT_EQ(task.evaluated, std::vector<std::string>{"test"});
  nn::load_weights(stored.model(), folder_ / "run" / "best" / "model.safetensors");
  expect_same_bits(copies(stored.model()), copies(task.model()));
}

TEST_F(TrainerTest, ALossThatIsNotFiniteStopsTheRunAndKeepsTheLastCheckpoint) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::string name = std::isnan(value) ? "nan" : "inf";
    ToyTask task;
    task.fail_at = 15;
    task.fail_with = value;
    const std::string message = message_of([&] { Trainer(task, toy_options(), run(name)).run(); });
    EXPECT_THAT(message, testing::HasSubstr("at step 15"));
    EXPECT_THAT(message, testing::HasSubstr("checkpoint of step 12"));
    for (const at::Tensor& weight : copies(task.model())) EXPECT_TRUE(weight.isfinite().all().item<bool>());
    EXPECT_TRUE(std::filesystem::exists(folder_ / name / "last" / "model.safetensors"));
  }
}

TEST_F(TrainerTest, RefusesABatchOfNoExamples) {
  for (const int64_t examples : {0, -16}) {
    ToyTask task;
    task.examples = examples;
    EXPECT_THAT(
        message_of([&] { Trainer(task, toy_options(), run("run" + std::to_string(examples))).run(); }),
        testing::HasSubstr("the task's loss must be of one example or more"));
  }
}

TEST_F(TrainerTest, StepsThatAreNotFiniteCanBeSkippedAndAreCounted) {
  ToyTask task, begun, resumed;
  TrainerOptions o = toy_options();
  o.nonfinite = NonFinite::skip;
  task.fail_at = begun.fail_at = 7;
  std::vector<std::string> told;
  RunOptions where = run("whole");
  where.on_message = [&](const std::string& text) { told.push_back(text); };
  const Result result = Trainer(task, o, where).run();
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.steps, 24);
  EXPECT_EQ(result.skipped, 1);
  EXPECT_EQ(read_result(folder_ / "whole").skipped, 1);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], testing::HasSubstr("step 7 is skipped: the loss is nan (batch 6 of epoch 0)"));
  EXPECT_THAT(metrics("whole"), testing::Contains(testing::HasSubstr(R"("kind":"skipped")")));
  for (const at::Tensor& weight : copies(task.model())) EXPECT_TRUE(weight.isfinite().all().item<bool>());
  // The count survives a stop.
  stopped_at(begun, o, run("parts"), 9);
  EXPECT_EQ(Trainer(resumed, o, run("parts", Existing::resume)).run().skipped, 1);
  expect_same_bits(copies(resumed.model()), copies(task.model()));
}

TEST_F(TrainerTest, SkippingEndsWhereNothingElseIsLeft) {
  ToyTask task;
  task.dev = false;
  task.fail_from = 5;
  TrainerOptions o = toy_options(1000);
  o.nonfinite = NonFinite::skip;
  EXPECT_THAT(message_of([&] { Trainer(task, o, run("run")).run(); }),
              testing::HasSubstr("after 100 steps in a row that were skipped"));
}

TEST_F(TrainerTest, WeightsThatAreNotFiniteReachNoCheckpoint) {
  ToyTask task;
  task.on_evaluate = [&] {
    if (task.evaluated.size() == 1) {  // the second evaluation, at step 12
      const torch::NoGradGuard no_grad;
      task.model().parameters()[0].fill_(std::numeric_limits<float>::infinity());
    }
  };
  task.scripted = {0.5, 0.6};
  EXPECT_THAT(message_of([&] { Trainer(task, toy_options(), run("run")).run(); }),
              testing::AllOf(testing::HasSubstr("are not finite after step 12"),
                             testing::HasSubstr("checkpoint of step 6")));
  EXPECT_EQ(find_checkpoint(folder_ / "run", "last"), folder_ / "run" / "last");
}

// Not after it: the dev set may be large.
TEST_F(TrainerTest, AStopInAnEvaluationEndsIt) {
  for (const bool test_set : {false, true}) {
    const std::string whole = test_set ? "whole-test" : "whole", parts = test_set ? "parts-test" : "parts";
    ToyTask straight, begun, resumed;
    Trainer(straight, toy_options(), run(whole)).run();
    std::atomic<bool> stop{false};
    RunOptions where = run(parts);
    where.stop = &stop;
    const size_t number = test_set ? 4 : 1;  // of the evaluation that is interrupted
    begun.on_evaluate = [&] { stop = begun.evaluated.size() == number; };
    const Result result = Trainer(begun, toy_options(), where).run();
    EXPECT_FALSE(result.finished);
    EXPECT_EQ(result.steps, test_set ? 24 : 12);
    EXPECT_EQ(begun.evaluated.size(), number);
    EXPECT_FALSE(std::filesystem::exists(folder_ / parts / "result.json"));
    const Result end = Trainer(resumed, toy_options(), run(parts, Existing::resume)).run();
    EXPECT_EQ(end.test, read_result(folder_ / whole).test);
    expect_same_bits(copies(resumed.model()), copies(straight.model()));
    EXPECT_EQ(metrics(whole), metrics(parts));
  }
}

TEST_F(TrainerTest, AFolderThatVanishesEndsTheRun) {
  ToyTask task;
  RunOptions where = run("run");
  where.on_progress = [&](const Progress& p) {
    if (p.step == 8) std::filesystem::remove_all(folder_ / "run");
  };
  EXPECT_THAT(message_of([&] { Trainer(task, toy_options(), where).run(); }),
              testing::AllOf(testing::HasSubstr("has vanished at step 12"),
                             testing::HasSubstr("nothing more can be saved")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(TrainerTest, DeterministicRefusesWhatIsNot) {
  ToyTask task, fails;
  TrainerOptions o = toy_options(2);
  o.deterministic = true;
  bool seen = false;
  task.on_evaluate = [&] { seen = at::globalContext().deterministicAlgorithms(); };
  Trainer(task, o, run("run")).run();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  fails.on_evaluate = [] { at::globalContext().alertNotDeterministic("an_operation"); };
  EXPECT_THAT(message_of([&] { Trainer(fails, o, run("fails")).run(); }),
              testing::HasSubstr("an_operation does not have a deterministic implementation"));
}

// Whatever the wall clock does, figures of time come from a clock that only goes forward; a resumed run goes
// on counting where it was.
TEST_F(TrainerTest, TimeGoesOnAcrossAResume) {
  ToyTask begun, resumed;
  stopped_at(begun, toy_options(), run("run"), 9);
  const auto stored = nlohmann::json::parse(contents(folder_ / "run" / "last" / "training.json"));
  std::vector<Progress> seen;
  RunOptions where = run("run", Existing::resume);
  where.on_progress = [&](const Progress& p) { seen.push_back(p); };
  Trainer(resumed, toy_options(), where).run();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().step, 10);
  double before = stored["seconds"];
  EXPECT_GT(before, 0);
  for (const Progress& p : seen) {
    EXPECT_GE(p.seconds, before);
    EXPECT_GE(p.seconds_left, 0);
    EXPECT_EQ(p.steps, 24);
    before = p.seconds;
  }
}

TEST_F(TrainerTest, TheBestStepIsKeptAndPatienceEndsTheRun) {
  ToyTask task;
  task.scripted = {0.9, 0.5, 0.7, 0.6, 0.4};
  TrainerOptions o = toy_options(60);
  o.patience = 2;
  const Result result = Trainer(task, o, run("run")).run();
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.best_step, 12);
  EXPECT_EQ(result.steps, 24);
  EXPECT_EQ(result.dev.at("loss"), 0.5);
  ToyTask best;
  nn::load_weights(best.model(), folder_ / "run" / "best" / "model.safetensors");
  expect_same_bits(copies(best.model()),
                   copies(task.model()));  // the run leaves the best weights in the model
}

TEST_F(TrainerTest, AutocastComputesInBfloat16AndKeepsTheWeights) {
  ToyTask task;
  TrainerOptions o = toy_options(2);
  o.bf16 = true;
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);  // of who trains, afterwards too
  Trainer(task, o, run("run")).run();
  EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kHalf);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  EXPECT_EQ(task.last_dtype, at::kBFloat16);
  for (const at::Tensor& weight : copies(task.model())) EXPECT_EQ(weight.scalar_type(), at::kFloat);
}

TEST_F(TrainerTest, WeightDecayActsOnWeightsAloneOrOnAll) {
  for (const bool all : {false, true}) {
    ToyTask task("wkp(4)");
    const NamedParameters parameters = trained_parameters(task.model());
    OptimizerOptions o;
    o.kind = OptimizerKind::sgd;
    o.weight_decay = 0.5;
    o.decay_all = all;
    o.learning_rate = 1;
    const auto optimizer = make_optimizer(o, task.model());
    const auto before = copies(task.model());
    for (const auto& [name, parameter] : parameters) parameter.mutable_grad() = torch::zeros_like(parameter);
    optimizer->step();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, parameter] = parameters[i];
      const bool decays = all || name.ends_with(".S");
      EXPECT_TRUE(at::allclose(parameter.detach(), decays ? before[i] * 0.5 : before[i])) << name;
    }
  }
}

TEST_F(TrainerTest, AFolderWithARunIsNotTouchedUnasked) {
  ToyTask first, second, third, fourth;
  const Result done = Trainer(first, toy_options(), run("run")).run();
  const std::string weights = contents(folder_ / "run" / "best" / "model.safetensors");
  EXPECT_THAT(message_of([&] { Trainer(second, toy_options(), run("run")).run(); }),
              testing::AllOf(testing::HasSubstr("already contains a run"), testing::HasSubstr("resume")));
  EXPECT_EQ(contents(folder_ / "run" / "best" / "model.safetensors"), weights);
  const Result stored = Trainer(second, toy_options(), run("run", Existing::resume)).run();
  EXPECT_TRUE(second.asked.empty());
  EXPECT_EQ(stored.test, done.test);
  std::ofstream(folder_ / "run" / "notes.txt") << "mine";
  for (const char* ending : kAnswerEndings)
    std::ofstream(folder_ / "run" / (std::string("test") + ending)) << "old";
  TrainerOptions changed = toy_options();
  changed.seed = 9;
  Trainer(third, changed, run("run", Existing::overwrite)).run();
  EXPECT_NE(contents(folder_ / "run" / "best" / "model.safetensors"), weights);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / "notes.txt"));
  for (const char* ending : kAnswerEndings)
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / (std::string("test") + ending))) << ending;
}

TEST_F(TrainerTest, ATornCheckpointIsNamed) {
  for (const char* file : {"model.safetensors", "training.safetensors", "checkpoint.json"}) {
    const std::string name = std::string("torn-") + file;
    ToyTask begun, resumed;
    stopped_at(begun, toy_options(), run(name), 9);
    const auto path = folder_ / name / "last" / file;
    ASSERT_TRUE(std::filesystem::exists(path)) << file;
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    const auto before = copies(resumed.model());
    EXPECT_THAT(message_of([&] { Trainer(resumed, toy_options(), run(name, Existing::resume)).run(); }),
                testing::HasSubstr(file));
  }
}

TEST_F(TrainerTest, OptionsOutOfRangeAreRefusedBeforeAnythingIsWritten) {
  ToyTask task;
  const auto error = [&](const std::function<void(TrainerOptions&)>& change) {
    TrainerOptions o = toy_options();
    change(o);
    return message_of([&] { Trainer(task, o, run("run")); });
  };
  EXPECT_THAT(error([](auto& o) { o.steps = 0; }), testing::HasSubstr("steps or epochs"));
  EXPECT_THAT(error([](auto& o) { o.optimizer.learning_rate = -1; }),
              testing::HasSubstr("learning_rate must be above 0"));
  EXPECT_THAT(error([](auto& o) { o.accumulate = 0; }), testing::HasSubstr("accumulate must be at least 1"));
  EXPECT_THAT(error([](auto& o) { o.schedule.factor = 2; }), testing::HasSubstr("factor"));
  task.dev = false;
  EXPECT_THAT(error([](auto& o) { o.patience = 3; }), testing::HasSubstr("dev set"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace quatrain::train
