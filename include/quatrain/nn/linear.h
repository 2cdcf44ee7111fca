#pragma once

#include <torch/arg.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "quatrain/nn/layer.h"
#include "quatrain/nn/options.h"
#include "quatrain/ops.h"

namespace quatrain::nn {

struct QUATRAIN_API LinearOptions : MapOptions<LinearOptions> {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  /// d: size of the input's last axis; n must divide it.
  TORCH_ARG(int64_t, in_features);
  /// k: size of the output's last axis; n must divide it.
  TORCH_ARG(int64_t, out_features);
  /// How many maps lie beside each other in the output, 3 where they are Q, K and V: the weights are drawn
  /// with the fans of one.
  TORCH_ARG(int64_t, maps) = 1;
};

/// y = H x + b with H = sum_i A_i (x) S_i (PHM (3.2)): the left Hamilton product W * x at the quaternions,
/// PHM's layer where A is learned, WKP's H = sum_i w_i A_i (x) S_i where its summands are weighted, a real
/// layer at n = 1.
///
/// A weight and a bias: its parameters are those of HypercomplexWeight, `A` or `factors` and `w` where they
/// are learned, and `S` (n, k/n, d/n); and `bias` (k), zero at start. Shape: (..., d) -> (..., k), components
/// concatenated.
class QUATRAIN_API LinearImpl : public HypercomplexModule<LinearImpl>, public HypercomplexWeight {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  /// Throws std::invalid_argument where n does not divide a size; the message names the nearest sizes it
  /// divides.
  explicit LinearImpl(LinearOptions options);

  void reset() override;
  /// Draws S and A anew by the options' initialiser; bias zero, w one.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::vector<HypercomplexWeight*> weights() override { return {this}; }

  at::Tensor forward(const at::Tensor& x);

  LinearOptions options;
  at::Tensor bias;
};
TORCH_MODULE(Linear);

}  // namespace quatrain::nn
