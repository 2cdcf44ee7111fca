#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace quatrain::scores {

/// How many n-grams of one order two sequences hold, and how many of them match: each as often as in the
/// sequence that has it less often.
struct Overlap {
  int64_t hypothesis = 0, reference = 0, matched = 0;
};

/// Overlaps of the orders 1 to `orders` of two sequences of symbols. An n-gram is the number of its first
/// n - 1 symbols' n-gram and its last symbol; numbers are given anew for each order, in sorted order.
template <int orders>
std::array<Overlap, orders> overlaps(const std::vector<uint32_t>& hypothesis,
                                     const std::vector<uint32_t>& reference) {
  std::array<Overlap, orders> all;
  std::array<const std::vector<uint32_t>*, 2> symbols{&hypothesis, &reference};
  std::array<std::vector<uint32_t>, 2> begun{std::vector<uint32_t>(hypothesis.size()),
                                             std::vector<uint32_t>(reference.size())};
  struct Place {
    uint64_t ngram;
    uint32_t side, at;
  };
  std::vector<Place> places;
  for (size_t n = 1; n <= orders; ++n) {
    places.clear();
    for (uint32_t side = 0; side < 2; ++side)
      for (size_t i = 0; i + n <= symbols[side]->size(); ++i)
        places.push_back(
            {uint64_t{begun[side][i]} << 32 | (*symbols[side])[i + n - 1], side, static_cast<uint32_t>(i)});
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.ngram < b.ngram; });
    Overlap& overlap = all[n - 1];
    uint32_t number = 0;
    for (size_t first = 0; first < places.size(); ++number) {
      std::array<int64_t, 2> count{};
      size_t i = first;
      for (; i < places.size() && places[i].ngram == places[first].ngram; ++i) {
        ++count[places[i].side];
        begun[places[i].side][places[i].at] = number;
      }
      overlap.hypothesis += count[0];
      overlap.reference += count[1];
      overlap.matched += std::min(count[0], count[1]);
      first = i;
    }
  }
  return all;
}

}  // namespace quatrain::scores
