#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>

/// Networks that treat each row alone, a panel of rows at a time.
///
/// A wide hidden layer of all rows is written to memory by one map and read back by the next. That of a few
/// rows stays in the cache between them, and the memory of all others is never needed. It holds where nothing
/// is kept for a backward pass.
namespace quatrain::ops {

/// With fewer rows a map waits for its weights.
constexpr int64_t kFewestRows = 512;

struct PanelSizes {
  int64_t items;     // what a network can be asked for in parts: rows, texts, pictures
  int64_t rows = 1;  // of an item
  int64_t widest;    // values of a row in the widest layer
};

/// The items of a panel, at least one for each thread. All of them where they make less than four panels, in
/// training, where gradients are recorded, and for other x than plain tensors of the CPU; x is what the
/// network reads.
int64_t items_of_panel(const PanelSizes& sizes, const at::Tensor& x, bool training);

/// The result for the items [first, first + count), with count in front of its sizes.
using PanelFunction = c10::function_ref<at::Tensor(int64_t first, int64_t count)>;

/// f(0, items), made of `panel` items at a time.
at::Tensor by_panels(int64_t items, int64_t panel, PanelFunction f);

}  // namespace quatrain::ops
