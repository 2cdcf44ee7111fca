#include "quatrain/models/perceptron.h"

#include <torch/types.h>

#include "nn/check.h"

namespace quatrain::models {

PerceptronImpl::PerceptronImpl(PerceptronOptions options)
    : options(std::move(options)), activation_(nn::overwriting_activation(this->options.activation())) {
  nn::require(this->options.layers() >= 1, "Perceptron: layers must be at least 1, got ",
              this->options.layers());
  nn::require_probability("Perceptron", "dropout", this->options.dropout());
  PerceptronImpl::reset();
}

void PerceptronImpl::reset() {
  layers.clear();
  int64_t in = options.in_features();
  for (int64_t l = 1; l <= options.layers(); ++l) {
    layers.push_back(register_module("linear" + std::to_string(l),
                                     nn::Linear(nn::LinearOptions(in, options.width()).like(options))));
    in = options.width();
  }
}

void PerceptronImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::Perceptron(" << options.in_features() << ", " << options.width()
         << ", layers=" << options.layers() << ", algebra=" << options.algebra().text() << ")";
}

at::Tensor PerceptronImpl::forward(const at::Tensor& x) {
  at::Tensor y = x;
  for (nn::Linear& layer : layers)
    y = nn::dropout(activation_(layer->forward(y)), options.dropout(), is_training(), options.algebra().n,
                    options.dropout_per_unit());
  return y;
}

}  // namespace quatrain::models
