#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/kernels.h"

/// Mixtures of every kind.
namespace quatrain::kernels::cpu::test {

/// A sparse mixture of three inputs: all of them, one, none, one twice, two; then four outputs that start
/// alike, two that do, and a copy.
struct Sparse {
  std::vector<int32_t> begin{0, 3, 4, 4, 6, 8, 10, 13, 17, 19, 22, 24, 25},
      source{0, 1, 2, 1, 2, 2, 2, 0, 0, 2, 0, 2, 1, 0, 2, 1, 2, 0, 2, 1, 2, 0, 1, 2, 2};
  std::vector<float> coefficient{0.5F, -1,   0.7071F, 1,    0.25F, -1.5F, 1,    -0.3F, 2,
                                 -1,   0.3F, 0.1F,    -1,   0.6F,  0.2F,  0.9F, 1.1F,  -0.4F,
                                 0.8F, 1,    -0.2F,   0.7F, -0.6F, 0.45F, 1};
  int32_t inputs = 3;

  Groups groups{ungrouped()};

  Sparse() = default;
  /// Groups of four and of two outputs that share two to six inputs of seven, followed by none, by one of
  /// their own, or by none, one, two .. in turn. Then the groups of four again with their first inputs in
  /// pairs, and once more with coefficients of 1 and -1 in the first pair.
  static Sparse of_groups() {
    enum class Own { none, one, rising };
    Sparse mix;
    mix.begin = {0}, mix.source.clear(), mix.coefficient.clear(), mix.inputs = 7;
    for (const int32_t count : {4, 2})
      for (int32_t shared = 2; shared <= 6; ++shared)
        for (const Own own : {Own::none, Own::one, Own::rising})
          for (int32_t t = 0; t < count; ++t) {
            const int32_t further = own == Own::none ? 0 : own == Own::one ? 1 : t % (8 - shared);
            for (int32_t e = 0; e < shared + further; ++e) {
              // Other groups start otherwise: at another input, or backwards.
              mix.source.push_back((shared + (own == Own::one ? 7 - e : e) + (e < shared ? 0 : t)) % 7);
              mix.coefficient.push_back(0.1F * static_cast<float>((e * 5 + t * 3 + shared) % 13) - 0.55F);
            }
            mix.end();
          }
    for (int32_t kind = 0; kind < 6; ++kind)
      for (const Own own : {Own::none, Own::one, Own::rising})
        for (const int32_t opposite : {0, 1, 2, 3})
          for (int32_t t = 0; t < 4; ++t) {
            const int32_t shared = 4 + kind % 3, further = own == Own::none  ? 0
                                                           : own == Own::one ? 1
                                                                             : t % (8 - shared);
            for (int32_t e = 0; e < shared + further; ++e) {
              mix.source.push_back((shared + opposite + e + (e < shared ? 0 : t)) % 7);
              const bool minus = e < 4 && e % 2 == 1 && (t % 2 == 1) != ((opposite >> (e / 2) & 1) == 1);
              const int32_t of_pair = e < 4 ? e / 2 : e;
              const float size = kind >= 3 && e < 2
                                     ? 1
                                     : 0.1F * static_cast<float>((of_pair * 5 + t * 3 + shared) % 13) - 0.55F;
              mix.coefficient.push_back(minus ? -size : size);
            }
            mix.end();
          }
    mix.groups = Groups(mix.ungrouped());
    return mix;
  }
  void end() { begin.push_back(static_cast<int32_t>(source.size())); }

  Mix ungrouped() const {
    return {static_cast<int32_t>(begin.size()) - 1, begin.data(), source.data(), coefficient.data()};
  }
  Mix view() const { return groups.of(ungrouped()); }
};

}  // namespace quatrain::kernels::cpu::test
