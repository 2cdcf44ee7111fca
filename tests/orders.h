#pragma once

#include <ATen/core/Tensor.h>

/// The orders in memory in which batches of signals, images and volumes may lie.
namespace quatrain::test {

/// t with its channels (axis 1) last in memory, or first.
inline at::Tensor laid(const at::Tensor& t, bool last) {
  return last ? t.movedim(1, -1).contiguous().movedim(-1, 1) : t.contiguous();
}
inline bool lies(const at::Tensor& t, bool last) {
  return (last ? t.movedim(1, -1) : t).is_contiguous();
}

}  // namespace quatrain::test
