#pragma once

#include <functional>
#include <span>

#include "quatrain/nn/decoder.h"

namespace quatrain::nn {

/// The layers of a decoder, or of a causal encoder, as its steps apply them: one word of each row, behind the
/// words in its caches.
///
/// In float32 on a CPU maps are resolved once for a number of rows, and kernels do the rest on raw memory.
/// The operators that a layer's own step() calls make some thirty tensors a layer; with a model of width 128
/// that took half of the time. Other types and devices, autocast, and maps that are not the engine's go
/// through step().
///
/// While it lives the layers are in eval mode, their parameters and all guards stay as they are, and all
/// steps come from one thread at a time.
class QUATRAIN_API LayerSteps {
 public:
  /// `norm` may be null.
  LayerSteps(torch::nn::ModuleList layers, LayerNorm norm);

  /// x (rows, width) -> the same. The caches are those of the layers; `cross`, those of the memory, is empty
  /// for an encoder.
  at::Tensor operator()(const at::Tensor& x, int64_t place, std::span<const AttentionCache> self,
                        std::span<const AttentionCache> cross = {});

  /// True where the last step went through the kernels.
  bool by_kernels() const { return by_kernels_; }

 private:
  using Caches = std::span<const AttentionCache>;

  at::Tensor by_operators(at::Tensor x, int64_t place, Caches self, Caches cross);

  torch::nn::ModuleList layers_;
  LayerNorm norm_;
  bool by_kernels_ = false;
  int64_t rows_ = 0;  // of the last step; 0: there was none
  // The layers, resolved for these; empty where step() serves.
  std::function<at::Tensor(const at::Tensor& x, int64_t place, Caches self, Caches cross)> resolved_;
};

}  // namespace quatrain::nn
