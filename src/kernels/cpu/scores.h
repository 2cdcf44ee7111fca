#pragma once

// What attention does with its scores, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

/// e^x for x <= 0 within 2 units of the last place, by a polynomial on [-ln 2 / 2, ln 2 / 2]; 0 below
/// -87, where e^x nears the smallest normal number. A NaN stays one.
inline Vec exponential(Vec x) {
  const Bits small = reinterpret_cast<Bits>(x < -87.0f);
  const Vec k = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // to the nearest integer
  const Vec r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  Vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const Vec power = reinterpret_cast<Vec>((__builtin_convertvector(k, Lanes) + 127) << 23);
  return reinterpret_cast<Vec>(reinterpret_cast<Bits>(p * power) & ~small);
}

void softmax(float* x, int64_t x_row, int64_t rows, int64_t cols, const float* bias, int64_t bias_row) {
  const auto larger = [](Vec a, Vec b) { return a > b ? a : b; };
  for (int64_t row = 0; row < rows; ++row, x += x_row) {
    Vec top = Vec{} - __builtin_inff();
    for (int64_t q = 0; q < cols; q += kLanes) {
      Vec v = load(x + q);
      if (bias) store(x + q, v += load(bias + q));
      top = larger(v, top);
    }
    top = joined(top, larger);
    Vec total{};
    for (int64_t q = 0; q < cols; q += kLanes) {
      const Vec v = exponential(load(x + q) - top);
      store(x + q, v);
      total += v;
    }
    const Vec factor = 1.0f / joined(total, [](Vec a, Vec b) { return a + b; });
    for (int64_t q = 0; q < cols; q += kLanes) store(x + q, load(x + q) * factor);
    if (bias) bias += bias_row;
  }
}

/// A row's vector from column q on; minus infinity from column `cols` on.
inline Vec load_row(const float* x, int64_t q, int64_t cols) {
  if (q + kLanes <= cols) return load(x + q);
  float padded[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) padded[i] = q + i < cols ? x[q + i] : -__builtin_inff();
  return load(padded);
}

float exp_sum(const float* x, int64_t cols, float* tops) {
  const auto larger = [](Vec a, Vec b) { return a > b ? a : b; };
  Vec top = Vec{} - __builtin_inff();
  for (int64_t first = 0; first < cols; first += kTopBlock) {
    const int64_t end = first + kTopBlock < cols ? first + kTopBlock : cols;
    Vec of_block = Vec{} - __builtin_inff();
    for (int64_t q = first; q < end; q += kLanes) of_block = larger(load_row(x, q, cols), of_block);
    of_block = joined(of_block, larger);
    top = larger(of_block, top);
    *tops++ = of_block[0];
  }
  Vec total{};
  for (int64_t q = 0; q < cols; q += kLanes) total += exponential(load_row(x, q, cols) - top);
  return sum(total);
}

void softmax_backward(const float* y, int64_t y_row, float* dy, int64_t dy_row, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, y += y_row, dy += dy_row) {
    Vec total{};
    for (int64_t q = 0; q < cols; q += kLanes) total += load(y + q) * load(dy + q);
    const Vec mean = joined(total, [](Vec a, Vec b) { return a + b; });
    for (int64_t q = 0; q < cols; q += kLanes) store(dy + q, load(y + q) * (load(dy + q) - mean));
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
