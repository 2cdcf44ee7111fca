#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "quatrain/nn/linear.h"
#include "quatrain/train/trainer.h"
#include "temporary_folder.h"

namespace quatrain::train {

struct ToyModelImpl : torch::nn::Module {
  ToyModelImpl(const std::string& algebra, double dropout)
      : first(register_module("first", nn::Linear(nn::LinearOptions(8, 16).algebra(algebra)))),
        drop(register_module("drop", torch::nn::Dropout(dropout))),
        second(register_module("second", nn::Linear(nn::LinearOptions(16, 1).algebra("real")))) {}
  at::Tensor forward(const at::Tensor& x) {
    return second->forward(drop->forward(torch::tanh(first->forward(x))));
  }

  nn::Linear first;
  torch::nn::Dropout drop;
  nn::Linear second;
};
TORCH_MODULE(ToyModel);

/// Regression on 64 made-up points: small enough to train in milliseconds, with dropout so that the generator
/// matters.
class ToyTask : public Task {
 public:
  explicit ToyTask(const std::string& algebra = "quaternion", double dropout = 0.2, int64_t batch = 8)
      : batch_(batch) {
    torch::manual_seed(3);
    model_ = ToyModel(algebra, dropout);
    x_ = torch::randn({64, 8});
    y_ = torch::tanh(x_.sum(1, true) / 3);
  }

  torch::nn::Module& model() override { return *model_; }
  int64_t batches() const override { return (64 + batch_ - 1) / batch_; }
  BatchLoss loss(int64_t epoch, int64_t index) override {
    asked.emplace_back(epoch, index);
    if (on_loss) on_loss();
    const auto part = [&](const at::Tensor& all) {
      return all.roll(epoch).slice(0, index * batch_, (index + 1) * batch_).to(device_of(*model_));
    };
    const at::Tensor x = part(x_), y = part(y_);
    const at::Tensor loss = torch::mse_loss(model_->forward(x).to(at::kFloat), y);
    last_dtype = model_->first->forward(x).scalar_type();
    const auto call = static_cast<int64_t>(asked.size());
    if (call == fail_at || (fail_from > 0 && call >= fail_from)) return {loss * fail_with, x.size(0)};
    return {loss, examples.value_or(x.size(0))};
  }
  bool has(std::string_view split) const override {
    return (split == "dev" && dev) || (split == "test" && test);
  }
  Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override {
    if (on_evaluate) on_evaluate();
    after_batch();
    EXPECT_FALSE(model_->is_training());
    EXPECT_FALSE(torch::GradMode::is_enabled());
    evaluated.emplace_back(split);
    const at::Device device = device_of(*model_);
    const double loss =
        torch::mse_loss(model_->forward(x_.to(device)).to(at::kFloat), y_.to(device)).item<double>();
    const double figure =
        scripted.empty() ? loss : scripted.at(std::min(evaluated.size(), scripted.size()) - 1);
    return {{{"loss", figure}, {"true_loss", loss}}, {1, 0}, {1, 1}};
  }
  Selection selection() const override { return {selecting, false}; }
  void store(const std::filesystem::path& folder) const override {
    if (store_fails) throw std::runtime_error("the disk is full");
    std::ofstream(folder / "words.txt") << words;
  }
  std::string recipe() const override { return "[task]\n"; }
  Figures facts() override { return {{"answers", 7}}; }

  bool dev = true, test = true;
  std::string selecting = "loss";
  std::vector<double> scripted;  // losses to give instead of the true ones
  bool store_fails = false;      // no checkpoint can be written
  std::string words = "a\n";     // what is stored
  std::function<void()> on_evaluate, on_loss;
  std::optional<int64_t> examples;  // of each batch, in the place of the true number
  int64_t fail_at = 0;              // the call of loss() that goes wrong
  int64_t fail_from = 0;            // and from which on all do
  double fail_with = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::pair<int64_t, int64_t>> asked;
  std::vector<std::string> evaluated;
  at::ScalarType last_dtype = at::kFloat;

 private:
  int64_t batch_;
  ToyModel model_{nullptr};
  at::Tensor x_, y_;
};

/// A run over it, evaluated four times and logged more often.
inline TrainerOptions toy_options(int64_t steps = 24) {
  TrainerOptions options;
  options.steps = steps;
  options.optimizer.learning_rate = 0.01;
  options.evaluate_every = 6;
  options.log_every = 4;
  options.seed = 5;
  return options;
}

using test::FolderTest;

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<at::Tensor> copies(torch::nn::Module& module) {
  std::vector<at::Tensor> result;
  for (const auto& parameter : module.parameters()) result.push_back(parameter.detach().clone());
  return result;
}

inline void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace quatrain::train
