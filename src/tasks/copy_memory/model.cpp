#include "tasks/copy_memory/model.h"

#include <torch/types.h>

#include "quatrain/train/session.h"

namespace quatrain::tasks {

CopyMemoryModel::CopyMemoryModel(Recipe recipe) : Model(std::move(recipe)), network(own().network()) {}

at::Tensor CopyMemoryModel::forward(const std::vector<at::Tensor>& input) {
  const auto& o = own();
  TORCH_CHECK_VALUE(input.size() == 1 && input[0].dim() == 2 && input[0].size(0) == o.recall,
                    "copy_memory: the input must be one tensor (", o.recall, ", batch) of symbols");
  const int64_t batch = input[0].size(1);
  const auto marks = [&](int64_t count, int64_t mark) {
    return torch::full({count, batch}, mark, input[0].options());
  };
  const at::Tensor steps = torch::cat({input[0], marks(o.lag, o.symbols), marks(o.recall, o.symbols + 1)});
  const at::Tensor x = torch::one_hot(steps, o.inputs()).to(network->output->weight.scalar_type());
  return network->forward(x);
}

at::Tensor CopyMemoryModel::targets(const at::Tensor& symbols) const {
  const auto& o = own();
  return torch::cat(
      {torch::full({o.recall + o.lag, symbols.size(1)}, o.symbols, symbols.options()), symbols});
}

std::string CopyMemoryModel::line_problem(const std::string& line) const {
  const auto& o = own();
  const auto known = [&](char c) { return c >= '0' && c < '0' + o.symbols; };
  if (static_cast<int64_t>(line.size()) == o.recall && std::all_of(line.begin(), line.end(), known))
    return "";
  return "a line must have " + std::to_string(o.recall) + " digits from 0 to " +
         std::to_string(o.symbols - 1);
}

std::vector<at::Tensor> CopyMemoryModel::inputs(const std::vector<std::string>& lines) {
  std::vector<int64_t> digits;
  for (const auto& line : lines)
    for (const char digit : line) digits.push_back(digit - '0');
  const at::Tensor symbols = torch::tensor(digits).view({std::ssize(lines), own().recall}).t();
  return {symbols.to(train::device_of(*network))};
}

std::vector<std::string> CopyMemoryModel::predict(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  const auto& o = own();
  const at::Tensor scores = forward(inputs(lines)).narrow(0, o.steps() - o.recall, o.recall).to(at::kCPU);
  require_finite(scores.transpose(0, 1).flatten(1).to(at::kFloat));
  const at::Tensor best = scores.argmax(2).t().contiguous();
  std::vector<std::string> answers;
  for (int64_t row = 0; row < best.size(0); ++row) {
    std::string& answer = answers.emplace_back();
    for (int64_t i = 0; i < o.recall; ++i) {
      const int64_t symbol = best[row][i].item<int64_t>();
      answer += symbol < o.symbols ? static_cast<char>('0' + symbol) : '.';
    }
  }
  return answers;
}

std::unique_ptr<Model> CopyMemoryModel::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_alone();
  recipe.own<CopyMemoryOptions>().model.algebra(algebra);
  check(recipe);
  return std::make_unique<CopyMemoryModel>(std::move(recipe));
}

}  // namespace quatrain::tasks
