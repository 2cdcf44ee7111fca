#pragma once

#include <stdexcept>
#include <string>

#include "quatrain/nn.h"

/// Layers that several tests take, and what is said of one.
namespace quatrain::test {

inline nn::Linear linear(const std::string& algebra, int64_t in = 16, int64_t out = 8) {
  return nn::Linear(nn::LinearOptions(in, out).algebra(algebra));
}

inline const nn::LayerConversion& of(const nn::ConversionReport& report, const std::string& name) {
  for (const auto& layer : report.layers)
    if (layer.name == name) return layer;
  throw std::out_of_range(name);
}

}  // namespace quatrain::test
