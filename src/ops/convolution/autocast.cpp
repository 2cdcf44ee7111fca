// `convolution` under autocast, as `linear`: F goes uncast, with the type to compute in beside it.

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "ops/convolution/schema.h"

namespace quatrain::ops {

namespace {

template <c10::DispatchKey key, c10::DeviceType device>
at::Tensor convolution_autocast(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                                const ConvolutionCall& call) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
  const Dtype dtype = autocast_dtype(x, F, call.map, device);
  if (!dtype) return dispatch_convolution(x, F, bias, call);
  ConvolutionCall cast = call;
  cast.map.dtype = dtype;
  return dispatch_convolution(at::autocast::cached_cast(*dtype, x, device), F, bias, cast);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, AutocastCPU, m) {
  m.impl("convolution",
         &convolution_schema<&convolution_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCUDA, m) {
  m.impl("convolution",
         &convolution_schema<&convolution_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>);
}

}  // namespace quatrain::ops
