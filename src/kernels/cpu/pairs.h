#pragma once

// Four outputs of a mixture that are made of sums and differences of pairs (kernels.h: MixGroup), for loops.h
// alone.

#include "kernels/cpu/mixture_call.h"

namespace quatrain::kernels::cpu {

namespace {

/// a + b and a - b, or the other way round where `sign` is -1.
[[gnu::always_inline]] inline void sum_and_difference(Vec a, Vec b, Vec sign, Vec (&to)[2]) {
  to[0] = a + sign * b, to[1] = a - sign * b;
}
inline Vec sign_of(bool opposite) {
  return Vec{} + (opposite ? -1.F : 1.F);
}

/// Rows from `row` to `end` of a group's four outputs. Their first pair has no coefficients but 1 and -1 if
/// `ones`, where a sum of nothing but -0 may stay -0. Beyond the four inputs that they share they have none,
/// one, or any number. What does not change from vector to vector stays in registers, as far as there are
/// enough.
template <bool ones, More more, bool fresh, class In, class Out>
[[gnu::noinline]] void combine_pairs(const Mixed<In, Out>& call, const MixGroup& group, int64_t row,
                                     int64_t end, int64_t cols) {
  constexpr int kPaired = 4;
  const Mix& mix = call.mix;
  const float* const shared = mix.shared + group.coefficients;
  const int32_t *const begin = mix.begin + group.first, *const source = mix.source + *begin;
  const Vec signs[2] = {sign_of(group.opposite[0]), sign_of(group.opposite[1])};
  Vec first[kPaired], second[kPaired], factor[kPaired];
  const In *x[kPaired], *own[kPaired];
  Out* y[kPaired];
#pragma GCC unroll 4
  for (int t = 0; t < kPaired; ++t) {
    first[t] = Vec{} + shared[t], second[t] = Vec{} + shared[2 * kPaired + t];
    x[t] = call.in[source[t]] + row * call.in_row, y[t] = call.out[group.first + t] + row * call.out_row;
    if constexpr (more == More::one) {
      const int32_t e = begin[t] + kPaired;
      factor[t] = Vec{} + mix.coefficient[e], own[t] = call.in[mix.source[e]] + row * call.in_row;
    }
  }
  const bool in_ahead = call.ahead == Ahead::in, out_ahead = call.ahead == Ahead::out;
  for (; row < end; ++row) {
    const auto vector = [&](int64_t q, const auto& get, const auto& put) __attribute__((always_inline)) {
      Vec u[2], v[2];  // for the outputs of even numbers, and of odd ones
      sum_and_difference(get(x[0] + q), get(x[1] + q), signs[0], u);
      sum_and_difference(get(x[2] + q), get(x[3] + q), signs[1], v);
#pragma GCC unroll 4
      for (int t = 0; t < kPaired; ++t) {
        Vec s = {};
        if constexpr (!fresh) {
          if (call.bias) s = get(call.bias[group.first + t] + q);
          if (call.how == Store::add) s += get(y[t] + q);
        }
        s = ones ? u[t % 2] : s + first[t] * u[t % 2];
        s += second[t] * v[t % 2];
        if constexpr (more == More::one) s += factor[t] * get(own[t] + q);
        if constexpr (more == More::any)
          for (int32_t e = begin[t] + kPaired; e < begin[t + 1]; ++e)
            s += mix.coefficient[e] * get(call.in[mix.source[e]] + row * call.in_row + q);
        put(y[t] + q, s);
      }
    };
    int64_t q = 0;
    for (; q + kLanes <= cols; q += kLanes) {
      if (in_ahead && q % kInLine<In> == 0)
#pragma GCC unroll 4
        for (const In* const input : x) ask_for<1>(input + q + kAhead * call.in_row);
      if (out_ahead && q % kInLine<Out> == 0)
#pragma GCC unroll 4
        for (const Out* const output : y) ask_for<1>(output + q + kAhead * call.out_row);
      vector(
          q, [](const auto* p) { return load(p); }, [](auto* p, Vec s) { store(p, s); });
    }
    if (q < cols)
      vector(
          q, [rest = cols - q](const auto* p) { return load_part(p, rest); },
          [rest = cols - q](auto* p, Vec s) { store_part(p, s, rest); });
#pragma GCC unroll 4
    for (int t = 0; t < kPaired; ++t) {
      x[t] += call.in_row, y[t] += call.out_row;
      if constexpr (more == More::one) own[t] += call.in_row;
    }
  }
}

template <bool ones, bool fresh, class In, class Out>
void combine_pairs(const Mixed<In, Out>& call, const MixGroup& group, int64_t row, int64_t end,
                   int64_t cols) {
  const More more = group.common > 4 ? More::any : group.more;
  switch (more) {
    case More::none:
      return combine_pairs<ones, More::none, fresh>(call, group, row, end, cols);
    case More::one:
      return combine_pairs<ones, More::one, fresh>(call, group, row, end, cols);
    case More::any:
      return combine_pairs<ones, More::any, fresh>(call, group, row, end, cols);
  }
}

/// Rows of any group in pairs.
template <bool fresh, class In, class Out>
void combine_pairs(const Mixed<In, Out>& call, const MixGroup& group, int64_t row, int64_t end,
                   int64_t cols) {
  if constexpr (fresh)
    if (group.ones) return combine_pairs<true, true>(call, group, row, end, cols);
  combine_pairs<false, fresh>(call, group, row, end, cols);
}

/// The four outputs of a group in pairs, whose first four inputs are a, b, c and d, with the bits that
/// `combine` gives them, but for the sign of a zero.
[[gnu::always_inline]] inline void make_pairs(const Mix& mix, const MixGroup& group, Vec a, Vec b, Vec c,
                                              Vec d, Vec (&to)[4]) {
  const float* const shared = mix.shared + group.coefficients;
  Vec u[2], v[2];  // for the outputs of even numbers, and of odd ones
  sum_and_difference(a, b, sign_of(group.opposite[0]), u);
  sum_and_difference(c, d, sign_of(group.opposite[1]), v);
#pragma GCC unroll 4
  for (int t = 0; t < 4; ++t) to[t] = Vec{} + shared[t] * u[t % 2];
#pragma GCC unroll 4
  for (int t = 0; t < 4; ++t) to[t] += shared[8 + t] * v[t % 2];
}

/// The same of tiles of vectors.
inline void make_pairs(const Mix& mix, const MixGroup& group, const Vec (*in)[kLanes], Vec (&to)[4][kLanes]) {
  const int32_t* const source = mix.source + mix.begin[group.first];
  for (int i = 0; i < kLanes; ++i) {
    Vec made[4];
    make_pairs(mix, group, in[source[0]][i], in[source[1]][i], in[source[2]][i], in[source[3]][i], made);
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) to[t][i] = made[t];
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
