#include "quatrain/nn/layout.h"

#include <torch/types.h>

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

PhmBlocks to_phm_blocks(const at::Tensor& A, const at::Tensor& S) {
  TORCH_CHECK(A.dim() == 3 && A.size(0) == A.size(1) && A.size(0) == A.size(2) && S.dim() == 3 &&
                  S.size(0) == A.size(0),
              "to_phm_blocks: A must be (n, n, n) and S (n, k/n, d/n), got ", A.sizes(), " and ", S.sizes());
  return {A.permute({2, 1, 0}).contiguous(), S.permute({2, 0, 1}).contiguous()};
}

std::tuple<at::Tensor, at::Tensor> from_phm_blocks(const at::Tensor& B, const at::Tensor& T) {
  TORCH_CHECK(B.dim() == 3 && B.size(0) == B.size(1) && B.size(0) == B.size(2) && T.dim() == 3 &&
                  T.size(1) == B.size(0),
              "from_phm_blocks: B must be (n, n, n) and T (d/n, n, k/n), got ", B.sizes(), " and ",
              T.sizes());
  return {B.permute({2, 1, 0}).contiguous(), T.permute({1, 2, 0}).contiguous()};
}

}  // namespace quatrain::nn
