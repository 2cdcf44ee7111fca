#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace quatrain::scores {

/// How many n-grams of one order a hypothesis and its references together hold, and how many of the
/// hypothesis match: each at most as often as in the reference that has it most often.
struct Overlap {
  int64_t hypothesis = 0, references = 0, matched = 0;
};

/// Overlaps of the orders 1 to `orders` of sequences of symbols, of which the first is the hypothesis. An
/// n-gram is the number of its first n - 1 symbols' n-gram and its last symbol; numbers are given anew for
/// each order, in sorted order.
template <int orders>
std::array<Overlap, orders> overlaps(std::span<const std::vector<uint32_t>> symbols) {
  std::array<Overlap, orders> all;
  std::vector<std::vector<uint32_t>> begun;
  for (const auto& sequence : symbols) begun.emplace_back(sequence.size());
  struct Place {
    uint64_t ngram;
    uint32_t side, at;
  };
  std::vector<Place> places;
  std::vector<int64_t> count(symbols.size());
  for (size_t n = 1; n <= orders; ++n) {
    places.clear();
    for (uint32_t side = 0; side < symbols.size(); ++side)
      for (size_t i = 0; i + n <= symbols[side].size(); ++i)
        places.push_back(
            {uint64_t{begun[side][i]} << 32 | symbols[side][i + n - 1], side, static_cast<uint32_t>(i)});
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.ngram < b.ngram; });
    Overlap& overlap = all[n - 1];
    uint32_t number = 0;
    for (size_t first = 0; first < places.size(); ++number) {
      std::fill(count.begin(), count.end(), 0);
      size_t i = first;
      for (; i < places.size() && places[i].ngram == places[first].ngram; ++i) {
        ++count[places[i].side];
        begun[places[i].side][places[i].at] = number;
      }
      overlap.hypothesis += count[0];
      overlap.references += std::accumulate(count.begin() + 1, count.end(), int64_t{0});
      overlap.matched += std::min(count[0], *std::max_element(count.begin() + 1, count.end()));
      first = i;
    }
  }
  return all;
}

}  // namespace quatrain::scores
