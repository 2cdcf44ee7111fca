#include "ops/map/summands.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include <vector>

#include "ops/map/prepared.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

at::Tensor product(const at::Tensor& S, const at::Tensor& w) {
  TORCH_CHECK(S.dim() >= 1 && w.dim() == 1 && w.sym_size(0) == S.sym_size(0),
              "weighted_summands: w must have a value for each summand, (", S.dim() ? S.sym_size(0) : 1,
              "), got ", w.sym_sizes());
  std::vector<int64_t> sizes(static_cast<size_t>(S.dim()), 1);
  sizes[0] = -1;
  return w.view(sizes) * S;
}

/// Beside which nothing is kept: it is another one in the next call.
at::Tensor passing(const at::Tensor& t) {
  mark_in_training(t);
  return t;
}

at::Tensor kept_product(const at::Tensor& S, const at::Tensor& w, bool constant) {
  if (!constant) return product(S, w);
  if (!may_keep(S) || !may_keep(w)) return passing(product(S, w));
  Call of_w;  // w stands where a learned A does: a second tensor that the form is made from
  of_w.algebra = "learned", of_w.A = w, of_w.constant = true;
  Form form{.reader = Form::summands, .dtype = S.scalar_type(), .read_in = S.scalar_type()};
  form.geometry = {reinterpret_cast<int64_t>(w.const_data_ptr())};  // several may weigh one S
  return prepared(S, of_w, Versions(S, of_w), form, [&] {
    // Tensors of inference mode have no version, and nothing could be kept beside them.
    const c10::InferenceMode normal(false);
    const at::NoGradGuard no_grad;
    return product(S, w);
  });
}

at::Tensor product_autograd(const at::Tensor& S, const at::Tensor& w, bool constant) {
  if (!constant || is_compiled() || transformed({S, w})) return product(S, w);
  if (at::GradMode::is_enabled() && (wants_grad(S) || wants_grad(w))) {
    const at::Tensor result = passing(product(S, w));
    // S is in training once its gradient was computed, as it is where an operator computes it.
    result.register_hook([S](const at::Tensor& gradient) {
      mark_in_training(S);
      return gradient;
    });
    return result;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return weighted_summands(S, w, constant);
}

at::Tensor product_anew(const at::Tensor& S, const at::Tensor& w, bool /*constant*/) {
  return product(S, w);
}

}  // namespace

at::Tensor weighted_summands(const at::Tensor& S, const at::Tensor& w, bool constant) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::weighted_summands", "")
                             .typed<decltype(weighted_summands)>();
  return op.call(S, w, constant);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("weighted_summands(Tensor S, Tensor w, bool constant) -> Tensor", {at::Tag::pt2_compliant_tag});
}
TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("weighted_summands", &kept_product);
}
TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("weighted_summands", &product_autograd);
}
// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("weighted_summands", &product_anew);
}

}  // namespace quatrain::ops
