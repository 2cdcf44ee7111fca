#pragma once

// The kernels, in GCC's vector extension: included once by each instruction set's file, which is compiled
// with its own flags. Nothing here may have external linkage, and no header with templates may be included:
// the linker would keep one copy of their functions, perhaps one that this machine cannot run.
//
// All are bound by loads and stores: every input comes from the first or second level cache once for each
// output that uses it, sums stay in registers, and a column tail goes through a padded vector.

#if defined(__AVX2__)
#include <immintrin.h>  // masked loads and stores: C functions, always inlined
#endif

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

constexpr int kMaxInputs = 64;  // the largest n of an algebra

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef float VecAtAnyAddress __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
typedef int32_t Lanes __attribute__((vector_size(kLanes * 4)));
typedef uint32_t BitsAtAnyAddress __attribute__((vector_size(kLanes * 4), aligned(2), may_alias));
typedef uint16_t Half __attribute__((vector_size(kLanes * 2)));
typedef uint16_t HalfAtAnyAddress __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

inline Vec load(const float* p) {
  return *reinterpret_cast<const VecAtAnyAddress*>(p);
}
inline Vec load(const bf16* p) {
  const Half half = *reinterpret_cast<const HalfAtAnyAddress*>(p);
  return reinterpret_cast<Vec>(__builtin_convertvector(half, Bits) << 16);
}
inline void store(float* p, Vec v) {
  *reinterpret_cast<VecAtAnyAddress*>(p) = v;
}
/// Rounds to nearest, ties to even; a NaN stays one. In the lower half of each lane.
inline Bits rounded(Vec v) {
  const Bits bits = reinterpret_cast<Bits>(v);
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Bits nan = reinterpret_cast<Bits>(v != v);
  return (rounded & ~nan) | (0x7fc0u & nan);
}
inline void store(bf16* p, Vec v) {
  *reinterpret_cast<HalfAtAnyAddress*>(p) = __builtin_convertvector(rounded(v), Half);
}

/// The first `count` lanes; the others are zero, and their memory is not touched.
template <class T>
inline Vec load_part(const T* p, int64_t count) {
  T padded[kLanes] = {};
  for (int64_t q = 0; q < count; ++q) padded[q] = p[q];
  return load(padded);
}
template <class T>
inline void store_part(T* p, Vec v, int64_t count) {
  T padded[kLanes];
  store(padded, v);
  for (int64_t q = 0; q < count; ++q) p[q] = padded[q];
}
#if defined(__AVX512F__)
inline __mmask16 mask_of(int64_t count) {
  return static_cast<__mmask16>((1u << count) - 1);
}
template <>
inline Vec load_part(const float* p, int64_t count) {
  return reinterpret_cast<Vec>(_mm512_maskz_loadu_ps(mask_of(count), p));
}
template <>
inline void store_part(float* p, Vec v, int64_t count) {
  _mm512_mask_storeu_ps(p, mask_of(count), reinterpret_cast<__m512>(v));
}
#elif defined(__AVX2__)
inline __m256i mask_of(int64_t count) {
  alignas(32) static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones + 8 - count));
}
template <>
inline Vec load_part(const float* p, int64_t count) {
  return reinterpret_cast<Vec>(_mm256_maskload_ps(p, mask_of(count)));
}
template <>
inline void store_part(float* p, Vec v, int64_t count) {
  _mm256_maskstore_ps(p, mask_of(count), reinterpret_cast<__m256>(v));
}
#endif

/// 0, 1, 2, ..: permutations are computed from it, since the compiler would put constants together lane by
/// lane.
inline Lanes lane_numbers() {
  alignas(64) static const int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return *reinterpret_cast<const Lanes*>(numbers);
}

/// In every lane, what `join` makes of all lanes of v.
template <class Join>
inline Vec joined(Vec v, const Join& join) {
#pragma GCC unroll 4
  for (int step = kLanes / 2; step > 0; step /= 2) v = join(v, __builtin_shuffle(v, lane_numbers() ^ step));
  return v;
}

inline float sum(Vec v) {
  return joined(v, [](Vec a, Vec b) { return a + b; })[0];
}

/// A block of height x width vectors of every output; the last one of a row may have `count` lanes only.
template <int height, int width, bool part, class In, class Out>
inline void combine_block(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out,
                          int64_t out_row, int64_t from, int64_t to, int64_t q, int64_t count,
                          const float* const* bias, Store how) {
  const auto get = [count](auto* p) { return part ? load_part(p, count) : load(p); };
  for (int32_t o = 0; o < mix.outputs; ++o) {
    Vec s[height][width];
    Out* y = out[o] + to + q;
#pragma GCC unroll 4
    for (int h = 0; h < height; ++h)
#pragma GCC unroll 4
      for (int v = 0; v < width; ++v) {
        s[h][v] = bias ? get(bias[o] + q + v * kLanes) : Vec{};
        if (how == Store::add) s[h][v] += get(y + h * out_row + v * kLanes);
      }
    for (int32_t e = mix.begin[o]; e < mix.begin[o + 1]; ++e) {
      const In* x = in[mix.source[e]] + from + q;
      const float c = mix.coefficient[e];
#pragma GCC unroll 4
      for (int h = 0; h < height; ++h)
#pragma GCC unroll 4
        for (int v = 0; v < width; ++v) s[h][v] += c * get(x + h * in_row + v * kLanes);
    }
#pragma GCC unroll 4
    for (int h = 0; h < height; ++h)
#pragma GCC unroll 4
      for (int v = 0; v < width; ++v) {
        Out* to_store = y + h * out_row + v * kLanes;
        part ? store_part(to_store, s[h][v], count) : store(to_store, s[h][v]);
      }
  }
}

/// All of `height` rows, in blocks of four vectors where the columns allow it.
template <int height, class In, class Out>
inline void combine_rows(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out,
                         int64_t out_row, int64_t row, int64_t cols, const float* const* bias, Store how) {
  constexpr int kWide = 4 / height;
  const int64_t from = row * in_row, to = row * out_row;
  int64_t q = 0;
  for (; q + kWide * kLanes <= cols; q += kWide * kLanes)
    combine_block<height, kWide, false>(mix, in, in_row, out, out_row, from, to, q, kLanes, bias, how);
  for (; q + kLanes <= cols; q += kLanes)
    combine_block<height, 1, false>(mix, in, in_row, out, out_row, from, to, q, kLanes, bias, how);
  if (q < cols)
    combine_block<height, 1, true>(mix, in, in_row, out, out_row, from, to, q, cols - q, bias, how);
}

/// The number of inputs where every output mixes the same ones, else 0.
inline int32_t common_inputs(const Mix& mix) {
  const int32_t inputs = mix.outputs > 0 ? mix.begin[1] : 0;
  for (int32_t o = 1; o < mix.outputs; ++o) {
    if (mix.begin[o + 1] - mix.begin[o] != inputs) return 0;
    for (int32_t e = 0; e < inputs; ++e)
      if (mix.source[mix.begin[o] + e] != mix.source[e]) return 0;
  }
  return inputs;
}

/// `width` vectors of `height` outputs with the same inputs: each of these is loaded once for all of them.
template <int height, int width, bool part, class In, class Out>
inline void dense_block(const Mix& mix, int32_t inputs, int32_t o, const In* const* in, int64_t from,
                        Out* const* out, int64_t to, int64_t q, int64_t count, const float* const* bias,
                        Store how) {
  const auto get = [count](auto* p) { return part ? load_part(p, count) : load(p); };
  const float* const c = mix.coefficient + mix.begin[o];
  Vec s[height][width];
#pragma GCC unroll 8
  for (int t = 0; t < height; ++t)
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) {
      s[t][v] = bias ? get(bias[o + t] + q + v * kLanes) : Vec{};
      if (how == Store::add) s[t][v] += get(out[o + t] + to + q + v * kLanes);
    }
  for (int32_t e = 0; e < inputs; ++e) {
    const In* const p = in[mix.source[e]] + from + q;
    Vec x[width];
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) x[v] = get(p + v * kLanes);
#pragma GCC unroll 8
    for (int t = 0; t < height; ++t) {
      const float factor = c[t * inputs + e];
#pragma GCC unroll 2
      for (int v = 0; v < width; ++v) s[t][v] += factor * x[v];
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < height; ++t)
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) {
      Out* const y = out[o + t] + to + q + v * kLanes;
      part ? store_part(y, s[t][v], count) : store(y, s[t][v]);
    }
}

template <int width, bool part, class In, class Out>
inline void dense_outputs(const Mix& mix, int32_t inputs, const In* const* in, int64_t from, Out* const* out,
                          int64_t to, int64_t q, int64_t count, const float* const* bias, Store how) {
  constexpr int kHeight = kLanes == 16 ? 8 : 4;  // sums fill half of the registers
  int32_t o = 0;
  for (; o + kHeight <= mix.outputs; o += kHeight)
    dense_block<kHeight, width, part>(mix, inputs, o, in, from, out, to, q, count, bias, how);
  for (; o + 4 <= mix.outputs; o += 4)
    dense_block<4, width, part>(mix, inputs, o, in, from, out, to, q, count, bias, how);
  for (; o < mix.outputs; ++o)
    dense_block<1, width, part>(mix, inputs, o, in, from, out, to, q, count, bias, how);
}

template <class In, class Out>
void combine_dense(const Mix& mix, int32_t inputs, const In* const* in, int64_t in_row, Out* const* out,
                   int64_t out_row, int64_t rows, int64_t cols, const float* const* bias, Store how) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = row * in_row, to = row * out_row;
    int64_t q = 0;
    for (; q + 2 * kLanes <= cols; q += 2 * kLanes)
      dense_outputs<2, false>(mix, inputs, in, from, out, to, q, kLanes, bias, how);
    for (; q + kLanes <= cols; q += kLanes)
      dense_outputs<1, false>(mix, inputs, in, from, out, to, q, kLanes, bias, how);
    if (q < cols) dense_outputs<1, true>(mix, inputs, in, from, out, to, q, cols - q, bias, how);
  }
}

template <class In, class Out>
void combine(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out, int64_t out_row,
             int64_t rows, int64_t cols, const float* const* bias, Store how) {
  constexpr int32_t kFew = 7;  // inputs that may as well be loaded again for each output
  if (const int32_t inputs = common_inputs(mix); inputs > kFew && mix.outputs >= 8)
    return combine_dense(mix, inputs, in, in_row, out, out_row, rows, cols, bias, how);
  int64_t row = 0;
  if (cols < 4 * kLanes)  // narrow: two rows at a time fill the registers
    for (; row + 2 <= rows; row += 2) combine_rows<2>(mix, in, in_row, out, out_row, row, cols, bias, how);
  for (; row < rows; ++row) combine_rows<1>(mix, in, in_row, out, out_row, row, cols, bias, how);
}

/// Lanes x lanes, in registers: log2(lanes) rounds of two-source permutations.
inline void transpose_tile(Vec (&v)[kLanes]) {
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    const Lanes lane = lane_numbers(),
                second = (lane & step) != 0;  // lanes that the second source fills below
    const Lanes low = lane + (second & (kLanes - step)), high = lane + (second & kLanes) + (~second & step);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i)
      if (!(i & step)) {
        const Vec a = v[i], b = v[i + step];
        v[i] = __builtin_shuffle(a, b, low);
        v[i + step] = __builtin_shuffle(a, b, high);
      }
  }
}

/// One tile of every input is transposed into the first level cache, then mixed from there.
template <class In, class Out>
void transpose(const Mix& mix, int32_t inputs, const In* const* in, int64_t in_row, Out* const* out,
               int64_t out_row, int64_t rows, int64_t cols) {
  Vec tile[kMaxInputs][kLanes];
  for (int64_t row = 0; row < rows; row += kLanes) {
    const int64_t height = rows - row < kLanes ? rows - row : kLanes;
    for (int64_t q = 0; q < cols; q += kLanes) {
      const int64_t width = cols - q < kLanes ? cols - q : kLanes;
      const bool part = height < kLanes || width < kLanes;
      for (int32_t c = 0; c < inputs; ++c) {
        const In* x = in[c] + row * in_row + q;
        Vec v[kLanes];
        if (part)
          for (int i = 0; i < kLanes; ++i) v[i] = i < height ? load_part(x + i * in_row, width) : Vec{};
        else
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) v[i] = load(x + i * in_row);
        transpose_tile(v);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) tile[c][i] = v[i];
      }
      for (int32_t o = 0; o < mix.outputs; ++o) {
        Vec v[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) v[i] = Vec{};
        for (int32_t e = mix.begin[o]; e < mix.begin[o + 1]; ++e) {
          const Vec* x = tile[mix.source[e]];
          const float c = mix.coefficient[e];
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) v[i] += c * x[i];
        }
        Out* y = out[o] + q * out_row + row;
        if (part)
          for (int64_t i = 0; i < width; ++i) store_part(y + i * out_row, v[i], height);
        else
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) store(y + i * out_row, v[i]);
      }
    }
  }
}

/// Two rows meet in the lanes of one vector.
void pair(const float* in, int64_t in_row, int64_t rows, int64_t cols, bf16* out, int64_t out_cols) {
  for (int64_t row = 0; row < rows; row += 2) {
    const float* x = in + row * in_row;
    bf16* y = out + row * out_cols;
    for (int64_t q = 0; q < out_cols; q += kLanes) {
      const int64_t count = cols - q;
      const auto get = [count](const float* p) {
        return count >= kLanes ? load(p) : count > 0 ? load_part(p, count) : Vec{};
      };
      const Vec low = get(x + q), high = row + 1 < rows ? get(x + in_row + q) : Vec{};
      *reinterpret_cast<BitsAtAnyAddress*>(y + 2 * q) = rounded(low) | (rounded(high) << 16);
    }
  }
}

template <class T>
void dots(const T* const* a, int32_t count_a, int64_t a_row, const float* const* b, int32_t count_b,
          int64_t b_row, int64_t rows, int64_t cols, float* sums) {
  constexpr int kTile = 4;
  for (int32_t i = 0; i < count_a; i += kTile)
    for (int32_t r = 0; r < count_b; r += kTile) {
      const int height = count_a - i < kTile ? count_a - i : kTile;
      const int width = count_b - r < kTile ? count_b - r : kTile;
      Vec total[kTile][kTile] = {};
      // A tile that hangs over the edge repeats its last operand; those sums are not used.
      const T* left[kTile];
      const float* right[kTile];
      for (int t = 0; t < kTile; ++t) {
        left[t] = a[i + (t < height ? t : height - 1)];
        right[t] = b[r + (t < width ? t : width - 1)];
      }
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t q = 0; q < cols; q += kLanes) {
          const int64_t count = cols - q;
          Vec x[kTile];
#pragma GCC unroll 4
          for (int t = 0; t < kTile; ++t) {
            const T* p = left[t] + row * a_row + q;
            x[t] = count < kLanes ? load_part(p, count) : load(p);
          }
#pragma GCC unroll 4
          for (int u = 0; u < kTile; ++u) {
            const float* p = right[u] + row * b_row + q;
            const Vec y = count < kLanes ? load_part(p, count) : load(p);
#pragma GCC unroll 4
            for (int t = 0; t < kTile; ++t) total[t][u] += x[t] * y;
          }
        }
      for (int t = 0; t < height; ++t)
        for (int u = 0; u < width; ++u) sums[(i + t) * count_b + r + u] += sum(total[t][u]);
    }
}

/// A tile of weight rows times a tile of vectors; the sums stay in registers over the whole length.
template <int height, int width, class T>
inline void stream_tile(const T* const* weights, int32_t components, int64_t weight_row, int64_t row,
                        int64_t cols, const float* z, float* y, int64_t y_vector) {
  const int64_t length = components * cols;
  Vec total[height][width] = {};
  for (int32_t c = 0; c < components; ++c) {
    const T* w = weights[c] + row * weight_row;
    const float* v = z + c * cols;
    int64_t q = 0;
    for (; q + kLanes <= cols; q += kLanes) {
      Vec x[width];
#pragma GCC unroll 8
      for (int g = 0; g < width; ++g) x[g] = load(v + g * length + q);
#pragma GCC unroll 8
      for (int t = 0; t < height; ++t) {
        const Vec s = load(w + t * weight_row + q);
#pragma GCC unroll 8
        for (int g = 0; g < width; ++g) total[t][g] += s * x[g];
      }
    }
    if (q < cols)
      for (int t = 0; t < height; ++t) {
        const Vec s = load_part(w + t * weight_row + q, cols - q);
        for (int g = 0; g < width; ++g) total[t][g] += s * load_part(v + g * length + q, cols - q);
      }
  }
  for (int g = 0; g < width; ++g)
    for (int t = 0; t < height; ++t) y[g * y_vector + t] = sum(total[t][g]);
}

template <int width, class T>
inline void stream_vectors(const T* const* weights, int32_t components, int64_t weight_row, int64_t rows,
                           int64_t cols, const float* z, float* y, int64_t y_vector) {
  constexpr int kHeight = kLanes == 16 ? 4 : 2;  // 4 x 4 sums and their operands fill 24 of 32 registers
  int64_t row = 0;
  for (; row + kHeight <= rows; row += kHeight)
    stream_tile<kHeight, width>(weights, components, weight_row, row, cols, z, y + row, y_vector);
  for (; row < rows; ++row)
    stream_tile<1, width>(weights, components, weight_row, row, cols, z, y + row, y_vector);
}

template <class T>
void stream(const T* const* weights, int32_t components, int64_t weight_row, int64_t rows, int64_t cols,
            const float* z, int64_t vectors, float* y, int64_t y_vector) {
  // Strips of rows whose weights stay in the second level cache while all vectors pass over them.
  const int64_t bytes = static_cast<int64_t>(components) * cols * static_cast<int64_t>(sizeof(T));
  int64_t strip = (1 << 18) / (bytes > 0 ? bytes : 1);
  strip = strip < 4 ? 4 : strip & ~int64_t{3};
  const int64_t length = components * cols;
  for (int64_t begin = 0; begin < rows; begin += strip) {
    const int64_t count = rows - begin < strip ? rows - begin : strip;
    const T* from[64];
    for (int32_t c = 0; c < components; ++c) from[c] = weights[c] + begin * weight_row;
    int64_t g = 0;
    for (; g + 4 <= vectors; g += 4)
      stream_vectors<4>(from, components, weight_row, count, cols, z + g * length, y + g * y_vector + begin,
                        y_vector);
    for (; g < vectors; ++g)
      stream_vectors<1>(from, components, weight_row, count, cols, z + g * length, y + g * y_vector + begin,
                        y_vector);
  }
}

/// e^x for x <= 0 within 2 units of the last place, by a polynomial on [-ln 2 / 2, ln 2 / 2]; 0 below the
/// smallest normal number. A NaN stays one.
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

void softmax(float* x, int64_t x_row, int64_t rows, int64_t cols, const float* bias) {
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
  }
}

void softmax_backward(const float* y, int64_t y_row, float* dy, int64_t dy_row, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, y += y_row, dy += dy_row) {
    Vec total{};
    for (int64_t q = 0; q < cols; q += kLanes) total += load(y + q) * load(dy + q);
    const Vec mean = joined(total, [](Vec a, Vec b) { return a + b; });
    for (int64_t q = 0; q < cols; q += kLanes) store(dy + q, load(y + q) * (load(dy + q) - mean));
  }
}

/// The finaliser of splitmix64.
inline uint64_t scattered(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A row has a key of 64 bits, and its columns are scattered under that key: no value hangs on the order in
/// which they are asked for, on threads or on the instruction set.
void drop(float* x, int64_t x_row, int64_t rows, int64_t cols, const Drop& drop) {
  for (int64_t row = 0; row < rows; ++row, x += x_row) {
    const uint64_t number = drop.row + static_cast<uint64_t>(row);
    const uint64_t key = scattered(scattered(drop.seed + 0x9e3779b97f4a7c15u) + number * 0x9e3779b97f4a7c15u);
    const uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
    for (int64_t q = 0; q < cols; q += kLanes) {
      Bits b = (reinterpret_cast<Bits>(lane_numbers()) + static_cast<uint32_t>(q)) * 0x9e3779b9u + low;
      b = (b ^ (b >> 16)) * 0x21f0aaadu + high;
      b = (b ^ (b >> 15)) * 0x735a2d97u;
      b ^= b >> 15;
      const Vec kept = load(x + q) * drop.scale;
      const Bits keep = reinterpret_cast<Bits>(b >= drop.threshold);
      store(x + q, reinterpret_cast<Vec>(reinterpret_cast<Bits>(kept) & keep));
    }
  }
}

constexpr Table make_table(const char* name) {
  return {name,
          &combine<float, float>,
          &combine<bf16, float>,
          &combine<float, bf16>,
          &combine<bf16, bf16>,
          &transpose<float, float>,
          &transpose<bf16, float>,
          &transpose<float, bf16>,
          &transpose<bf16, bf16>,
          &pair,
          &dots<float>,
          &dots<bf16>,
          &stream<float>,
          &stream<bf16>,
          &softmax,
          &softmax_backward,
          &drop};
}

}  // namespace

}  // namespace quatrain::kernels::cpu
