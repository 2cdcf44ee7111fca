#include "quatrain/nn/dropout.h"

#include <torch/torch.h>

#include "nn/check.h"

namespace quatrain::nn {

at::Tensor dropout(const at::Tensor& x, double p, bool training, int64_t n, bool per_unit) {
  require_probability("dropout", "p", p);
  if (!training || p == 0) return x;
  if (!per_unit || n == 1) return at::dropout(x, p, training);
  TORCH_CHECK(n >= 1 && x.dim() >= 1 && x.size(-1) % n == 0,
              "dropout: the last axis must be divisible by n = ", n, ", got ", x.sizes());
  const at::Tensor components = x.unflatten(-1, {n, x.size(-1) / n});
  // One draw for the n components of a number.
  const at::Tensor kept = at::dropout(at::ones_like(components.select(-2, 0)), p, training);
  return (components * kept.unsqueeze(-2)).flatten(-2);
}

DropoutImpl::DropoutImpl(DropoutOptions options) : options(options) {
  require_probability("Dropout", "p", this->options.p());
  require(this->options.n() >= 1, "Dropout: n must be at least 1, got ", this->options.n());
}

void DropoutImpl::reset() {}

void DropoutImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Dropout(p=" << options.p();
  if (options.per_unit()) stream << ", per_unit, n=" << options.n();
  stream << ")";
}

at::Tensor DropoutImpl::forward(const at::Tensor& x) {
  return dropout(x, options.p(), is_training(), options.n(), options.per_unit());
}

}  // namespace quatrain::nn
