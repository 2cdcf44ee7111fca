#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include <optional>
#include <string>

#include "quatrain/nn/options.h"

/// torch's linear layers and convolutions beside ours.
namespace quatrain::nn {

/// What one of these layers holds.
struct TorchLayer {
  int64_t in, out, groups;
  at::Tensor weight, bias;
  at::Tensor H;  ///< (out, in and kernel); undefined where there are several groups
  bool convolution;
};

/// One of torch's linear layers or convolutions; a class that is derived from one counts.
std::optional<TorchLayer> torch_layer(const torch::nn::Module& module);

/// Ours with the options of such a layer and fresh weights. Empty for a class that is derived from one, which
/// may compute something else.
torch::nn::AnyModule twin_of(const torch::nn::Module& layer, const AlgebraSpec& algebra);

/// Refuses two layers of which one is a convolution and the other is not, or that move differently over their
/// images. `name`: as fill_nearest shows it.
void require_same_convolution(const torch::nn::Module& real, const torch::nn::Module& twin,
                              const std::string& name);

}  // namespace quatrain::nn
