#pragma once

#include <torch/nn/module.h>

#include <string>
#include <type_traits>

#include "quatrain/nn/layer.h"

namespace quatrain::nn {

/// "encoder" and "layers" -> "encoder.layers".
inline std::string joined(const std::string& parent, const std::string& child) {
  return parent.empty() ? child : child.empty() ? parent : parent + "." + child;
}

/// The numbers of a module's own parameters and of its children's.
inline int64_t parameter_count(const torch::nn::Module& module) {
  int64_t sum = 0;
  for (const at::Tensor& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

/// Calls visit(name, layer) for each hypercomplex layer of a module, itself included, real ones (n = 1) too.
template <typename Module, typename Visit>
void visit_layers(Module& module, const std::string& name, const Visit& visit) {
  constexpr bool fixed = std::is_const_v<Module>;
  using Layer = std::conditional_t<fixed, const HypercomplexLayer, HypercomplexLayer>;
  using Child = std::conditional_t<fixed, const torch::nn::Module, torch::nn::Module>;
  if (auto* layer = dynamic_cast<Layer*>(&module)) visit(name, *layer);
  for (const auto& child : module.named_children())
    visit_layers<Child>(*child.value(), joined(name, child.key()), visit);
}

/// How reports call one weight: by its layer, where that has no other.
inline std::string weight_name(const std::string& layer, const HypercomplexLayer& holder,
                               const HypercomplexWeight& weight) {
  return holder.weights().size() > 1 ? joined(layer, weight.key()) : layer;
}

}  // namespace quatrain::nn
