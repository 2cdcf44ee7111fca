// The mean of a run's checkpoints: what it is, what it is refused for, and that nothing half-made stays.

#include "train/average.h"

#include <gmock/gmock.h>

#include <cmath>

#include "quatrain/nn/weights.h"
#include "train/checkpoint.h"
#include "train/records.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

class AverageTest : public FolderTest {
 protected:
  // Checkpoints at steps 6, 12, 18 and 24.
  void train(const std::string& algebra = "quaternion", int64_t keep = 4) const {
    ToyTask task(algebra);
    TrainerOptions options = toy_options();
    options.keep = keep;
    RunOptions run;
    run.folder = folder_ / "run";
    Trainer(task, options, run).run();
  }
  std::vector<Checkpoint> checkpoints(int64_t most = 0) const {
    return checkpoints_to_average(folder_ / "run", most);
  }
  Result average(ToyTask& task, int64_t most = 0) const {
    return write_average(task, checkpoints(most), {.folder = folder_ / "mean", .recipe = "[task]\n"});
  }
  bool left_behind() const { return fs::exists(folder_ / "mean") || fs::exists(folder_ / "mean.part"); }
  // A checkpoint that holds these tensors alone.
  Checkpoint checkpoint_of(const std::string& name, const nn::NamedTensors& tensors,
                           const std::map<std::string, std::string>& metadata = {}) const {
    const fs::path place = folder_ / name;
    fs::create_directories(place);
    nn::write_safetensors(place / "model.safetensors", tensors, metadata);
    seal_checkpoint(place, 1, "");
    return {name, 1, place};
  }
};

TEST_F(AverageTest, TakesTheLatestOldestFirst) {
  train();
  const auto steps = [](const std::vector<Checkpoint>& of) {
    std::vector<int64_t> all;
    for (const auto& one : of) all.push_back(one.step);
    return all;
  };
  EXPECT_EQ(steps(checkpoints()), (std::vector<int64_t>{6, 12, 18, 24}));
  EXPECT_EQ(steps(checkpoints(9)), (std::vector<int64_t>{6, 12, 18, 24}));
  EXPECT_EQ(steps(checkpoints(2)), (std::vector<int64_t>{18, 24}));
  EXPECT_EQ(checkpoints(2).back().name, "last");
}

TEST_F(AverageTest, TakesTheBestOldestFirst) {
  const auto best = [&](std::vector<double> figures, int64_t most, bool higher_is_better = false,
                        int64_t checkpoint_every = 0) {
    fs::remove_all(folder_ / "run");
    ToyTask task;
    task.scripted = std::move(figures);
    TrainerOptions options = toy_options();
    options.keep = 9;
    options.checkpoint_every = checkpoint_every;
    RunOptions run;
    run.folder = folder_ / "run";
    Trainer(task, options, run).run();
    std::vector<int64_t> steps;
    for (const auto& one : best_of(checkpoints(), most, higher_is_better)) steps.push_back(one.step);
    return steps;
  };
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(best({0.5, 0.2, 0.4, 0.3}, 2), (Steps{12, 24}));
  EXPECT_EQ(best({0.5, 0.2, 0.4, 0.3}, 2, true), (Steps{6, 18}));
  EXPECT_EQ(best({0.5, 0.2, 0.4, 0.3}, 3), (Steps{12, 18, 24}));
  EXPECT_EQ(best({0.5, 0.2, 0.4, 0.3}, 9), (Steps{6, 12, 18, 24}));
  EXPECT_EQ(best({0.3, 0.3, 0.3, 0.3}, 2), (Steps{18, 24})) << "of equal ones the newer";
  EXPECT_EQ(best({0.1, std::nan(""), 0.3, 0.2}, 3), (Steps{6, 18, 24})) << "what is no number is not good";
  // Checkpoints at 4, 8, 16 and 20 too, after evaluations at 6 and 18.
  EXPECT_EQ(best({0.5, 0.2, 0.4, 0.3}, 9, false, 4), (Steps{6, 12, 18, 24}));
  EXPECT_THAT(checkpoints().size(), testing::Gt(5U));

  for (const char* step : {"step-000006", "step-000012", "step-000018"})
    fs::remove_all(folder_ / "run" / step);
  EXPECT_THAT(message_of([&] { best_of(checkpoints(), 2, false); }),
              AllOf(HasSubstr("run' has 1 checkpoint saved at an evaluation"), HasSubstr("(--last)")));
}

TEST_F(AverageTest, SaysByWhatItsCheckpointsWereChosen) {
  train();
  ToyTask task;
  write_average(task, best_of(checkpoints(), 2, false),
                {.folder = folder_ / "mean", .recipe = "[task]\n", .best = true});
  const std::string record = contents(folder_ / "mean" / "best" / "average.json");
  EXPECT_THAT(record, AllOf(HasSubstr("\"best_by\": \"loss\""), HasSubstr("\"dev\": {")));
  fs::remove_all(folder_ / "mean");
  average(task);
  EXPECT_THAT(contents(folder_ / "mean" / "best" / "average.json"), testing::Not(HasSubstr("best_by")));
}

TEST_F(AverageTest, IsTheMeanOfEachTensorInFloat64) {
  // In float32 the small numbers would be lost beside the large one, and in bfloat16 every sum be rounded.
  const at::Tensor large = at::tensor({1e8F, 1.0F}), small = at::tensor({3.0F, 2.0F});
  const at::Tensor whole = at::tensor({1, 2}, at::kLong);
  const auto of = [&](const at::Tensor& x, float half) {
    return nn::NamedTensors{{"x", x}, {"half", at::full({2}, half, at::kBFloat16)}, {"whole", whole}};
  };
  const auto mean = mean_of_weights({checkpoint_of("a", of(large, 1)), checkpoint_of("b", of(small, 3)),
                                     checkpoint_of("c", of(-large, 1.0078125F))});
  EXPECT_TRUE(at::equal(*mean.find("x"), at::tensor({1.0F, 2.0F / 3})));
  EXPECT_TRUE(at::equal(*mean.find("half"), at::full({2}, 5.0078125 / 3, at::kDouble).to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(*mean.find("whole"), whole));
}

TEST_F(AverageTest, RefusesWhatHasNoMean) {
  const nn::NamedTensors x{{"x", at::ones({2})}};
  const auto a = checkpoint_of("a", x, {{"algebra", "quaternion"}});
  const auto refused = [&](const nn::NamedTensors& tensors, const std::string& algebra) {
    return message_of([&] { mean_of_weights({a, checkpoint_of("b", tensors, {{"algebra", algebra}})}); });
  };
  EXPECT_EQ(refused(x, "quaternion"), "no error");
  EXPECT_THAT(refused(x, "octonion"), AllOf(HasSubstr("a' and '"), HasSubstr("of different models")));
  EXPECT_THAT(refused({{"y", at::ones({2})}}, "quaternion"), HasSubstr("'x' is another tensor in each"));
  EXPECT_THAT(refused({{"x", at::ones({3})}}, "quaternion"), HasSubstr("'x' is another tensor in each"));
  EXPECT_THAT(refused({{"x", at::ones({2}, at::kDouble)}}, "quaternion"), HasSubstr("'x' is another tensor"));
  const auto one = checkpoint_of("c", {{"n", at::ones({1}, at::kLong)}}),
             two = checkpoint_of("d", {{"n", at::zeros({1}, at::kLong)}});
  EXPECT_THAT(message_of([&] { mean_of_weights({one, two}); }), HasSubstr("'n' has whole numbers"));
}

TEST_F(AverageTest, BatchNormsHaveSeenWhatTheLastCheckpointHas) {
  const auto of = [&](const std::string& name, int64_t batches, float mean) {
    return checkpoint_of(name, {{"norm.num_batches_tracked", at::tensor(batches)},
                                {"norm.running_mean", at::full({2}, mean)}});
  };
  const auto mean = mean_of_weights({of("a", 3, 1), of("b", 5, 2), of("c", 7, 6)});
  EXPECT_EQ(mean.find("norm.num_batches_tracked")->item<int64_t>(), 7);
  EXPECT_TRUE(at::equal(*mean.find("norm.running_mean"), at::full({2}, 3.0F)));
}

TEST_F(AverageTest, BecomesARunWithFiguresOfItsOwn) {
  for (const std::string algebra : {"quaternion", "phm(4)"}) {
    train(algebra);
    ToyTask task(algebra);
    const Result result = average(task, 3);
    EXPECT_EQ(result.steps, 24);
    EXPECT_EQ(task.evaluated, (std::vector<std::string>{"dev", "test"}));
    // The task has the mean, in evaluation mode, and its figures are those of the result that is stored.
    const auto mean = mean_of_weights(checkpoints(3));
    for (const auto& item : task.model().named_parameters())
      EXPECT_TRUE(at::equal(item.value(), *mean.find(item.key()))) << item.key();
    ToyTask other(algebra);
    nn::load_weights(other.model(), find_checkpoint(folder_ / "mean", "best") / "model.safetensors");
    const torch::NoGradGuard no_grad;
    other.model().eval();
    const Figures expected = other.evaluate("dev", [] {}).figures;
    const Result stored = read_result(folder_ / "mean");
    EXPECT_EQ(stored.dev, expected);
    EXPECT_EQ(stored.test, expected);
    EXPECT_TRUE(stored.finished);
    EXPECT_EQ(stored.parameters, result.parameters);
    EXPECT_GT(stored.parameters, 0);
    EXPECT_EQ(stored.facts, (Figures{{"answers", 7}}));
    EXPECT_EQ(contents(folder_ / "mean" / "predictions.tsv"), "target\tprediction\n1\t1\n1\t0\n");
    EXPECT_EQ(contents(folder_ / "mean" / "best" / "words.txt"), "a\n");
    EXPECT_THAT(contents(folder_ / "mean" / "best" / "average.json"),
                AllOf(HasSubstr("step-000012"), HasSubstr("step-000018"), HasSubstr("/last"),
                      HasSubstr(weights_checksum(folder_ / "run", "last"))));
    EXPECT_FALSE(fs::exists(folder_ / "mean" / "best" / "training.json"));
    EXPECT_FALSE(fs::exists(folder_ / "mean.part"));
    fs::remove_all(folder_ / "run");
    fs::remove_all(folder_ / "mean");
  }
}

TEST_F(AverageTest, RefusesTooFewAndDamagedOnes) {
  EXPECT_THAT(message_of([&] { checkpoints(); }), HasSubstr("has 0 checkpoints to average"));
  train("quaternion", 1);
  EXPECT_THAT(message_of([&] { checkpoints(); }),
              AllOf(HasSubstr("has 1 checkpoint to average, and a mean needs 2"), HasSubstr("--keep 5")));
  fs::remove_all(folder_ / "run");
  train();
  std::ofstream(folder_ / "run" / "step-000018" / "model.safetensors") << "torn";
  EXPECT_THAT(message_of([&] { checkpoints(); }),
              AllOf(HasSubstr("step-000018' is damaged"), HasSubstr("model.safetensors has 4 bytes")));
  fs::remove_all(folder_ / "run" / "last");
  fs::remove_all(folder_ / "run" / "step-000018");
  EXPECT_EQ(checkpoints().size(), 2u);
}

TEST_F(AverageTest, LeavesNothingHalfMade) {
  train();
  ToyTask task;
  const auto fails_while = [&](const std::string& part, const std::function<void()>& spoil) {
    task.on_evaluate = spoil;
    EXPECT_THAT(message_of([&] { average(task); }), HasSubstr(part));
    EXPECT_FALSE(left_behind());
  };
  fails_while("stopped", [] { throw std::runtime_error("stopped"); });
  // Another one has come to its place.
  task.on_evaluate = [&] { fs::create_directories(folder_ / "mean"); };
  EXPECT_THAT(message_of([&] { average(task); }), HasSubstr("exists already"));
  EXPECT_TRUE(fs::is_empty(folder_ / "mean"));
  EXPECT_FALSE(fs::exists(folder_ / "mean.part"));
  task.on_evaluate = nullptr;
  EXPECT_THAT(message_of([&] { average(task); }), HasSubstr("exists already"));
  fs::remove_all(folder_ / "mean");
  // What a killed one has left is no obstacle.
  fs::create_directories(folder_ / "mean.part" / "best");
  std::ofstream(folder_ / "mean.part" / "best" / "rest") << "x";
  average(task);
  EXPECT_FALSE(fs::exists(folder_ / "mean" / "best" / "rest"));
}

// Of sums of counts, as BLEU is.
class CountingTask : public ToyTask {
 public:
  Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override {
    Evaluation result = ToyTask::evaluate(split, after_batch);
    result.counts["share"] = {{"right", "all"}, {{1, 2}, {0, 3}}};
    return result;
  }
};

TEST_F(AverageTest, CountsOfExamplesAreKeptWithTheirChecksum) {
  CountingTask task;
  RunOptions run;
  run.folder = folder_ / "run";
  const Result trained = Trainer(task, toy_options(), run).run();
  EXPECT_EQ(contents(run.folder / "share.counts.tsv"), "right\tall\n1\t2\n0\t3\n");
  const Result stored = read_result(run.folder);
  EXPECT_EQ(stored.counts, trained.counts);
  const ExampleCounts counts = read_counts(stored, "share", run.folder);
  EXPECT_EQ(counts.columns, (std::vector<std::string>{"right", "all"}));
  EXPECT_EQ(counts.examples, (std::vector<std::vector<int64_t>>{{1, 2}, {0, 3}}));
  const auto damaged = AllOf(HasSubstr("share.counts.tsv' is not what a trainer wrote"),
                             HasSubstr("resume the run, which scores the test set again"));
  std::ofstream(run.folder / "share.counts.tsv") << "right\tall\n1\t2\n0\t2\n";
  EXPECT_THAT(message_of([&] { read_counts(stored, "share", run.folder); }), damaged);
  fs::remove(run.folder / "share.counts.tsv");
  EXPECT_THAT(message_of([&] { read_counts(stored, "share", run.folder); }),
              AllOf(HasSubstr("share.counts.tsv' is missing"),
                    HasSubstr("resume the run, which scores the test set again")));
  run.existing = Existing::overwrite;
  ToyTask other;
  std::ofstream(run.folder / "share.counts.tsv") << "old";
  Trainer(other, toy_options(), run).run();
  EXPECT_FALSE(fs::exists(run.folder / "share.counts.tsv"));
}

}  // namespace
}  // namespace quatrain::train
