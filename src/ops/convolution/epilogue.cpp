// What becomes of a convolution's result on a CPU after it was multiplied: in one pass where the kernels know
// how.

#include "ops/convolution/epilogue.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include "ops/engine/activation.h"
#include "ops/linear/schema.h"
#include "quatrain/layer_ops.h"

namespace quatrain::ops {

namespace {

at::Tensor plain(const Optional& t) {
  return given(t) ? t->to(at::kFloat).contiguous() : at::Tensor();
}

/// Pixels are rows of their channels.
bool lies_by_pixels(const at::Tensor& y) {
  return y.scalar_type() == at::kFloat && y.movedim(1, -1).is_contiguous();
}

void finish_pixels(float* y, int64_t pixels, int64_t channels, const engine::Epilogue& epilogue) {
  constexpr int64_t kValues = 1 << 14;  // that a thread should have to do
  const auto* residual = static_cast<const float*>(epilogue.residual.data);
  at::parallel_for(0, pixels, std::max<int64_t>(1, kValues / channels), [&](int64_t begin, int64_t end) {
    engine::finish_columns(kernels::cpu::active(), epilogue, 0, end - begin, channels, y + begin * channels,
                           channels, residual ? residual + begin * channels : nullptr, channels);
  });
}

}  // namespace

KernelEpilogue::KernelEpilogue(const ConvolutionFinish& finish)
    : scale_(plain(finish.scale)),
      shift_(plain(finish.shift)),
      activation_(engine::kernel_activation(finish.activation)) {
  if (given(finish.residual)) residual_ = finish.residual->to(at::kFloat).movedim(1, -1).contiguous();
}

engine::Epilogue KernelEpilogue::epilogue() const {
  engine::Epilogue epilogue;
  epilogue.scale = engine::values_or_null(scale_), epilogue.bias = engine::values_or_null(shift_);
  epilogue.residual.data = const_cast<float*>(engine::values_or_null(residual_));
  epilogue.activation = activation_.value_or(kernels::cpu::Activation::identity);
  return epilogue;
}

at::Tensor finished_on_cpu(at::Tensor y, const ConvolutionFinish& finish, at::MemoryFormat format) {
  if (!lies_by_pixels(y)) return composed::finished(y, finish, format);
  const KernelEpilogue kernel(finish);
  const engine::Epilogue epilogue = kernel.epilogue();
  if (y.numel() > 0 && (epilogue.bias || !epilogue.only_bias()))
    finish_pixels(y.mutable_data_ptr<float>(), y.numel() / y.size(1), y.size(1), epilogue);
  return kernel.knows_activation() ? y : activation(finish.activation)(y);
}

}  // namespace quatrain::ops
