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

/// Scores of a head's key for so many of its queries, from sums that stay in registers.
template <int maps>
inline void score_key(const Attended& of, const float* q, const float* key, float* score, int64_t score_row) {
  Vec total[maps] = {};
  const int64_t component = of.heads * of.m, map = of.n * component;
  for (int32_t j = 0; j < of.n; ++j, key += of.keys.component, q += component) {
    int64_t v = 0;
    for (; v + kLanes <= of.m; v += kLanes) {
      const Vec k = load(key + v);
#pragma GCC unroll 4
      for (int c = 0; c < maps; ++c) total[c] += load(q + c * map + v) * k;
    }
    if (v < of.m) {
      const Vec k = load_part(key + v, of.m - v);
#pragma GCC unroll 4
      for (int c = 0; c < maps; ++c) total[c] += load_part(q + c * map + v, of.m - v) * k;
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < maps; ++c) score[c * score_row] = sum(total[c]);
}

/// Fetches what all heads have at a place.
template <int locality>
inline void fetch(const Attended& of, const Attended::Places& places, int64_t s) {
  const float* component = places.at[s];
  for (int32_t j = 0; j < of.n; ++j, component += places.component)
    for (int64_t h = 0; h < of.heads; ++h)
      for (int64_t v = 0; v < of.m; v += kInLine<float>)
        __builtin_prefetch(component + h * places.head + v, 0, locality);
}

/// A vector of a head's values, or its first `part` ones: where it lies at each place, what it is weighted by
/// and where its sum goes.
struct ValueSlice {
  int64_t from;
  const float* weights;
  float* to;
  int64_t part;
};

/// Sums of so many slices over all places, each place after the one before it.
template <int count, bool whole>
inline void sum_values(const Attended& of, const ValueSlice* slice) {
  Vec total[count] = {};
  for (int64_t s = 0; s < of.count; ++s) {
    const float* const place = of.values.at[s];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      const float* const value = place + slice[i].from;
      total[i] += slice[i].weights[s] * (whole ? load(value) : load_part(value, slice[i].part));
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i)
    whole ? store(slice[i].to, total[i]) : store_part(slice[i].to, total[i], slice[i].part);
}

void attend(const Attended& of, const float* q, float* weights, int64_t weights_row, float* y,
            int64_t y_component) {
  // Places lie far from each other, where the machine does not foresee them.
  constexpr int64_t kAhead = 4;
  for (int64_t s = 0; s < of.count; ++s) {
    if (s + kAhead < of.count) fetch<3>(of, of.keys, s + kAhead);
    fetch<2>(of, of.values, s);
    for (int64_t h = 0; h < of.heads; ++h) {
      const float *const of_head = q + h * of.m, *const key = of.keys.at[s] + h * of.keys.head;
      float* const scores = weights + h * of.maps * weights_row + s;
      const int64_t map = of.n * of.heads * of.m;
      int32_t c = 0;
      for (; c + 4 <= of.maps; c += 4)
        score_key<4>(of, of_head + c * map, key, scores + c * weights_row, weights_row);
      for (; c < of.maps; ++c)
        score_key<1>(of, of_head + c * map, key, scores + c * weights_row, weights_row);
    }
  }
  const int64_t filled = (of.count + kLanes - 1) / kLanes * kLanes, rows = of.heads * of.maps;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t s = of.count; s < filled; ++s) weights[row * weights_row + s] = -__builtin_inff();
  softmax(weights, weights_row, rows, filled, nullptr, 0);

  constexpr int kTogether = 8;  // sums under way hide each other's latency
  ValueSlice slice[kTogether];
  int together = 0;
  bool whole = true;
  const auto sum_all = [&] {
    if (together == kTogether && whole)
      sum_values<kTogether, true>(of, slice);
    else
      for (int i = 0; i < together; ++i)
        slice[i].part < kLanes ? sum_values<1, false>(of, slice + i) : sum_values<1, true>(of, slice + i);
    together = 0, whole = true;
  };
  for (int32_t c = 0; c < of.n; ++c)
    for (int64_t h = 0; h < of.heads; ++h)
      for (int64_t v = 0; v < of.m; v += kLanes) {
        const int64_t part = of.m - v < kLanes ? of.m - v : kLanes;
        slice[together++] = {c * of.values.component + h * of.values.head + v,
                             weights + (h * of.maps + (of.maps == 1 ? 0 : c)) * weights_row,
                             y + c * y_component + h * of.m + v, part};
        whole = whole && part == kLanes;
        if (together == kTogether) sum_all();
      }
  sum_all();
}

}  // namespace

}  // namespace quatrain::kernels::cpu
