#include "tasks/regression/data.h"

#include <torch/nn/functional/normalization.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "data/random.h"
#include "quatrain/algebra.h"
#include "quatrain/ops.h"
#include "quatrain/train/session.h"
#include "support/parts.h"
#include "tasks/regression/kind.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

// y = W x, row by row, as Im(q x conj(q)) with a unit quaternion q.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& unit) {
  const at::Tensor pure = torch::cat({torch::zeros({x.size(0), 1}), x}, 1);
  const at::Tensor turned =
      ops::hamilton_product(ops::hamilton_product(unit, pure, "quaternion"),
                            ops::hypercomplex_conjugate(unit, "quaternion"), "quaternion");
  return turned.narrow(1, 1, 3).contiguous();
}

Examples draw(const RegressionOptions& options, int64_t count, const at::Tensor& turn,
              at::Generator& generator) {
  const at::Tensor x = torch::randn({count, options.inputs()}, generator);
  if (options.rule == Rule::rotation) return {x, rotated(x, turn)};
  const auto numbers = x.chunk(2, 1);
  return {x, ops::hamilton_product(numbers[0].contiguous(), numbers[1].contiguous(), options.algebra)};
}

class Regression : public train::Task {
 public:
  Regression(std::shared_ptr<RegressionModel> model, std::shared_ptr<const ExamplesBySplit> splits)
      : model_(std::move(model)), splits_(std::move(splits)) {}

  torch::nn::Module& model() override { return model_->module(); }

  int64_t batches() const override {
    const auto train = splits_->find("train");
    const int64_t size = model_->recipe().batch;
    return train == splits_->end() ? 0 : count_parts(train->second.x.size(0), size);
  }

  train::BatchLoss loss(int64_t epoch, int64_t index) override {
    const Examples& all = splits_->at("train");
    if (epoch != epoch_) {
      auto generator = at::detail::createCPUGenerator(data::mixed(model_->recipe().train.seed) +
                                                      static_cast<uint64_t>(epoch));
      order_ = torch::randperm(all.x.size(0), generator);
      epoch_ = epoch;
    }
    const int64_t size = model_->recipe().batch;
    const at::Tensor rows = order_.slice(0, index * size, (index + 1) * size);
    const at::Device device = train::device_of(model_->module());
    const at::Tensor y = model_->regressor->forward(all.x.index_select(0, rows).to(device));
    return {torch::mse_loss(y.to(at::kFloat), all.y.index_select(0, rows).to(device)), rows.size(0)};
  }

  bool has(std::string_view split) const override { return splits_->contains(split); }

  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override {
    const auto set = splits_->find(split);
    TORCH_CHECK(set != splits_->end(), "regression: there is no '", split, "' set");
    const auto& [x, y] = set->second;
    const at::Tensor found = model_->regressor->forward(x.to(train::device_of(model_->module())));
    const at::Tensor error = found.to(at::kCPU, at::kDouble) - y;
    train::Evaluation result;
    result.figures = {{"loss", error.square().mean().item<double>()},
                      {"count", static_cast<double>(x.size(0))}};
    if (model_->own().rule == Rule::product) result.figures["structure_error"] = structure_error();
    if (after_batch) after_batch();
    return result;
  }

  train::Selection selection() const override { return selection_by(regression().about().figures.front()); }
  std::string recipe() const override { return to_toml(model_->recipe()); }

 private:
  // How far the table that was learned is from the algebra's own, as a share of that one's norm.
  double structure_error() const {
    const auto& algebra = algebra::get(model_->own().algebra);
    const at::Tensor own = torch::tensor(algebra.table()).view({algebra.n(), algebra.n(), algebra.n()});
    return ((model_->regressor->table().to(at::kCPU, at::kDouble) - own).norm() / own.norm()).item<double>();
  }

  std::shared_ptr<RegressionModel> model_;
  std::shared_ptr<const ExamplesBySplit> splits_;
  at::Tensor order_;  // of the epoch's examples
  int64_t epoch_ = -1;
};

}  // namespace

RegressionData::RegressionData(Recipe recipe, const std::string& only)
    : Data(std::move(recipe)), splits_(std::make_shared<ExamplesBySplit>()) {
  const auto& own = recipe_.own<RegressionOptions>();
  at::Generator generator = at::detail::createCPUGenerator(own.seed);
  const at::Tensor turn = torch::nn::functional::normalize(
      torch::randn({4}, generator), torch::nn::functional::NormalizeFuncOptions().dim(0));
  for (const auto& [name, count] :
       {std::pair{"train", own.train}, std::pair{"dev", own.dev}, std::pair{"test", own.test}}) {
    Examples examples = draw(own, count, turn, generator);
    if (only.empty() || only == name) splits_->emplace(name, std::move(examples));
  }
}

std::vector<Input> RegressionData::inputs(std::string_view split, const Recipe&, int64_t size,
                                          int64_t count) const {
  std::vector<Input> inputs;
  for (const at::Tensor& x : splits_->find(split)->second.x.split(size))
    if (static_cast<int64_t>(inputs.size()) < count) inputs.push_back({{x}, x.size(0)});
  return inputs;
}

std::unique_ptr<Model> RegressionData::make_model(const Recipe& recipe) const {
  return std::make_unique<RegressionModel>(recipe);
}

std::unique_ptr<train::Task> RegressionData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<Regression>(std::dynamic_pointer_cast<RegressionModel>(std::move(model)), splits_);
}

}  // namespace quatrain::tasks
