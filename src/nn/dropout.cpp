#include "quatrain/nn/dropout.h"

#include <torch/types.h>

#include "nn/check.h"
#include "quatrain/layer_ops.h"

namespace quatrain::nn {

at::Tensor dropout(const at::Tensor& x, double p, bool training, int64_t n, bool per_unit) {
  return ops::hypercomplex_dropout(x, p, training, n, per_unit);
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
