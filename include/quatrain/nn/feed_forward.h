#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "quatrain/nn/activation.h"
#include "quatrain/nn/dropout.h"
#include "quatrain/nn/linear.h"

namespace quatrain::nn {

struct QUATRAIN_API FeedForwardOptions {
  FeedForwardOptions(int64_t width, int64_t hidden) : width_(width), hidden_(hidden) {}
  TORCH_ARG(int64_t, width);
  TORCH_ARG(int64_t, hidden);
  TORCH_ARG(AlgebraSpec, algebra);
  /// A name of the table in nn/activation.h.
  TORCH_ARG(std::string, activation) = "relu";
  /// Dropout after the activation.
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, dropout_per_unit) = false;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(Initialiser, initialiser) = Initialiser::glorot;
  TORCH_ARG(ops::Way, way) = ops::Way::automatic;
};

/// linear2(dropout(activation(linear1(x)))), the activation component-wise (PHM 4.2). Shape: (..., width) ->
/// the same.
class QUATRAIN_API FeedForwardImpl : public torch::nn::Cloneable<FeedForwardImpl> {
 public:
  FeedForwardImpl(int64_t width, int64_t hidden) : FeedForwardImpl(FeedForwardOptions(width, hidden)) {}
  explicit FeedForwardImpl(FeedForwardOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x);

  FeedForwardOptions options;
  Linear linear1{nullptr}, linear2{nullptr};

 private:
  ActivationFunction activation_;
};
TORCH_MODULE(FeedForward);

}  // namespace quatrain::nn
