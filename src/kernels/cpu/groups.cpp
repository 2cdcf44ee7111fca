#include "kernels/cpu/groups.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace quatrain::kernels::cpu {

namespace {

/// How many first inputs `count` outputs from `first` on have in common; none where there are fewer outputs.
int32_t common(const Mix& mix, int32_t first, int32_t count) {
  if (first + count > mix.outputs) return 0;
  const int32_t begin = mix.begin[first];
  int32_t found = mix.begin[first + 1] - begin;
  for (int32_t o = first + 1; o < first + count; ++o) {
    int32_t e = 0;
    while (e < found && mix.begin[o] + e < mix.begin[o + 1] &&
           mix.source[mix.begin[o] + e] == mix.source[begin + e])
      ++e;
    found = e;
  }
  return found;
}

/// Sets `paired`, and what goes with it, of a group with these coefficients.
void find_pairs(MixGroup& group, const float* coefficients) {
  if (group.count != 4 || group.common < 4) return;
  for (int32_t pair = 0; pair < 2; ++pair) {
    const float *const a = coefficients + 2 * pair * group.count, *const b = a + group.count;
    const bool opposite = a[0] != b[0];
    for (int32_t t = 0; t < group.count; ++t)
      if (b[t] != (opposite == (t % 2 == 0) ? -a[t] : a[t])) return;
    group.opposite[pair] = opposite;
  }
  group.paired = true;
  group.ones = std::all_of(coefficients, coefficients + group.count, [](float c) { return c == 1; });
  const float factor = coefficients[0];
  const std::array<float, 8> sums = {factor, factor, factor, factor, factor, -factor, factor, -factor},
                             signs = {factor, factor, -factor, -factor, factor, -factor, -factor, factor};
  int exponent = 0;
  if (std::equal(sums.begin(), sums.end(), coefficients) &&
      std::equal(signs.begin(), signs.end(), coefficients + sums.size()) &&
      std::frexp(factor, &exponent) == 0.5F)
    group.hadamard = factor;
}

}  // namespace

bool has_cheap_outputs(const Mix& mix) {
  return std::all_of(mix.group, mix.group + mix.groups, [&](const MixGroup& group) {
    const int32_t e = mix.begin[group.first], end = mix.begin[group.first + 1];
    const bool copied = group.count == 1 && end == e + 1 && mix.coefficient[e] == 1;
    return copied || (group.paired && group.common == 4 && group.more == More::none);
  });
}

Groups::Groups(const Mix& mix, bool pairs) {
  for (int32_t first = 0; first < mix.outputs;) {
    // One input alone may as well be loaded again.
    int32_t count = 4;
    while (count > 1 && common(mix, first, count) < 2) count /= 2;
    const int32_t shared = common(mix, first, count);
    int32_t fewest = mix.begin[first + 1] - mix.begin[first] - shared, most = fewest;
    for (int32_t o = first + 1; o < first + count; ++o) {
      const int32_t further = mix.begin[o + 1] - mix.begin[o] - shared;
      fewest = std::min(fewest, further), most = std::max(most, further);
    }
    const More more = most == 0 ? More::none : fewest == 1 && most == 1 ? More::one : More::any;
    group_.push_back({first, count, shared, static_cast<int32_t>(shared_.size()), more});
    for (int32_t e = 0; e < shared; ++e)
      for (int32_t o = first; o < first + count; ++o) shared_.push_back(mix.coefficient[mix.begin[o] + e]);
    if (pairs) find_pairs(group_.back(), shared_.data() + group_.back().coefficients);
    first += count;
  }
}

Groups Groups::some(const std::vector<int32_t>& outputs) const {
  Groups found;
  found.shared_ = shared_;
  for (MixGroup group : group_) {
    const auto at = std::lower_bound(outputs.begin(), outputs.end(), group.first);
    if (at == outputs.end() || *at != group.first) continue;
    group.first = static_cast<int32_t>(at - outputs.begin());
    found.group_.push_back(group);
  }
  return found;
}

}  // namespace quatrain::kernels::cpu
