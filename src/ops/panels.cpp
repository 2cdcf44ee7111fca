#include "ops/panels.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

// What a thread's hidden values may take, unless kFewestRows need more: the second-level cache of most
// processors.
constexpr int64_t kCacheBytes = int64_t{1} << 20;
// Fewer panels gain less than the calls cost.
constexpr int64_t kFewestPanels = 4;

}  // namespace

int64_t items_of_panel(const PanelSizes& sizes, const at::Tensor& x, bool training) {
  if (training || at::GradMode::is_enabled() || in_function_transform() || !is_plain(x)) return sizes.items;
  const int64_t cached = kCacheBytes / std::max<int64_t>(1, sizes.widest * x.element_size());
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t items =
      threads * std::max<int64_t>(1, std::max(kFewestRows, cached) / std::max<int64_t>(1, sizes.rows));
  if (sizes.items < kFewestPanels * items) return sizes.items;
  return at::divup(sizes.items, at::divup(sizes.items, items));  // of one size
}

at::Tensor by_panels(int64_t items, int64_t panel, PanelFunction f) {
  if (items <= panel) return f(0, items);
  at::Tensor all;
  for (int64_t first = 0; first < items; first += panel) {
    const int64_t count = std::min(panel, items - first);
    const at::Tensor part = f(first, count);
    if (!all.defined()) {
      std::vector<int64_t> shape = part.sizes().vec();
      shape[0] = items;
      all = at::empty(shape, part.options().memory_format(part.suggest_memory_format()));
    }
    all.narrow(0, first, count).copy_(part);
  }
  return all;
}

}  // namespace quatrain::ops
