#pragma once

// What a call of `combine` is given, and how it asks for rows before their turn, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

// Where other components lie between its rows, a matrix is most likely a tensor's, which may come from
// memory, in more streams than a processor foresees: it is told of them this many rows ahead. Others are most
// likely a panel that is in the cache. Only tiles of one row and pairs ask, and only for the inputs that a
// group shares: most rows of a tensor are of these. Short rows gain less than that costs.
constexpr int kAhead = 2;
constexpr int64_t kLongRow = 64;

/// Whose next rows are asked for before their turn.
enum class Ahead { none, in, out };

inline Ahead ahead_of(int64_t in_row, int64_t out_row, int64_t rows, int64_t cols) {
  if (rows <= kAhead || cols < kLongRow) return Ahead::none;
  return in_row >= 2 * cols ? Ahead::in : out_row >= 2 * cols ? Ahead::out : Ahead::none;
}

/// Has `vectors` vectors brought into the cache.
template <int vectors, class T>
[[gnu::always_inline]] inline void ask_for(const T* p) {
#pragma GCC unroll 8
  for (int i = 0; i * kInLine<T> < vectors * kLanes; ++i) __builtin_prefetch(p + i * kInLine<T>);
}

/// A call of `combine`.
template <class In, class Out>
struct Mixed {
  const Mix& mix;
  const In* const* in;
  int64_t in_row;
  Out* const* out;
  int64_t out_row;
  const float* const* bias;
  Store how;
  Ahead ahead;

  /// Neither a bias nor what was there counts.
  bool fresh() const { return !bias && how == Store::set; }
};

}  // namespace

}  // namespace quatrain::kernels::cpu
