#pragma once

#include "ops/engine/engine.h"

namespace quatrain::ops::engine {

/// The materialised way's two transforms, each in one pass over memory.
///
/// H = sum_i A_i (x) S_i, (n m) x (n p) row-major, from n matrices S of m x p.
void expand(const Mixing& blocks, int64_t n, int64_t m, int64_t p, const float* S, float* H);

/// dS_i = sum_ab A[i, a, b] dH_ab, where dH_ab is the block (a, b) of dH; and, where `dA` is not null,
/// dA[i, a, b] = <S_i, dH_ab>, n^3 values.
void contract(const Mixing& components, int64_t n, int64_t m, int64_t p, const float* dH, float* dS,
              const float* S, float* dA);

}  // namespace quatrain::ops::engine
