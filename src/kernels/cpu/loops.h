#pragma once

// The kernels, in GCC's vector extension: included once by each instruction set's file, which is compiled
// with its own flags. Nothing here may have external linkage, and no header with templates may be included:
// the linker would keep one copy of their functions, perhaps one that this machine cannot run.
//
// All are bound by loads and stores: every input comes from the first or second level cache once for each
// output that uses it, sums stay in registers, and a column tail goes through a padded vector.

#include "kernels/cpu/attend.h"
#include "kernels/cpu/cells.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/epilogues.h"
#include "kernels/cpu/mixed_products.h"
#include "kernels/cpu/mixture_call.h"
#include "kernels/cpu/mixtures.h"
#include "kernels/cpu/norms.h"
#include "kernels/cpu/pairs.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/scores.h"
#include "kernels/cpu/streams.h"
#include "kernels/cpu/winograd.h"

namespace quatrain::kernels::cpu {

namespace {

/// Two rows meet in the lanes of one vector.
void pair(const float* in, int64_t in_row, int64_t rows, int64_t cols, bf16* out, int64_t out_cols) {
  for (int64_t row = 0; row < rows; row += 2) {
    const float* x = in + row * in_row;
    bf16* y = out + row * out_cols;
    for (int64_t q = 0; q < out_cols; q += kLanes) {
      const int64_t count = cols - q;
      const auto get = [count](const float* p) {
        return count >= kLanes ? load(p) : count > 0 ? load_part(p, count) : Vec{};
      };
      const Vec low = get(x + q), high = row + 1 < rows ? get(x + in_row + q) : Vec{};
      *reinterpret_cast<BitsAtAnyAddress*>(y + 2 * q) = rounded(low) | (rounded(high) << 16);
    }
  }
}

template <class T>
void dots(const T* const* a, int32_t count_a, int64_t a_row, const float* const* b, int32_t count_b,
          int64_t b_row, int64_t rows, int64_t cols, float* sums) {
  constexpr int kTile = 4;
  for (int32_t i = 0; i < count_a; i += kTile)
    for (int32_t r = 0; r < count_b; r += kTile) {
      const int height = count_a - i < kTile ? count_a - i : kTile;
      const int width = count_b - r < kTile ? count_b - r : kTile;
      Vec total[kTile][kTile] = {};
      // A tile that hangs over the edge repeats its last operand; those sums are not used.
      const T* left[kTile];
      const float* right[kTile];
      for (int t = 0; t < kTile; ++t) {
        left[t] = a[i + (t < height ? t : height - 1)];
        right[t] = b[r + (t < width ? t : width - 1)];
      }
      const auto add = [&](int64_t row, int64_t q, const auto& get) {
        Vec x[kTile];
#pragma GCC unroll 4
        for (int t = 0; t < kTile; ++t) x[t] = get(left[t] + row * a_row + q);
#pragma GCC unroll 4
        for (int u = 0; u < kTile; ++u) {
          const Vec y = get(right[u] + row * b_row + q);
#pragma GCC unroll 4
          for (int t = 0; t < kTile; ++t) total[t][u] += x[t] * y;
        }
      };
      for (int64_t row = 0; row < rows; ++row) {
        int64_t q = 0;
        for (; q + kLanes <= cols; q += kLanes) add(row, q, [](const auto* p) { return load(p); });
        if (q < cols) add(row, q, [count = cols - q](const auto* p) { return load_part(p, count); });
      }
      for (int t = 0; t < height; ++t)
        for (int u = 0; u < width; ++u) sums[(i + t) * count_b + r + u] += sum(total[t][u]);
    }
}

constexpr Table make_table(const char* name) {
  return {name,
          &combine<float, float>,
          &combine<bf16, float>,
          &combine<float, bf16>,
          &combine<bf16, bf16>,
          &transpose<float, float>,
          &transpose<bf16, float>,
          &transpose<float, bf16>,
          &transpose<bf16, bf16>,
          &multiply,
          &pair,
          &products,
          &mixed_product,
          &dots<float>,
          &dots<bf16>,
          &stream<float>,
          &stream<bf16>,
          &softmax,
          &exp_sum,
          &softmax_backward,
          &drop<float>,
          &drop<bf16>,
          &attend,
          &finish,
          &winograd,
          &cell_step,
          &cell_step_back,
          &layer_norm};
}

}  // namespace

}  // namespace quatrain::kernels::cpu
