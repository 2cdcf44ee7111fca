// `linear` under autocast. S goes uncast, with the type to compute in beside it: a cast copy would miss the
// prepared weights. A is never cast.

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "ops/linear/schema.h"

namespace quatrain::ops {

namespace {

template <c10::DispatchKey key, c10::DeviceType device>
at::Tensor linear_autocast(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
  const Dtype dtype = autocast_dtype(x, S, call, device);
  if (!dtype) return dispatch_linear(x, S, bias, call);
  Call cast = call;
  cast.dtype = dtype;
  return dispatch_linear(at::autocast::cached_cast(*dtype, x, device), S, bias, cast);
}

}  // namespace

Dtype autocast_dtype(const at::Tensor& x, const at::Tensor& S, const Call& call, c10::DeviceType device) {
  if (call.dtype || x.scalar_type() == at::kDouble || S.scalar_type() == at::kDouble) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCPU, m) {
  m.impl("linear", &linear_schema<&linear_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCUDA, m) {
  m.impl("linear", &linear_schema<&linear_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>);
}

}  // namespace quatrain::ops
