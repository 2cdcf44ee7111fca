#pragma once

// What dropout drops, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

/// The finaliser of splitmix64.
inline uint64_t scattered(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A row has a key of 64 bits, and its columns are scattered under that key: no value hangs on the order in
/// which they are asked for, on threads or on the instruction set.
template <class T>
void drop(const T* x, int64_t x_row, T* y, int64_t y_row, int64_t rows, int64_t cols, const Drop& drop) {
  for (int64_t row = 0; row < rows; ++row, x += x_row, y += y_row) {
    const uint64_t number = drop.row + static_cast<uint64_t>(row);
    const uint64_t key = scattered(scattered(drop.seed + 0x9e3779b97f4a7c15u) + number * 0x9e3779b97f4a7c15u);
    const uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
    const auto kept = [&](Vec value, int64_t q) {
      Bits b = (reinterpret_cast<Bits>(lane_numbers()) + static_cast<uint32_t>(q)) * 0x9e3779b9u + low;
      b = (b ^ (b >> 16)) * 0x21f0aaadu + high;
      b = (b ^ (b >> 15)) * 0x735a2d97u;
      b ^= b >> 15;
      const Bits keep = reinterpret_cast<Bits>(b >= drop.threshold);
      return reinterpret_cast<Vec>(reinterpret_cast<Bits>(value * drop.scale) & keep);
    };
    int64_t q = 0;
    for (; q + kLanes <= cols; q += kLanes) store(y + q, kept(load(x + q), q));
    if (q < cols) store_part(y + q, kept(load_part(x + q, cols - q), q), cols - q);
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
