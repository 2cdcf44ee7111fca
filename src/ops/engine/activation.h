#pragma once

#include <optional>
#include <string_view>

#include "kernels/cpu/kernels.h"
#include "support/enum_names.h"

namespace quatrain::ops::engine {

/// The kernels' activation of a name of nn/activation.h; none where they have it not.
inline std::optional<kernels::cpu::Activation> kernel_activation(std::string_view name) {
  using kernels::cpu::Activation;
  constexpr EnumNames<Activation, 4> kNames{{{Activation::identity, "identity"},
                                             {Activation::relu, "relu"},
                                             {Activation::tanh, "tanh"},
                                             {Activation::sigmoid, "sigmoid"}}};
  const Activation* found = find_value(kNames, name);
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace quatrain::ops::engine
