#include "train/finite.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

namespace quatrain::train {

std::string first_not_finite(const torch::nn::Module& model) {
  const auto first = [](const auto& tensors, const char* what) {
    for (const auto& item : tensors)
      if (item.value().defined() && item.value().is_floating_point() &&
          !item.value().isfinite().all().template item<bool>())
        return std::string(what) + " '" + item.key() + "'";
    return std::string();
  };
  const std::string weights = first(model.named_parameters(), "weights");
  return !weights.empty() ? weights : first(model.named_buffers(), "running statistics");
}

std::string doubt_of(const Figures& figures, const std::string& set) {
  const auto loss = figures.find("loss");
  if (loss == figures.end() || !std::isnan(loss->second)) return "";
  if (const auto with = figures.find(kWithLoss); with != figures.end() && with->second == 0) return "";
  return "the loss of the " + set +
         " set is not a number, and neither are the answers that its other figures are made of";
}

void KeptBuffers::keep(const torch::nn::Module& model) {
  buffers_.clear();
  for (const at::Tensor& buffer : model.buffers()) buffers_.emplace_back(buffer, buffer.clone());
}

void KeptBuffers::restore() const {
  const torch::NoGradGuard no_grad;
  for (const auto& [buffer, copy] : buffers_) buffer.copy_(copy);
}

}  // namespace quatrain::train
