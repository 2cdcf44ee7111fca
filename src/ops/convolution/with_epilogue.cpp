// `convolution_with_epilogue`: where nothing needs a gradient a CPU finishes each value while it is in the
// cache; else it is a convolution and ATen's calls after it.

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/convolution/schema.h"
#include "ops/engine/options.h"
#include "ops/transforms.h"
#include "quatrain/layer_ops.h"

namespace quatrain::ops {

namespace {

template <EpilogueKernel kernel>
at::Tensor epilogue_schema(const at::Tensor& x, const at::Tensor& F, const Optional& scale,
                           const Optional& shift, const Optional& residual, std::string_view activation,
                           std::string_view algebra, const Optional& A, const SomeTensors& factors,
                           at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                           bool transposed, at::IntArrayRef output_padding, int64_t groups,
                           std::string_view way, std::string_view winograd, Dtype dtype, bool constant) {
  return kernel(x, F, {scale, shift, residual, std::string(activation)},
                make_convolution_call(F, make_call(algebra, A, listed(factors), way, dtype, constant), stride,
                                      padding, dilation, transposed, output_padding, groups,
                                      requested_winograd(parse_winograd(winograd))));
}

at::Tensor dispatch(const at::Tensor& x, const at::Tensor& F, const ConvolutionFinish& finish,
                    const ConvolutionCall& call) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::convolution_with_epilogue", "")
                             .typed<decltype(epilogue_schema<&composed::convolution_with_epilogue>)>();
  const Call& map = call.map;
  return op.call(x, F, finish.scale, finish.shift, finish.residual, finish.activation, map.algebra, map.A,
                 map.factors, call.stride, call.padding, call.dilation, call.transposed, call.output_padding,
                 call.groups, name(map.way), name(call.winograd), map.dtype, map.constant);
}

at::Tensor by_autograd(const at::Tensor& x, const at::Tensor& F, const ConvolutionFinish& finish,
                       const ConvolutionCall& call) {
  const auto inputs = {x,
                       F,
                       finish.scale.value_or(at::Tensor()),
                       finish.shift.value_or(at::Tensor()),
                       finish.residual.value_or(at::Tensor()),
                       call.map.A.value_or(at::Tensor())};
  if (transformed(inputs) ||
      (at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), &wants_grad)))
    return composed::convolution_with_epilogue(x, F, finish, call);
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch(x, F, finish, call);
}

at::Tensor by_meta(const at::Tensor& x, const at::Tensor& F, const ConvolutionFinish& finish,
                   const ConvolutionCall& call) {
  check_convolution("convolution_with_epilogue", x, F, call);
  check_finish(finish, x, F, call);
  return empty_in_order(result_sizes(x, F, call), x.options().dtype(call.map.compute_dtype(x)), format_of(x));
}

template <c10::DispatchKey key, c10::DeviceType device>
at::Tensor by_autocast(const at::Tensor& x, const at::Tensor& F, const ConvolutionFinish& finish,
                       const ConvolutionCall& call) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
  const Dtype dtype = autocast_dtype(x, F, call.map, device);
  if (!dtype) return dispatch(x, F, finish, call);
  ConvolutionCall cast = call;
  cast.map.dtype = dtype;
  return dispatch(at::autocast::cached_cast(*dtype, x, device), F, finish, cast);
}

}  // namespace

void check_finish(const ConvolutionFinish& finish, const at::Tensor& x, const at::Tensor& F,
                  const ConvolutionCall& call) {
  constexpr const char* kName = "convolution_with_epilogue";
  const std::vector<c10::SymInt> sizes = result_sizes(x, F, call);
  for (const auto& [argument, t] : {std::pair{"scale", finish.scale}, std::pair{"shift", finish.shift}}) {
    if (!given(t)) continue;
    check_values(kName, argument, *t);
    TORCH_CHECK(t->dim() == 1 && t->sym_size(0) == sizes[1], kName, ": ", argument,
                " must have out_channels = ", sizes[1], " values, got ", t->sym_sizes());
    TORCH_CHECK(t->device() == x.device(), kName, ": ", argument, " is on ", t->device(), ", x on ",
                x.device(), "; move one");
  }
  if (given(finish.residual)) {
    check_values(kName, "residual", *finish.residual);
    TORCH_CHECK(finish.residual->sym_sizes() == c10::SymIntArrayRef(sizes), kName,
                ": residual must have the shape of the result ", c10::SymIntArrayRef(sizes), ", got ",
                finish.residual->sym_sizes());
    TORCH_CHECK(finish.residual->device() == x.device(), kName, ": residual is on ",
                finish.residual->device(), ", x on ", x.device(), "; move one");
  }
  activation(finish.activation);
}

at::Tensor composed::finished(at::Tensor y, const ConvolutionFinish& finish, at::MemoryFormat format) {
  const at::ScalarType type = y.scalar_type();
  const auto by_channel = [&](const at::Tensor& t) {
    std::vector<c10::SymInt> sizes(static_cast<size_t>(y.dim()) - 1, 1);
    sizes[0] = t.sym_size(0);
    return t.reshape_symint(sizes);
  };
  if (given(finish.scale)) y = y * by_channel(*finish.scale);
  if (given(finish.shift)) y = y + by_channel(*finish.shift);
  if (given(finish.residual)) y = y + *finish.residual;
  return in_order(activation(finish.activation)(y).to(type), format);
}

at::Tensor composed::convolution_with_epilogue(const at::Tensor& x, const at::Tensor& F,
                                               const ConvolutionFinish& finish, const ConvolutionCall& call) {
  check_convolution("convolution_with_epilogue", x, F, call);
  check_finish(finish, x, F, call);
  return finished(dispatch_convolution(x, F, std::nullopt, call), finish, format_of(x));
}

at::Tensor convolution_with_epilogue(const at::Tensor& x, const at::Tensor& F, const Product& product,
                                     const ConvolutionEpilogue& epilogue, const ConvolutionOptions& options) {
  const auto optional = [](const at::Tensor& t) { return t.defined() ? Optional(t) : std::nullopt; };
  return dispatch(x, F,
                  {optional(epilogue.scale), optional(epilogue.shift), optional(epilogue.residual),
                   std::string(epilogue.activation)},
                  convolution_call_of(F, product, options));
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def(
      "convolution_with_epilogue(Tensor x, Tensor F, Tensor? scale, Tensor? shift, Tensor? residual, "
      "str activation, str algebra, Tensor? A, Tensor[]? factors, int[1] stride=1, int[1] padding=0, "
      "int[1] dilation=1, bool transposed=False, int[1] output_padding=0, int groups=1, str way=\"auto\", "
      "str winograd=\"auto\", ScalarType? dtype=None, bool constant=False) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("convolution_with_epilogue", &epilogue_schema<&composed::convolution_with_epilogue>);
}

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("convolution_with_epilogue", &epilogue_schema<&convolution_with_epilogue_cpu>);
}

TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("convolution_with_epilogue", &epilogue_schema<&composed::convolution_with_epilogue>);
}

TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("convolution_with_epilogue", &epilogue_schema<&by_meta>);
}

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("convolution_with_epilogue", &epilogue_schema<&by_autograd>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCPU, m) {
  m.impl("convolution_with_epilogue",
         &epilogue_schema<&by_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCUDA, m) {
  m.impl("convolution_with_epilogue",
         &epilogue_schema<&by_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>);
}

}  // namespace quatrain::ops
