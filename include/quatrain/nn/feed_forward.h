#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <utility>

#include "quatrain/nn/activation.h"
#include "quatrain/nn/dropout.h"
#include "quatrain/nn/linear.h"

namespace quatrain::nn {

/// Options of layers with activations inside.
struct QUATRAIN_API HiddenSettings {
  std::string activation = "relu";
  bool dropout_per_unit = false;
};

template <class Self>
struct HiddenOptions {
  /// A name of the table in nn/activation.h.
  Self& activation(std::string value) {
    hidden_settings.activation = std::move(value);
    return static_cast<Self&>(*this);
  }
  const std::string& activation() const { return hidden_settings.activation; }

  /// Drops whole hypercomplex units of the activations instead of single elements.
  Self& dropout_per_unit(bool value) {
    hidden_settings.dropout_per_unit = value;
    return static_cast<Self&>(*this);
  }
  bool dropout_per_unit() const { return hidden_settings.dropout_per_unit; }

  HiddenSettings hidden_settings;
};

/// dropout: after the activation.
struct QUATRAIN_API FeedForwardOptions : MapOptions<FeedForwardOptions>,
                                         DropOptions<FeedForwardOptions>,
                                         HiddenOptions<FeedForwardOptions> {
  FeedForwardOptions(int64_t width, int64_t hidden) : width_(width), hidden_(hidden) {}
  TORCH_ARG(int64_t, width);
  TORCH_ARG(int64_t, hidden);
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
