// The shapes of `linear` and `linear_backward`, without values.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/linear/schema.h"

namespace quatrain::ops {

namespace {

at::Tensor linear_meta(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
  check_linear("linear", x, S, call);
  check_bias(bias, S);
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = S.sym_size(0) * S.sym_size(1);
  return at::empty_symint(sizes, x.options().dtype(call.compute_dtype(x)));
}

Gradients linear_backward_meta(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                               const Call& call, Mask mask, const Optional&) {
  check_linear("linear_backward", x, S, call);
  check_grad(grad, x, S, call);
  const auto like = [](const at::Tensor& t, bool wanted) {
    return wanted ? at::empty_symint(t.sym_sizes(), t.options()) : at::Tensor();
  };
  return {like(x, mask[0]), like(S, mask[1]), call.learned() ? like(*call.A, mask[2]) : at::Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("linear", &linear_schema<&linear_meta>);
  m.impl("linear_backward", &linear_backward_schema<&linear_backward_meta>);
}

}  // namespace quatrain::ops
