#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace quatrain::data {

/// Random numbers that are the same with every standard library, as std::shuffle and the distributions are
/// not.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) {
    std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                        static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
    engine_.seed(words);
  }

  /// 0 .. n - 1.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(engine_()) * n) >> 64);
  }
  bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace quatrain::data
