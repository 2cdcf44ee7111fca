#include "nn/torch_layers.h"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "nn/check.h"
#include "nn/convolution_options.h"
#include "quatrain/nn/convolution.h"
#include "quatrain/nn/linear.h"

namespace quatrain::nn {
namespace {

// Hands over one of torch's convolutions as what it is, with the type of ours that is like it; no other
// module.
template <class Torchs, class Ours>
void look_at(const torch::nn::Module& module, const auto& look) {
  if (const auto* layer = dynamic_cast<const Torchs*>(&module)) look(*layer, std::type_identity<Ours>());
}
void look_at_torchs(const torch::nn::Module& module, const auto& look) {
  namespace tnn = torch::nn;
  look_at<tnn::Conv1dImpl, Conv1dImpl>(module, look);
  look_at<tnn::Conv2dImpl, Conv2dImpl>(module, look);
  look_at<tnn::Conv3dImpl, Conv3dImpl>(module, look);
  look_at<tnn::ConvTranspose1dImpl, ConvTranspose1dImpl>(module, look);
  look_at<tnn::ConvTranspose2dImpl, ConvTranspose2dImpl>(module, look);
  look_at<tnn::ConvTranspose3dImpl, ConvTranspose3dImpl>(module, look);
}
// Torch's or ours.
void look_at_any(const torch::nn::Module& module, const auto& look) {
  look_at_torchs(module, look);
  look_at<Conv1dImpl, Conv1dImpl>(module, look);
  look_at<Conv2dImpl, Conv2dImpl>(module, look);
  look_at<Conv3dImpl, Conv3dImpl>(module, look);
  look_at<ConvTranspose1dImpl, ConvTranspose1dImpl>(module, look);
  look_at<ConvTranspose2dImpl, ConvTranspose2dImpl>(module, look);
  look_at<ConvTranspose3dImpl, ConvTranspose3dImpl>(module, look);
}

// What a convolution does beside its weights, as names and texts.
using Movement = std::vector<std::pair<const char*, std::string>>;

template <size_t D, bool transposed>
Movement movement(const auto& options, std::type_identity<ConvNdImpl<D, transposed>>) {
  const auto text = [](const auto& sizes) { return c10::str(at::IntArrayRef(values(sizes))); };
  std::string around;
  bool padded = false;
  for (const auto& [before, behind] : sides<D>(options)) {
    around += c10::str(around.empty() ? "(" : ", (", before, ", ", behind, ")");
    padded = padded || before + behind > 0;
  }
  return {{"kind", convolution_name(D, transposed)},
          {"kernel_size", text(options.kernel_size())},
          {"stride", text(options.stride())},
          {"dilation", text(options.dilation())},
          {"padding before and behind each axis", around},
          {"padding_mode", padded ? mode_name(options.padding_mode()) : ""},
          {"output_padding", text(options.output_padding())},
          {"number of groups", std::to_string(options.groups())}};
}

std::optional<Movement> movement_of(const torch::nn::Module& module) {
  std::optional<Movement> result;
  look_at_any(module, [&](const auto& layer, auto type) { result = movement(layer.options, type); });
  return result;
}

}  // namespace

std::optional<TorchLayer> torch_layer(const torch::nn::Module& module) {
  std::optional<TorchLayer> result;
  if (const auto* layer = dynamic_cast<const torch::nn::LinearImpl*>(&module))
    return TorchLayer{layer->options.in_features(),
                      layer->options.out_features(),
                      1,
                      layer->weight,
                      layer->bias,
                      layer->weight,
                      /*convolution=*/false};
  look_at_torchs(module, [&](const auto& layer, auto) {
    const auto& o = layer.options;
    result = {o.in_channels(),     o.out_channels(), o.groups(), layer.weight, layer.bias, {},
              /*convolution=*/true};
    if (o.groups() == 1)
      result->H = (o.transposed() ? layer.weight.transpose(0, 1) : layer.weight).flatten(1);
  });
  return result;
}

void require_same_convolution(const torch::nn::Module& real, const torch::nn::Module& twin,
                              const std::string& name) {
  const auto from = movement_of(real), to = movement_of(twin);
  if (!from && !to) return;
  require(from && to, "fill_nearest: ", name, " must be a convolution in both models, got ", real.name(),
          " and ", twin.name());
  for (size_t i = 0; i < from->size(); ++i)
    require((*from)[i].second == (*to)[i].second, "fill_nearest: ", name, " must have one ", (*from)[i].first,
            " in both models, got ", (*from)[i].second, " and ", (*to)[i].second);
}

torch::nn::AnyModule twin_of(const torch::nn::Module& layer, const AlgebraSpec& algebra) {
  torch::nn::AnyModule twin;
  if (typeid(layer) == typeid(torch::nn::LinearImpl)) {
    const auto& o = dynamic_cast<const torch::nn::LinearImpl&>(layer).options;
    LinearOptions options(o.in_features(), o.out_features());
    twin = torch::nn::AnyModule(Linear(options.bias(o.bias()).algebra(algebra)));
  }
  look_at_torchs(layer, [&]<class Torchs, class Ours>(const Torchs& theirs, std::type_identity<Ours>) {
    if (typeid(layer) != typeid(Torchs)) return;
    const auto& o = theirs.options;
    typename Ours::Options options(o.in_channels(), o.out_channels(), o.kernel_size());
    options.stride(o.stride()).padding(o.padding()).dilation(o.dilation()).padding_mode(o.padding_mode());
    options.output_padding(o.output_padding()).bias(o.bias()).algebra(algebra);
    twin = torch::nn::AnyModule(std::make_shared<Ours>(options));
  });
  return twin;
}

}  // namespace quatrain::nn
