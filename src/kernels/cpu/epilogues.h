#pragma once

// What becomes of a product's results while they are in the first level cache, for loops.h alone.

#include "kernels/cpu/scores.h"
#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

inline Vec magnitude(Vec x) {
  return reinterpret_cast<Vec>(reinterpret_cast<Bits>(x) & 0x7fffffffu);
}

/// 1 / (1 + e^-x), by the exponential of what is not positive.
inline Vec sigmoid(Vec x) {
  const Vec e = exponential(-magnitude(x)), one = Vec{} + 1.0f;
  return (x < 0 ? e : one) / (1.0f + e);
}

/// An odd polynomial near zero, where the other form would cancel.
inline Vec hyperbolic_tangent(Vec x) {
  const Vec a = magnitude(x), e = exponential(-2.0f * a), far = (1.0f - e) / (1.0f + e), z = x * x;
  Vec p = -5.70498872745e-3f * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const Vec near = p * z * x + x;
  return a < 0.625f ? near : (x < 0 ? -far : far);
}

template <Activation activation>
inline Vec activated(Vec y) {
  if constexpr (activation == Activation::relu) return y < 0 ? Vec{} : y;  // a NaN stays one
  if constexpr (activation == Activation::tanh) return hyperbolic_tangent(y);
  if constexpr (activation == Activation::sigmoid) return sigmoid(y);
  return y;
}

template <Activation activation>
void finish_as(float* y, int64_t y_row, int64_t rows, int64_t cols, const float* scale, const float* bias,
               const float* residual, int64_t residual_row) {
  for (int64_t row = 0; row < rows; ++row, y += y_row) {
    const float* const rest = residual ? residual + row * residual_row : nullptr;
    for (int64_t q = 0; q < cols; q += kLanes) {
      const int64_t count = cols - q;
      const auto get = [q, count](const float* p) {
        return count < kLanes ? load_part(p + q, count) : load(p + q);
      };
      Vec v = get(y);
      if (scale) v *= get(scale);
      if (bias) v += get(bias);
      if (rest) v += get(rest);
      v = activated<activation>(v);
      count < kLanes ? store_part(y + q, v, count) : store(y + q, v);
    }
  }
}

void finish(float* y, int64_t y_row, int64_t rows, int64_t cols, const float* scale, const float* bias,
            const float* residual, int64_t residual_row, Activation activation) {
  switch (activation) {
    case Activation::identity:
      return finish_as<Activation::identity>(y, y_row, rows, cols, scale, bias, residual, residual_row);
    case Activation::relu:
      return finish_as<Activation::relu>(y, y_row, rows, cols, scale, bias, residual, residual_row);
    case Activation::tanh:
      return finish_as<Activation::tanh>(y, y_row, rows, cols, scale, bias, residual, residual_row);
    case Activation::sigmoid:
      return finish_as<Activation::sigmoid>(y, y_row, rows, cols, scale, bias, residual, residual_row);
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
