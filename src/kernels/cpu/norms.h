#pragma once

// Norms of rows, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

/// What `of` makes of all of a row's vectors, summed.
template <class Of>
inline float sum_over(const float* x, int64_t count, const Of& of) {
  Vec total{};
  int64_t q = 0;
  for (; q + kLanes <= count; q += kLanes) total += of(load(x + q));
  float result = sum(total);
  if (q < count) {
    const Vec last = of(load_part(x + q, count - q));
    for (int64_t i = 0; i < count - q; ++i) result += last[i];
  }
  return result;
}

void layer_norm(const float* x, float* y, int64_t parts, int64_t width, const float* weight,
                const float* bias, float eps) {
  const float share = 1.0f / static_cast<float>(width);
  for (int64_t part = 0; part < parts; ++part, x += width, y += width, weight += width, bias += width) {
    const float mean = share * sum_over(x, width, [](Vec v) { return v; });
    const float variance = share * sum_over(x, width, [mean](Vec v) { return (v - mean) * (v - mean); });
    const float scale = 1.0f / __builtin_sqrtf(variance + eps);
    int64_t q = 0;
    for (; q + kLanes <= width; q += kLanes)
      store(y + q, (load(x + q) - mean) * scale * load(weight + q) + load(bias + q));
    if (const int64_t rest = width - q; rest > 0)
      store_part(
          y + q,
          (load_part(x + q, rest) - mean) * scale * load_part(weight + q, rest) + load_part(bias + q, rest),
          rest);
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
