#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "quatrain/api.h"

namespace quatrain::nn {

/// Interleaved to concatenated components: (..., n m) with [r0 i0 j0 k0 r1 ...] becomes [r0 r1 .. | i0 i1 ..
/// | j.. | k..], the layout of everything else in Quatrain. n must divide the last axis.
QUATRAIN_API at::Tensor to_concatenated(const at::Tensor& interleaved, int64_t n);

/// Concatenated to interleaved components: the inverse of to_concatenated.
QUATRAIN_API at::Tensor to_interleaved(const at::Tensor& concatenated, int64_t n);

/// PHM's layer as its appendix A writes it: the same map, its numbers in another order,
///   B_b[a, i] = A_i[a, b],  T_q[i, p] = S_i[p, q],
/// and column (b, q) of H is B_b T_q, row after row (A.1, A.2).
struct QUATRAIN_API PhmBlocks {
  at::Tensor B;  ///< (n, n, n), indexed [b, a, i]
  at::Tensor T;  ///< (d/n, n, k/n), indexed [q, i, p]
};
/// A (n, n, n) and S (n, k/n, d/n) of a layer as blocks.
QUATRAIN_API PhmBlocks to_phm_blocks(const at::Tensor& A, const at::Tensor& S);
/// The inverse: A and S of blocks.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor> from_phm_blocks(const at::Tensor& B, const at::Tensor& T);

}  // namespace quatrain::nn
