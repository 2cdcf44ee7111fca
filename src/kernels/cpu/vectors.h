#pragma once

// Vectors of an instruction set: loads, stores, sums and permutations, for loops.h alone.

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

constexpr int64_t kCacheLine = 64;  // bytes
/// Values in a line of the cache.
template <class T>
constexpr int64_t kInLine = kCacheLine / sizeof(T);

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

/// Lane j of the result is a's or b's (by bit `step` of j) value in lane j plus that in the lane `step` away.
template <int step>
inline Vec merged(Vec a, Vec b) {
  const Lanes lane = lane_numbers(), odd = (lane & step) != 0;
  const Lanes here = lane + (odd & kLanes), there = (lane ^ step) + (odd & kLanes);
  return __builtin_shuffle(a, b, here) + __builtin_shuffle(a, b, there);
}

/// The sums of so many vectors, a power of two and no more than there are lanes, each in its lane. All are
/// added in one order: no bit depends on how rows are cut into tiles.
template <int count, int step = 1>
inline Vec sums(const Vec* v) {
  if constexpr (count == 1) {
    Vec sum = v[0];
#pragma GCC unroll 4
    for (int further = step; further < kLanes; further *= 2)
      sum += __builtin_shuffle(sum, lane_numbers() ^ further);
    return sum;
  } else {
    Vec half[count / 2];
#pragma GCC unroll 16
    for (int i = 0; i < count / 2; ++i) half[i] = merged<step>(v[2 * i], v[2 * i + 1]);
    return sums<count / 2, 2 * step>(half);
  }
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

}  // namespace

}  // namespace quatrain::kernels::cpu
