#pragma once

#include <vector>

#include "nn/resolved_layers.h"
#include "quatrain/nn/decoder.h"

namespace quatrain::nn {

/// The layers of a decoder, or of a causal encoder, as its steps apply them: one word of each row, behind the
/// words in its caches. The rows may as well be all words of some texts: caches whose places all lie in the
/// same memory keep the words of a single step, each in a slot.
///
/// In float32 on a CPU maps are resolved once for a number of rows, and kernels do the rest on raw memory.
/// A layer's own step() calls some thirty operators instead, which took half of the time with a model of
/// width 128. What was resolved for a few rows is kept for the next step of as many. Other types and devices,
/// autocast, and maps that are not the engine's go through step().
///
/// The layers are in eval mode, their modules are those that they had at the start, and steps come from one
/// thread at a time. Parameters that are written or moved between two steps are met as the operators meet
/// them: by their versions and addresses, and after train(), eval(), loading or drop_prepared().
class QUATRAIN_API LayerSteps {
 public:
  /// `norm` may be null.
  LayerSteps(torch::nn::ModuleList layers, LayerNorm norm);

  /// x (rows, width) -> the same. The caches are one for each layer; `cross`, those of the memory, is empty
  /// for an encoder. Their tables name slots that there are, and lengths are from 1 to the table's: unlike
  /// cached_attention this does not look at them.
  at::Tensor operator()(const at::Tensor& x, int64_t place, Caches self, Caches cross = {});
  /// The same by the kernels; undefined where they do not serve.
  at::Tensor apply_kernels(const at::Tensor& x, int64_t place, Caches self, Caches cross = {});

  /// Lets go of what was resolved for many rows, whose memory is worth more than the time.
  void keep_few();

  /// True where the last step went through the kernels.
  bool by_kernels() const { return by_kernels_; }

 private:
  /// What the maps are resolved for.
  struct Resolved {
    int64_t rows = 0, width = 0;
    int threads = 0;
    ops::PlannedRows planned = {};
    ops::Traffic traffic = {};
    ops::Way way = {};
    uint64_t versions = 0;   ///< of all parameters, and where they lie
    uint64_t forgotten = 0;  ///< ops::times_forgotten
    bool operator==(const Resolved&) const = default;
    bool is_few() const { return rows * width <= kFew; }
  };
  struct Kept {
    Resolved what;
    StepOfLayers step;  // empty where step() serves
  };
  static constexpr int64_t kFew = 1 << 15;  // values of rows
  static constexpr size_t kMostKept = 8;

  Resolved resolved_for(const at::Tensor& x) const;
  const StepOfLayers& step_for(const Resolved& what);
  at::Tensor by_operators(at::Tensor x, int64_t place, Caches self, Caches cross);

  torch::nn::ModuleList layers_;
  LayerNorm norm_;
  bool across_;  // the layers are a decoder's, which see the memory too
  bool by_kernels_ = false;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> met_;  // the memory of those that were resolved, lest its address be another's
  std::vector<Kept> kept_;       // of these parameters, the last one last
};

}  // namespace quatrain::nn
