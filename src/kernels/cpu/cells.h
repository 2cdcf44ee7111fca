#pragma once

// A step of a recurrent cell after its products, and back, for loops.h alone.

#include "kernels/cpu/epilogues.h"

namespace quatrain::kernels::cpu {

namespace {

/// Units q .. q + kLanes of what belongs to one component, fewer at the end.
struct Units {
  int64_t q, count;
  Vec get(const float* p) const { return count < kLanes ? load_part(p + q, count) : load(p + q); }
  void put(float* p, Vec v) const { count < kLanes ? store_part(p + q, v, count) : store(p + q, v); }
};

template <class Each>
inline void each_vector(int64_t units, Each each) {
  for (int64_t q = 0; q < units; q += kLanes) each(Units{q, units - q < kLanes ? units - q : kLanes});
}

template <bool printed>
void lstm_step(const CellStep& s) {
  each_vector(s.units, [&](Units u) {
    Vec gate[4];
    for (int g = 0; g < 4; ++g) gate[g] = u.get(s.z + g * s.z_gate) + u.get(s.r + g * s.r_gate);
    const Vec i = sigmoid(gate[0]), f = sigmoid(gate[1]), g = hyperbolic_tangent(gate[2]),
              o = printed ? gate[3] : sigmoid(gate[3]), c = f * u.get(s.c) + i * g;
    u.put(s.c, c);
    u.put(s.h, o * (printed ? c : hyperbolic_tangent(c)));
    if (!s.kept) return;
    const Vec kept[5] = {i, f, g, o, c};
    for (int k = 0; k < 5; ++k) u.put(s.kept + k * s.units, kept[k]);
  });
}

void gru_step(const CellStep& s) {
  each_vector(s.units, [&](Units u) {
    const Vec hidden = u.get(s.r + 2 * s.r_gate), h = u.get(s.h);
    const Vec r = sigmoid(u.get(s.z) + u.get(s.r)),
              z = sigmoid(u.get(s.z + s.z_gate) + u.get(s.r + s.r_gate)),
              n = hyperbolic_tangent(u.get(s.z + 2 * s.z_gate) + r * hidden);
    u.put(s.h, n + z * (h - n));
    if (!s.kept) return;
    const Vec kept[4] = {r, z, n, hidden};
    for (int k = 0; k < 4; ++k) u.put(s.kept + k * s.units, kept[k]);
  });
}

template <Activation activation>
void rnn_step(const CellStep& s) {
  each_vector(s.units, [&](Units u) {
    const Vec h = activated<activation>(u.get(s.z) + u.get(s.r));
    u.put(s.h, h);
    if (s.kept) u.put(s.kept, h);
  });
}

template <bool printed>
void lstm_step_back(const CellStepBack& s) {
  each_vector(s.units, [&](Units u) {
    Vec kept[5];
    for (int k = 0; k < 5; ++k) kept[k] = u.get(s.kept + k * s.units);
    const auto [i, f, g, o, c] = kept;
    const Vec dh = u.get(s.dh), t = printed ? c : hyperbolic_tangent(c),
              dc = u.get(s.dc) + dh * o * (printed ? Vec{} + 1.0f : 1.0f - t * t), dout = dh * t;
    const Vec dz[4] = {dc * g * i * (1.0f - i), dc * u.get(s.c_before) * f * (1.0f - f),
                       dc * i * (1.0f - g * g), printed ? dout : dout * o * (1.0f - o)};
    for (int k = 0; k < 4; ++k) u.put(s.dz + k * s.units, dz[k]);
    u.put(s.dc, dc * f);
    u.put(s.dh, Vec{});
  });
}

void gru_step_back(const CellStepBack& s) {
  each_vector(s.units, [&](Units u) {
    Vec kept[4];
    for (int k = 0; k < 4; ++k) kept[k] = u.get(s.kept + k * s.units);
    const auto [r, z, n, hidden] = kept;
    const Vec dh = u.get(s.dh), dn = dh * (1.0f - z) * (1.0f - n * n),
              dz = dh * (u.get(s.h_before) - n) * z * (1.0f - z), dr = dn * hidden * r * (1.0f - r);
    u.put(s.dz, dr), u.put(s.dz + s.units, dz), u.put(s.dz + 2 * s.units, dn);
    u.put(s.dr, dr), u.put(s.dr + s.units, dz), u.put(s.dr + 2 * s.units, dn * r);
    u.put(s.dh, dh * z);
  });
}

template <Activation activation>
void rnn_step_back(const CellStepBack& s) {
  each_vector(s.units, [&](Units u) {
    const Vec h = u.get(s.kept), dh = u.get(s.dh);
    u.put(s.dz, activation == Activation::tanh ? dh * (1.0f - h * h) : (h <= 0 ? Vec{} : dh));
    u.put(s.dh, Vec{});
  });
}

void cell_step(Cell cell, const CellStep& s) {
  switch (cell) {
    case Cell::lstm:
      return lstm_step<false>(s);
    case Cell::lstm_printed:
      return lstm_step<true>(s);
    case Cell::gru:
      return gru_step(s);
    case Cell::rnn_tanh:
      return rnn_step<Activation::tanh>(s);
    case Cell::rnn_relu:
      return rnn_step<Activation::relu>(s);
  }
}

void cell_step_back(Cell cell, const CellStepBack& s) {
  switch (cell) {
    case Cell::lstm:
      return lstm_step_back<false>(s);
    case Cell::lstm_printed:
      return lstm_step_back<true>(s);
    case Cell::gru:
      return gru_step_back(s);
    case Cell::rnn_tanh:
      return rnn_step_back<Activation::tanh>(s);
    case Cell::rnn_relu:
      return rnn_step_back<Activation::relu>(s);
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
