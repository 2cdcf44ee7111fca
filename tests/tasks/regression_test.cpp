// A multiplication rule is learned from examples: the loss goes to zero, and A becomes the algebra's own
// table.

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

#include "quatrain/algebra.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/settings.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

// As the recipe `hamilton`, without its twins.
constexpr const char* kAlone = R"toml(
[task]
kind = "regression"
[train]
rate = 0.05
warmup = 0
steps = 1000
batch = 100
clip = 0
evaluate_every = 50
)toml";

class RegressionTest : public test::FolderTest {
 protected:
  train::Result learn(const std::vector<std::string>& settings) {
    return learn(parse_recipe(kAlone, "alone.toml", "alone", settings_of_tests(settings)));
  }
  train::Result learn(const Recipe& recipe) {
    const auto data = load_data(recipe);
    const auto task = make_task(data->recipe(), *data);
    return train::Trainer(*task, data->recipe().train, {.folder = folder_ / "run"}).run();
  }
  at::Tensor parameter(const std::string& name) {
    loaded_ = load_run(folder_ / "run");
    return loaded_->module().named_parameters()[name].detach();
  }

  std::unique_ptr<Model> loaded_;
};

std::string refusal_of(const std::vector<std::string>& settings) {
  try {
    read_recipe(QUATRAIN_RECIPES "/hamilton.toml", settings_of_tests(settings));
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(RegressionTest, TheHamiltonProductIsRecoveredExactly) {
  const train::Result result = learn(read_recipe(QUATRAIN_RECIPES "/hamilton.toml"));
  EXPECT_EQ(result.parameters, 64);
  EXPECT_LT(result.test.at("loss"), 1e-10);
  EXPECT_LT(result.test.at("structure_error"), 1e-4);
  const at::Tensor A = parameter("map.A");
  const at::Tensor table = torch::tensor(algebra::get("quaternion").table(), torch::kFloat).view({4, 4, 4});
  EXPECT_TRUE(at::equal(A.round(), table)) << A;
  EXPECT_TRUE(at::allclose(A, table, 0, 1e-4)) << A;
}

// The pairs determine A whatever the algebra: also where it is not the quaternions'.
TEST_F(RegressionTest, AnotherAlgebraIsRecovered) {
  const train::Result result = learn({"task.algebra=complex", "model.algebra=phm(2)", "train.steps=600"});
  EXPECT_LT(result.test.at("structure_error"), 1e-3);
  const at::Tensor table = torch::tensor(algebra::get("complex").table(), torch::kFloat).view({2, 2, 2});
  EXPECT_TRUE(at::equal(parameter("map.A").round(), table));
}

TEST_F(RegressionTest, ARealLayerLearnsTheSameTable) {
  const train::Result result = learn({"model.algebra=real", "train.steps=800"});
  EXPECT_LT(result.test.at("structure_error"), 1e-3);
}

TEST_F(RegressionTest, ARotationIsLearned) {
  const train::Result result = learn(read_recipe(QUATRAIN_RECIPES "/rotation.toml"));
  EXPECT_LT(result.test.at("loss"), 1e-8);
  EXPECT_FALSE(result.test.contains("structure_error"));
  // What was learned keeps lengths and turns right hands into right hands.
  loaded_ = load_run(folder_ / "run");
  const torch::NoGradGuard no_grad;
  const at::Tensor W = loaded_->forward({torch::eye(3)});
  EXPECT_TRUE(at::allclose(W.mm(W.t()), torch::eye(3), 0, 1e-3)) << W;
  EXPECT_NEAR(at::linalg_det(W).item<double>(), 1, 1e-3);
}

TEST_F(RegressionTest, NumbersAreAnsweredWithNumbers) {
  learn(std::vector<std::string>{});
  const auto model = load_run(folder_ / "run");
  const torch::NoGradGuard no_grad;
  // i * j = k, and (1 + 2i) * 3j = 3j + 6k.
  const auto answers = model->predict({"0 1 0 0 0 0 1 0", "1 2 0 0  0 0 3 0"});
  for (const auto& [answer, expected] : {std::pair{answers[0], std::vector<double>{0, 0, 0, 1}},
                                         std::pair{answers[1], std::vector<double>{0, 0, 3, 6}}}) {
    std::istringstream numbers(answer);
    for (const double number : expected) {
      double got = 99;
      numbers >> got;
      EXPECT_NEAR(got, number, 1e-3) << answer;
    }
  }
  for (const auto& [line, count] : {std::pair("", 0), {"1 2 3", 3}, {"1 2 3 4 5 6 7 x 9", 9}})
    EXPECT_EQ(model->line_problem(line),
              "a line must have 8 numbers separated by spaces, this one has " + std::to_string(count));
  for (const std::string word : {"x", "nan", "1e39", "1e5000", "1e99999999999999999999", "inf", "+1", "1,5"})
    EXPECT_EQ(model->line_problem("1 2 3 4 5 6 7 " + word),
              "number 8 of a line must be a finite number in single precision, got \"" + word + "\"");
  for (const std::string word :
       {"8e-3", "1e-46", "-1e-400", "-1e-5000", "0.001e-99999999999999999999"})  // too small is 0
    EXPECT_EQ(model->line_problem("1 2 3 4 5 6 7 " + word), "");
}

TEST_F(RegressionTest, OnlyTheSplitThatIsScoredIsKept) {
  const Recipe recipe = read_recipe(QUATRAIN_RECIPES "/hamilton.toml");
  const auto whole = load_data(recipe), part = load_data(recipe, {"", "test"});
  EXPECT_TRUE(part->has("test"));
  EXPECT_FALSE(part->has("train"));
  // The same examples, whether the others are there or not.
  EXPECT_TRUE(at::equal(part->inputs("test", recipe, 7, 1)[0].tensors[0],
                        whole->inputs("test", recipe, 7, 1)[0].tensors[0]));
}

TEST_F(RegressionTest, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_EQ(refusal_of({"model.algebra=phm(3)"}),
            "--set model.algebra=phm(3): model.algebra must have an n that divides the 4 outputs of the "
            "rule, got n = "
            "3 (phm(3))");
  EXPECT_THAT(refusal_of({"task.algebra=phm(4)"}),
              testing::HasSubstr("task.algebra must be a fixed algebra, got"));
  EXPECT_THAT(refusal_of({"task.algebra=quaternoin"}), testing::HasSubstr("task.algebra cannot be read"));
  EXPECT_THAT(refusal_of({"task.rule=sum"}), testing::HasSubstr("must be one of product, rotation"));
  EXPECT_THAT(refusal_of({"task.vectors=x"}),
              testing::HasSubstr(
                  "only recipes of kinds text_classification, text_pairs have the key 'task.vectors', and "
                  "this recipe is of kind regression"));
}

TEST_F(RegressionTest, ARealRunCanBeConverted) {
  learn({"model.algebra=real", "train.steps=1"});
  const auto model = load_run(folder_ / "run");
  const auto twin = model->in_algebra("phm(2)");
  EXPECT_EQ(find_value(twin->recipe(), "model.algebra"), "phm(2)");
  EXPECT_EQ(twin->forward({torch::zeros({2, 8})}).sizes(), (at::IntArrayRef{2, 4}));
}

}  // namespace
}  // namespace quatrain::tasks
