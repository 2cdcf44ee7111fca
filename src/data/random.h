#pragma once

#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace quatrain::data {

/// The standard's Mersenne twister, of good numbers; a new stream costs some microseconds.
class MersenneTwister {
 public:
  MersenneTwister(uint64_t seed, uint64_t stream) {
    std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                        static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
    engine_.seed(words);
  }
  uint64_t operator()() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// Spreads neighbours; the finaliser of splitmix64.
inline uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// The same number for the same text everywhere and always, as std::hash is not.
inline uint64_t hash_of(std::string_view text) {
  uint64_t result = 0xcbf29ce484222325ULL;
  for (const char c : text) result = mixed(result ^ static_cast<unsigned char>(c));
  return result;
}

/// A number in [0, 1) by that hash: what is divided by it stays where it is when other things come or go.
inline double fraction_of(std::string_view text) {
  return static_cast<double>(hash_of(text) >> 11) * 0x1p-53;
}

/// Sebastiano Vigna's splitmix64: a new stream costs nothing, as where each line has its own.
class SplitMix {
 public:
  SplitMix(uint64_t seed, uint64_t stream) : state_(mixed(mixed(seed + kStep) + stream * kStep)) {}
  uint64_t operator()() { return mixed(state_ += kStep); }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  uint64_t state_;
};

/// Random numbers that are the same with every standard library, as std::shuffle and the distributions are
/// not.
template <class Engine>
class RandomOf {
 public:
  explicit RandomOf(uint64_t seed, uint64_t stream = 0) : engine_(seed, stream) {}

  /// 0 .. n - 1.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(engine_()) * n) >> 64);
  }
  /// In [0, 1).
  double fraction() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(double p) { return fraction() < p; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  Engine engine_;
};
using Random = RandomOf<MersenneTwister>;
using LineRandom = RandomOf<SplitMix>;

}  // namespace quatrain::data
