#include "quatrain/nn/layout.h"

#include <torch/torch.h>

#include "nn/check.h"

namespace quatrain::nn {

namespace {

/// (..., first second) -> (..., second first).
at::Tensor swap_parts(const char* function, const at::Tensor& x, int64_t n, bool components_first) {
  TORCH_CHECK(n >= 1 && x.dim() >= 1 && x.size(-1) % n == 0, function,
              ": the last axis must be divisible by n = ", n, ", got ", x.sizes());
  const int64_t m = x.size(-1) / n;
  const at::Tensor parts = components_first ? x.unflatten(-1, {n, m}) : x.unflatten(-1, {m, n});
  return parts.transpose(-1, -2).flatten(-2);
}

}  // namespace

at::Tensor to_concatenated(const at::Tensor& interleaved, int64_t n) {
  return swap_parts("to_concatenated", interleaved, n, false);
}

at::Tensor to_interleaved(const at::Tensor& concatenated, int64_t n) {
  return swap_parts("to_interleaved", concatenated, n, true);
}

}  // namespace quatrain::nn
