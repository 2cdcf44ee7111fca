#include "nn/head_order.h"

#include <torch/types.h>

namespace quatrain::nn {
namespace {

// In how many components a head lies.
int64_t cuts(const MultiheadAttentionOptions& options) {
  return options.split() == HeadSplit::inside ? options.algebra().n : 1;
}

// The places of (part, head, channel of the head), one after the other.
at::Tensor places(const MultiheadAttentionOptions& options, int64_t parts) {
  const int64_t n = cuts(options);
  const int64_t heads = options.heads(), width = options.width();
  return torch::arange(parts * width)
      .view({n, parts, heads, width / heads / n})
      .permute({1, 2, 0, 3})
      .reshape({parts * width});
}

}  // namespace

at::Tensor head_order(const MultiheadAttentionOptions& from, const MultiheadAttentionOptions& to,
                      int64_t parts) {
  if (cuts(from) == cuts(to)) return {};
  const at::Tensor source = places(from, parts);
  return torch::empty_like(source).scatter_(0, places(to, parts), source);
}

}  // namespace quatrain::nn
