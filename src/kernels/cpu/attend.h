#pragma once

// A row's attention over places that lie anywhere, for loops.h alone.

#include "kernels/cpu/scores.h"

namespace quatrain::kernels::cpu {

namespace {

/// Vectors that lie at equal distances: one pointer for four of them, and the distances of the others, one,
/// 2 * one and three, which processors add as they load. A pointer for each would fill the registers.
struct Apart {
  int64_t one, three;
  explicit Apart(int64_t distance) : one(distance), three(3 * distance) {}
  int64_t operator[](int i) const {
    const int64_t distances[] = {0, one, 2 * one, three};
    return distances[i % 4];
  }
};

constexpr int kScores = 4;  // under way at once, or twice as many

/// The scores of `count` queries and their keys, each so far from the one before; from sums that stay in
/// registers. No bit of one depends on how many there are.
template <int count>
inline void score_keys(const Attended& of, const float* q, int64_t q_apart, const float* key,
                       int64_t key_apart, float* score, int64_t score_apart) {
  constexpr int kFours = (count + 3) / 4;
  const Apart q_at(q_apart), key_at(key_apart);
  Vec total[count] = {};
  const auto add = [&](int64_t v, const auto& get) __attribute__((always_inline)) {
    const float *queries[kFours], *keys[kFours];
#pragma GCC unroll 2
    for (int i = 0; i < kFours; ++i)
      queries[i] = q + 4 * i * q_apart + v, keys[i] = key + 4 * i * key_apart + v;
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) total[i] += get(queries[i / 4] + q_at[i]) * get(keys[i / 4] + key_at[i]);
  };
  for (int32_t j = 0; j < of.n; ++j, key += of.keys.component, q += of.heads * of.m) {
    int64_t v = 0;
    for (; v + kLanes <= of.m; v += kLanes) add(v, [](const float* p) { return load(p); });
    if (v < of.m) add(v, [part = of.m - v](const float* p) { return load_part(p, part); });
  }
  float found[kLanes];
  store(found, sums<count>(total));
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) score[i * score_apart] = found[i];
}

/// The same of any number.
inline void score_all(const Attended& of, int64_t count, const float* q, int64_t q_apart, const float* key,
                      int64_t key_apart, float* score, int64_t score_apart) {
  int64_t i = 0;
  const auto some = [&]<int some>() {
    for (; i + some <= count; i += some)
      score_keys<some>(of, q + i * q_apart, q_apart, key + i * key_apart, key_apart, score + i * score_apart,
                       score_apart);
  };
  if constexpr (kLanes >= 2 * kScores) some.template operator()<2 * kScores>();
  some.template operator()<kScores>();
  some.template operator()<1>();
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

/// Sums of so many slices over all places, each place after the one before it. Runs of `alike` slices have
/// one row of weights.
template <int count, int alike, bool whole>
inline void sum_values(const Attended& of, const ValueSlice* slice) {
  Vec total[count] = {};
  int64_t from[count];
  const float* weights[count / alike];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) from[i] = slice[i].from, weights[i / alike] = slice[i].weights;
  for (int64_t s = 0; s < of.count; ++s) {
    const float* const place = of.values.at[s];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i)
      total[i] +=
          weights[i / alike][s] * (whole ? load(place + from[i]) : load_part(place + from[i], slice[i].part));
  }
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i)
    whole ? store(slice[i].to, total[i]) : store_part(slice[i].to, total[i], slice[i].part);
}

/// Slices are summed as many at a time as hide each other's latency.
class ValueSums {
 public:
  explicit ValueSums(const Attended& of) : of_(of) {}

  void add(const ValueSlice& slice) {
    whole_ = whole_ && slice.part == kLanes;
    alike_ = alike_ && (count_ % kAlike == 0 || slice_[count_ - 1].weights == slice.weights);
    slice_[count_++] = slice;
    if (count_ == kTogether) finish();
  }

  void finish() {
    if (count_ == kTogether && whole_ && alike_)
      sum_values<kTogether, kAlike, true>(of_, slice_);
    else if (count_ == kTogether && whole_)
      sum_values<kTogether, 1, true>(of_, slice_);
    else
      for (int i = 0; i < count_; ++i)
        slice_[i].part < kLanes ? sum_values<1, 1, false>(of_, slice_ + i)
                                : sum_values<1, 1, true>(of_, slice_ + i);
    count_ = 0, whole_ = alike_ = true;
  }

 private:
  static constexpr int kTogether = 8, kAlike = 4;
  const Attended& of_;
  ValueSlice slice_[kTogether];
  int count_ = 0;
  bool whole_ = true, alike_ = true;
};

void attend(const Attended& of, const float* q, float* weights, int64_t weights_row, float* y,
            int64_t y_component) {
  // Places lie far from each other, where the machine does not foresee them.
  constexpr int64_t kAhead = 4;
  for (int64_t s = 0; s < of.count; ++s) {
    if (s + kAhead < of.count) fetch<3>(of, of.keys, s + kAhead);
    fetch<2>(of, of.values, s);
    const float* const key = of.keys.at[s];
    float* const scores = weights + s;
    if (of.maps == 1)
      score_all(of, of.heads, q, of.m, key, of.keys.head, scores, weights_row);
    else
      for (int64_t h = 0; h < of.heads; ++h)
        score_all(of, of.maps, q + h * of.m, of.n * of.heads * of.m, key + h * of.keys.head, 0,
                  scores + h * of.maps * weights_row, weights_row);
  }
  const int64_t filled = (of.count + kLanes - 1) / kLanes * kLanes, rows = of.heads * of.maps;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t s = of.count; s < filled; ++s) weights[row * weights_row + s] = -__builtin_inff();
  softmax(weights, weights_row, rows, filled, nullptr, 0);

  ValueSums sums(of);
  for (int64_t h = 0; h < of.heads; ++h)
    for (int32_t c = 0; c < of.n; ++c)
      for (int64_t v = 0; v < of.m; v += kLanes)
        sums.add({c * of.values.component + h * of.values.head + v,
                  weights + (h * of.maps + (of.maps == 1 ? 0 : c)) * weights_row,
                  y + c * y_component + h * of.m + v, of.m - v < kLanes ? of.m - v : kLanes});
  sums.finish();
}

}  // namespace

}  // namespace quatrain::kernels::cpu
