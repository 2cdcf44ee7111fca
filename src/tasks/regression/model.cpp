#include "tasks/regression/model.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <array>
#include <cmath>
#include <sstream>

#include "quatrain/train/session.h"
#include "support/parse_number.h"
#include "support/text.h"

namespace quatrain::tasks {
namespace {

// The numbers of a line, or why it has none.
struct Numbers {
  std::vector<float> values;
  std::string problem;
};

Numbers numbers_of(const std::string& line, int64_t wanted) {
  Numbers numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const auto number = parse_number<float>(word);
    if (numbers.problem.empty() && !(number && std::isfinite(*number)))
      numbers.problem = "number " + std::to_string(numbers.values.size() + 1) +
                        " of a line must be a finite number in single precision, got " + quote(word);
    numbers.values.push_back(number.value_or(0));
  }
  if (const int64_t count = std::ssize(numbers.values); count != wanted)
    numbers.problem = "a line must have " + std::to_string(wanted) +
                      " numbers separated by spaces, this one has " + std::to_string(count);
  return numbers;
}

}  // namespace

Regressor::Regressor(const RegressionOptions& options)
    : product_(options.rule == Rule::product), outputs_(options.outputs()) {
  auto layer = options.map;
  map = register_module("map", nn::Linear(layer.in_features(options.features()).out_features(outputs_)));
  if (product_ && layer.algebra().n > 1 && layer.algebra().n == outputs_) {
    const torch::NoGradGuard no_grad;
    map->S.copy_(torch::eye(outputs_).unsqueeze(1));
    map->S.set_requires_grad(false);
  }
}

at::Tensor Regressor::forward(const at::Tensor& x) {
  if (!product_) return map->forward(x);
  const at::Tensor q = x.narrow(-1, 0, outputs_), p = x.narrow(-1, outputs_, outputs_);
  return map->forward((p.unsqueeze(-1) * q.unsqueeze(-2)).flatten(-2));
}

at::Tensor Regressor::table() const {
  return map->matrix().view({outputs_, outputs_, outputs_}).permute({2, 0, 1});
}

RegressionModel::RegressionModel(Recipe recipe)
    : Model(std::move(recipe)), regressor(std::make_shared<Regressor>(own())) {}

at::Tensor RegressionModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(input.size() == 1 && input[0].dim() == 2 && input[0].size(1) == own().inputs(),
                    "regression: the input must be one tensor (B, ", own().inputs(), ")");
  return regressor->forward(input[0]);
}

std::string RegressionModel::line_problem(const std::string& line) const {
  return numbers_of(line, own().inputs()).problem;
}

std::vector<at::Tensor> RegressionModel::inputs(const std::vector<std::string>& lines) {
  std::vector<float> numbers;
  for (const auto& line : lines)
    for (const float number : numbers_of(line, own().inputs()).values) numbers.push_back(number);
  const at::Tensor x = torch::tensor(numbers).view({std::ssize(lines), own().inputs()});
  return {x.to(train::device_of(*regressor))};
}

std::vector<std::string> RegressionModel::predict(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  const at::Tensor y = forward(inputs(lines)).to(at::kCPU, at::kFloat);
  require_finite(y);
  const auto value = y.accessor<float, 2>();
  std::vector<std::string> answers;
  for (int64_t row = 0; row < y.size(0); ++row) {
    std::string& answer = answers.emplace_back();
    for (int64_t i = 0; i < y.size(1); ++i) {
      std::array<char, 32> digits{};
      std::snprintf(digits.data(), digits.size(), "%s%.6g", i > 0 ? "\t" : "",
                    static_cast<double>(value[row][i]));
      answer += digits.data();
    }
  }
  return answers;
}

std::unique_ptr<Model> RegressionModel::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_alone();
  recipe.own<RegressionOptions>().map.algebra(algebra);
  check(recipe);
  return std::make_unique<RegressionModel>(std::move(recipe));
}

}  // namespace quatrain::tasks
