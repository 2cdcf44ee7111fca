#pragma once

#include <functional>
#include <span>
#include <vector>

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
/// The layers are in eval mode, and steps come from one thread at a time. Parameters may be written between
/// two steps, as far as their versions tell.
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

  /// What the maps are resolved for.
  struct Resolved {
    int64_t rows = 0;
    ops::PlannedRows planned = {};
    ops::Way way = {};
    uint64_t versions = 0;  ///< of all parameters, and where they lie
    bool operator==(const Resolved&) const = default;
  };

  Resolved resolved_for(int64_t rows) const;
  void resolve(const Resolved& what, int64_t width);
  at::Tensor by_operators(at::Tensor x, int64_t place, Caches self, Caches cross);

  torch::nn::ModuleList layers_;
  LayerNorm norm_;
  bool by_kernels_ = false;
  std::vector<at::Tensor> parameters_;
  Resolved for_;  // the last step; no rows: there was none
  // The layers, resolved for it; empty where step() serves.
  std::function<at::Tensor(const at::Tensor& x, int64_t place, Caches self, Caches cross)> resolved_;
};

}  // namespace quatrain::nn
