#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>

/// Networks that treat each row alone, a panel of rows at a time.
///
/// A wide hidden layer of all rows is written to memory by one map and read back by the next. That of a few
/// rows stays in the cache between them, and the memory of all others is never needed. It holds where nothing
/// is kept for a backward pass.
namespace quatrain::nn {

struct PanelSizes {
  int64_t items;     // what f can be asked for in parts: rows, or texts
  int64_t rows = 1;  // of an item
  int64_t widest;    // values of a row in the widest layer
};

/// The result for the items [first, first + count), with count in front of its sizes.
using PanelFunction = c10::function_ref<at::Tensor(int64_t first, int64_t count)>;

/// f(0, items), made panel by panel where that is faster and says the same: in eval mode without gradients,
/// for plain tensors of the CPU. x: a tensor that f reads, of the type in which it computes.
at::Tensor by_panels(const PanelSizes& sizes, const at::Tensor& x, bool training, PanelFunction f);

}  // namespace quatrain::nn
