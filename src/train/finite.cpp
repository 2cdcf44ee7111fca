#include "train/finite.h"

#include <torch/types.h>
#include <torch/utils.h>

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

void KeptBuffers::keep(const torch::nn::Module& model) {
  buffers_.clear();
  for (const at::Tensor& buffer : model.buffers()) buffers_.emplace_back(buffer, buffer.clone());
}

void KeptBuffers::restore() const {
  const torch::NoGradGuard no_grad;
  for (const auto& [buffer, copy] : buffers_) at::Tensor(buffer).copy_(copy);
}

}  // namespace quatrain::train
