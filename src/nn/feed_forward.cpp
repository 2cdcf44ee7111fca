#include "quatrain/nn/feed_forward.h"

#include <torch/torch.h>

#include "nn/check.h"

namespace quatrain::nn {

FeedForwardImpl::FeedForwardImpl(FeedForwardOptions options)
    : options(std::move(options)), activation_(overwriting_activation(this->options.activation())) {
  require_probability("FeedForward", "dropout", this->options.dropout());
  const int64_t n = this->options.algebra().n;
  require_divisible("FeedForward", "width", this->options.width(), n, "n");
  require_divisible("FeedForward", "hidden", this->options.hidden(), n, "n");
  FeedForwardImpl::reset();
}

void FeedForwardImpl::reset() {
  const auto linear = [this](int64_t in, int64_t out) {
    return Linear(LinearOptions(in, out).like(options));
  };
  linear1 = register_module("linear1", linear(options.width(), options.hidden()));
  linear2 = register_module("linear2", linear(options.hidden(), options.width()));
}

void FeedForwardImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::FeedForward(" << options.width() << " -> " << options.hidden() << " -> "
         << options.width() << ", activation=" << options.activation() << ", dropout=" << options.dropout()
         << ")";
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x) {
  const at::Tensor hidden = activation_(linear1->forward(x));
  return linear2->forward(
      dropout(hidden, options.dropout(), is_training(), options.algebra().n, options.dropout_per_unit()));
}

}  // namespace quatrain::nn
