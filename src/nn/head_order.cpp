#include "nn/head_order.h"

#include <torch/torch.h>

namespace quatrain::nn {
namespace {

// The places of (part, head, channel of the head), one after the other.
at::Tensor places(const MultiheadAttentionOptions& options, int64_t parts) {
  const int64_t n = options.split() == HeadSplit::inside ? options.algebra().n : 1;
  const int64_t heads = options.heads(), width = options.width();
  return torch::arange(parts * width)
      .view({n, parts, heads, width / heads / n})
      .permute({1, 2, 0, 3})
      .reshape({parts * width});
}

}  // namespace

at::Tensor head_order(const MultiheadAttentionOptions& from, const MultiheadAttentionOptions& to,
                      int64_t parts) {
  const at::Tensor source = places(from, parts);
  return torch::empty_like(source).scatter_(0, places(to, parts), source);
}

}  // namespace quatrain::nn
