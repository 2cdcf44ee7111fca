#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

/// The order in memory of a batch of signals, images or volumes: channels first or last.
namespace quatrain::ops {

/// The order in which a result lies, of an input x. That of a signal is that of a picture of height 1, as
/// torch has no format of three axes. Channels first where both orders fit, as with one channel or one pixel:
/// strides of axes of one value differ between a trace and a run.
at::MemoryFormat format_of(const at::Tensor& x);
/// t in such an order, copied only where it lies otherwise.
at::Tensor in_order(const at::Tensor& t, at::MemoryFormat format);
at::Tensor empty_in_order(c10::SymIntArrayRef sizes, const at::TensorOptions& options,
                          at::MemoryFormat format);

}  // namespace quatrain::ops
