#pragma once

// Winograd's transforms of tiles, for loops.h alone. Each is a small matrix T, applied to the rows and to the
// columns of a square of vectors: T d T^t.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

/// F(2 x 2, 3 x 3), at the points 0, 1, -1 and infinity.
struct Winograd2 {
  static constexpr int m = 2, t = 4;
  static inline void input(const Vec (&d)[4], Vec (&o)[4]) {
    o[0] = d[0] - d[2], o[1] = d[1] + d[2], o[2] = d[2] - d[1], o[3] = d[1] - d[3];
  }
  static inline void output(const Vec (&d)[4], Vec (&o)[2]) {
    o[0] = d[0] + d[1] + d[2], o[1] = d[1] - d[2] - d[3];
  }
  static inline void output_back(const Vec (&d)[2], Vec (&o)[4]) {
    o[0] = d[0], o[1] = d[0] + d[1], o[2] = d[0] - d[1], o[3] = -d[1];
  }
  static inline void weight(const Vec (&d)[3], Vec (&o)[4]) {
    const Vec even = 0.5f * (d[0] + d[2]), odd = 0.5f * d[1];
    o[0] = d[0], o[1] = even + odd, o[2] = even - odd, o[3] = d[2];
  }
  static inline void weight_back(const Vec (&d)[4], Vec (&o)[3]) {
    const Vec even = 0.5f * (d[1] + d[2]);
    o[0] = d[0] + even, o[1] = 0.5f * (d[1] - d[2]), o[2] = even + d[3];
  }
};

/// F(4 x 4, 3 x 3), at the points 0, +-3/4, +-3/2 and infinity: a third of the errors at 0, +-1, +-2.
struct Winograd4 {
  static constexpr int m = 4, t = 6;
  static constexpr float a = .75f, b = 1.5f, aa = a * a, bb = b * b;
  static constexpr float zero = 1 / (aa * bb), ra = 1 / (2 * aa * (aa - bb)), rb = 1 / (2 * bb * (bb - aa));
  static inline void input(const Vec (&d)[6], Vec (&o)[6]) {
    const Vec e = d[4] - bb * d[2], f = a * (d[3] - bb * d[1]);
    const Vec g = d[4] - aa * d[2], h = b * (d[3] - aa * d[1]);
    o[0] = aa * bb * d[0] - (aa + bb) * d[2] + d[4];
    o[1] = e + f, o[2] = e - f, o[3] = g + h, o[4] = g - h;
    o[5] = aa * bb * d[1] - (aa + bb) * d[3] + d[5];
  }
  static inline void output(const Vec (&d)[6], Vec (&o)[4]) {
    const Vec e = d[1] + d[2], f = d[1] - d[2], g = d[3] + d[4], h = d[3] - d[4];
    o[0] = d[0] + e + g, o[1] = a * f + b * h, o[2] = aa * e + bb * g;
    o[3] = a * aa * f + b * bb * h + d[5];
  }
  static inline void output_back(const Vec (&d)[4], Vec (&o)[6]) {
    const Vec e = d[0] + aa * d[2], f = a * d[1] + a * aa * d[3];
    const Vec g = d[0] + bb * d[2], h = b * d[1] + b * bb * d[3];
    o[0] = d[0], o[1] = e + f, o[2] = e - f, o[3] = g + h, o[4] = g - h, o[5] = d[3];
  }
  static inline void weight(const Vec (&d)[3], Vec (&o)[6]) {
    const Vec e = ra * (d[0] + aa * d[2]), f = ra * a * d[1];
    const Vec g = rb * (d[0] + bb * d[2]), h = rb * b * d[1];
    o[0] = zero * d[0], o[1] = e + f, o[2] = e - f, o[3] = g + h, o[4] = g - h, o[5] = d[2];
  }
  static inline void weight_back(const Vec (&d)[6], Vec (&o)[3]) {
    const Vec e = ra * (d[1] + d[2]), f = ra * a * (d[1] - d[2]);
    const Vec g = rb * (d[3] + d[4]), h = rb * b * (d[3] - d[4]);
    o[0] = zero * d[0] + e + g, o[1] = f + h, o[2] = aa * e + bb * g + d[5];
  }
};

/// What a transform is given; see Table.
struct WinogradCall {
  const Square<const float>& in;
  const Square<float>& out;
  int64_t tiles, parts, count;
  const float* bias;
};

template <int inputs, int outputs, class Apply>
void winograd_square(const Apply& apply, const WinogradCall& call) {
  Square<const float> in = call.in;
  Square<float> out = call.out;
  const auto block = [&](int64_t from, int64_t to, const float* bias, const auto& get, const auto& put) {
    Vec half[outputs][inputs];
#pragma GCC unroll 8
    for (int j = 0; j < inputs; ++j) {
      Vec d[inputs], o[outputs];
#pragma GCC unroll 8
      for (int i = 0; i < inputs; ++i) d[i] = get(in.at[i * in.line + j] + from);
      apply(d, o);
#pragma GCC unroll 8
      for (int i = 0; i < outputs; ++i) half[i][j] = o[i];
    }
    const Vec added = bias ? get(bias) : Vec{};
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
      Vec o[outputs];
      apply(half[i], o);
#pragma GCC unroll 8
      for (int j = 0; j < outputs; ++j) put(out.at[i * out.line + j] + to, o[j] + added);
    }
  };
  for (int64_t tile = 0; tile < call.tiles; ++tile) {
    for (int64_t part = 0; part < call.parts; ++part) {
      const int64_t from = in.offset + part * in.part, to = out.offset + part * out.part;
      const float* const bias = call.bias ? call.bias + part * out.part : nullptr;
      int64_t q = 0;
      for (; q + kLanes <= call.count; q += kLanes)
        block(
            from + q, to + q, bias ? bias + q : nullptr, [](const float* x) { return load(x); },
            [](float* y, Vec v) { store(y, v); });
      if (q < call.count)
        block(
            from + q, to + q, bias ? bias + q : nullptr,
            [rest = call.count - q](const float* x) { return load_part(x, rest); },
            [rest = call.count - q](float* y, Vec v) { store_part(y, v, rest); });
    }
    in.at += in.next_at, in.offset += in.next_offset;
    out.at += out.next_at, out.offset += out.next_offset;
  }
}

template <class F>
void winograd_as(WinogradStep step, const WinogradCall& call) {
  constexpr int m = F::m, t = F::t;
  switch (step) {
    case WinogradStep::input:
      return winograd_square<t, t>([](auto& d, auto& o) { F::input(d, o); }, call);
    case WinogradStep::output:
      return winograd_square<t, m>([](auto& d, auto& o) { F::output(d, o); }, call);
    case WinogradStep::output_back:
      return winograd_square<m, t>([](auto& d, auto& o) { F::output_back(d, o); }, call);
    case WinogradStep::weight:
      return winograd_square<3, t>([](auto& d, auto& o) { F::weight(d, o); }, call);
    case WinogradStep::weight_back:
      return winograd_square<t, 3>([](auto& d, auto& o) { F::weight_back(d, o); }, call);
  }
}

void winograd(int64_t m, WinogradStep step, const Square<const float>& in, const Square<float>& out,
              int64_t tiles, int64_t parts, int64_t count, const float* bias) {
  const WinogradCall call{in, out, tiles, parts, count, bias};
  m == 2 ? winograd_as<Winograd2>(step, call) : winograd_as<Winograd4>(step, call);
}

}  // namespace

}  // namespace quatrain::kernels::cpu
