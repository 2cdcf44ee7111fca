#include "quatrain/nn/feed_forward.h"

#include <torch/types.h>

#include "nn/check.h"
#include "ops/panels.h"

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
  const auto apply = [this](const at::Tensor& rows) {
    return linear2->forward(dropout(activation_(linear1->forward(rows)), options.dropout(), is_training(),
                                    options.algebra().n, options.dropout_per_unit()));
  };
  if (x.dim() < 2 || !x.is_contiguous()) return apply(x);
  const ops::PanelSizes sizes = {.items = c10::multiply_integers(x.sizes().slice(0, x.dim() - 1)),
                                 .widest = options.hidden()};
  const int64_t panel = ops::items_of_panel(sizes, x, is_training());
  if (panel == sizes.items) return apply(x);
  const at::Tensor rows = x.flatten(0, -2);
  const at::Tensor y = ops::by_panels(
      sizes.items, panel, [&](int64_t first, int64_t count) { return apply(rows.narrow(0, first, count)); });
  return at::_unsafe_view(y, x.sizes());  // which callers may write over, as any other result
}

}  // namespace quatrain::nn
