#pragma once

#include <functional>
#include <span>

#include "quatrain/nn/decoder.h"

namespace quatrain::nn {

/// One for each layer.
using Caches = std::span<const AttentionCache>;

/// What all layers, and the norm behind them, make of a word of each row: x (rows, width) -> the same. See
/// LayerSteps.
using StepOfLayers = std::function<at::Tensor(const at::Tensor& x, int64_t place, Caches self, Caches cross)>;

/// The step of an encoder's or a decoder's layers for so many rows, by kernels on raw memory: float32 on a
/// CPU. Its maps are resolved, and hold what they were made of. Empty where a map is not the engine's, or
/// answers are to stand alone and would not. `norm` may be null.
StepOfLayers resolve_layers(const torch::nn::ModuleList& layers, const LayerNorm& norm, int64_t rows,
                            int64_t width);

}  // namespace quatrain::nn
