#include "ops/order.h"

#include <ATen/ops/empty.h>

#include "ops/transforms.h"

namespace quatrain::ops {

namespace {
constexpr int64_t kSignal = 3, kHeight = 2;  // axes of a batch of signals; the axis that makes them pictures
}  // namespace

at::MemoryFormat format_of(const at::Tensor& x) {
  // vmap knows no other.
  if (in_function_transform() || x.is_contiguous()) return at::MemoryFormat::Contiguous;
  return (x.dim() == kSignal ? x.unsqueeze(kHeight) : x).suggest_memory_format();
}

at::Tensor in_order(const at::Tensor& t, at::MemoryFormat format) {
  if (t.dim() != kSignal) return t.contiguous(format);
  return t.unsqueeze(kHeight).contiguous(format).squeeze(kHeight);
}

at::Tensor empty_in_order(c10::SymIntArrayRef sizes, const at::TensorOptions& options,
                          at::MemoryFormat format) {
  if (sizes.size() != kSignal) return at::empty_symint(sizes, options, format);
  return at::empty_symint({sizes[0], sizes[1], 1, sizes[2]}, options, format).squeeze(kHeight);
}

}  // namespace quatrain::ops
