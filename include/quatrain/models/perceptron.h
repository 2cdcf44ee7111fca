#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "quatrain/nn/feed_forward.h"

namespace quatrain::models {

/// dropout: after each activation.
struct QUATRAIN_API PerceptronOptions : nn::MapOptions<PerceptronOptions>,
                                        nn::DropOptions<PerceptronOptions>,
                                        nn::HiddenOptions<PerceptronOptions> {
  PerceptronOptions(int64_t in_features, int64_t width) : in_features_(in_features), width_(width) {}
  TORCH_ARG(int64_t, in_features);
  /// Of each layer's output.
  TORCH_ARG(int64_t, width);
  TORCH_ARG(int64_t, layers) = 2;
};

/// Linear layers, `linear1`, `linear2` ..., each with an activation and dropout behind it; the last one too
/// (the QFFN of QNLP 3.2). Shape: (..., in_features) -> (..., width).
class QUATRAIN_API PerceptronImpl : public torch::nn::Cloneable<PerceptronImpl> {
 public:
  explicit PerceptronImpl(PerceptronOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x);

  PerceptronOptions options;
  std::vector<nn::Linear> layers;

 private:
  nn::ActivationFunction activation_;
};
TORCH_MODULE(Perceptron);

}  // namespace quatrain::models
