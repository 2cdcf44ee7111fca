#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/settings.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kShort = R"toml(
[task]
kind = "copy_memory"
symbols = 4
recall = 3
lag = 2
train = 640
dev = 50
test = 100
[model]
algebra = "quaternion"
hidden = 32
[train]
rate = 1e-2
schedule = "constant"
warmup = 0
steps = 300
batch = 32
evaluate_every = 100
threads = 1
)toml";

Recipe recipe_of(const std::vector<std::string>& settings, const std::string& text = kShort) {
  return parse_recipe(text, "short.toml", "short", settings_of_tests(settings));
}

class CopyMemoryTest : public test::FolderTest {
 protected:
  train::Result learn(const std::vector<std::string>& settings) {
    const auto data = load_data(recipe_of(settings));
    const auto task = make_task(data->recipe(), *data);
    return train::Trainer(*task, data->recipe().train, {.folder = folder_ / "run"}).run();
  }
};

TEST_F(CopyMemoryTest, SymbolsAreRecalled) {
  const train::Result result = learn({});
  EXPECT_GT(result.test.at("accuracy"), 0.99);
  EXPECT_EQ(result.test.at("count"), 100);
  const auto model = load_run(folder_ / "run");
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(model->predict({"301", "222"}), (std::vector<std::string>{"301", "222"}));
  for (const char* line : {"", "30", "3012", "304", "3 1"})
    EXPECT_EQ(model->line_problem(line), "a line must have 3 digits from 0 to 3") << line;
  EXPECT_EQ(model->line_problem("013"), "");
}

// Twins share the keys; a cell that has no use for one leaves it out.
TEST_F(CopyMemoryTest, ChronoTakesThePlaceOfTheForgetBias) {
  std::string text = kShort;
  text.insert(text.find("hidden"), "forget_bias = 1\n");
  const auto forget = [&](const std::vector<std::string>& settings) {
    const auto data = load_data(recipe_of(settings, text));
    const auto model = make_model(data->recipe(), *data);
    for (const auto& [key, value] : model->module().named_parameters().pairs())
      if (key.ends_with("bias_ih_l0")) return value.detach().view({4, -1, 8}).select(1, 1).flatten();
    return at::Tensor();
  };
  EXPECT_TRUE(forget({}).eq(1).all().item<bool>());
  const at::Tensor drawn = forget({"model.chrono=8"});
  EXPECT_TRUE(drawn.ge(0).logical_and(drawn.le(std::log(7.0))).all().item<bool>());
  EXPECT_FALSE(drawn.eq(drawn[0]).all().item<bool>());
  EXPECT_TRUE(forget({"model.chrono=8", "model.cell=gru"}).ne(0).all().item<bool>());
  text.insert(text.find("hidden"), "chrono = 8\n");
  const Recipe plain = recipe_of({"model.cell=rnn_tanh"}, text);
  EXPECT_NO_THROW(make_model(plain, *load_data(plain)));
}

// Whose state holds nothing of before recalls by chance: what is learned is memory.
TEST_F(CopyMemoryTest, AModelThatCannotRememberGuesses) {
  const train::Result result =
      learn({"model.recurrent_dropout=0.99", "model.cell=rnn_relu", "train.steps=60"});
  EXPECT_LT(result.test.at("accuracy"), 0.5);
}

TEST_F(CopyMemoryTest, EveryCellTrains) {
  for (const char* cell : {"lstm_printed", "gru", "rnn_tanh"}) {
    std::filesystem::remove_all(folder_ / "run");
    const train::Result result =
        learn({std::string("model.cell=") + cell, "model.algebra=phm(2)", "train.steps=3"});
    EXPECT_TRUE(std::isfinite(result.test.at("loss"))) << cell;
  }
}

// Batches are functions of epoch and index, and no two of them are alike.
TEST_F(CopyMemoryTest, SequencesAreDrawnFromTheSeed) {
  const Recipe recipe = recipe_of({});
  const auto data = load_data(recipe), again = load_data(recipe);
  const auto first = [&](const auto& from, const char* split) {
    return from->inputs(split, recipe, 5, 1)[0].tensors[0];
  };
  EXPECT_TRUE(first(data, "dev").equal(first(again, "dev")));
  EXPECT_FALSE(first(data, "dev").equal(first(data, "test")));
  EXPECT_EQ(first(data, "dev").sizes(), (std::vector<int64_t>{3, 5}));
  torch::manual_seed(1);
  const auto task = make_task(recipe, *data);
  const torch::NoGradGuard no_grad;
  task->model().eval();
  const auto loss = [&](int64_t epoch, int64_t index) {
    return task->loss(epoch, index).loss.item<double>();
  };
  EXPECT_EQ(loss(0, 1), loss(0, 1));
  EXPECT_NE(loss(0, 1), loss(0, 2));
  EXPECT_NE(loss(0, 1), loss(1, 1));
}

TEST_F(CopyMemoryTest, WhatDoesNotGoTogetherIsRefused) {
  try {
    recipe_of({"model.hidden=30"});
    FAIL();
  } catch (const RecipeError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("model.hidden must be divisible by n = 4 (quaternion), got 30"));
  }
  EXPECT_THROW(recipe_of({"model.cell=lstn"}), RecipeError);
  EXPECT_THROW(recipe_of({"task.symbols=1"}), RecipeError);
  EXPECT_THROW(load_data(recipe_of({}), {"somewhere"}), RecipeError);
}

}  // namespace
}  // namespace quatrain::tasks
