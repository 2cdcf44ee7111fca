#pragma once

#include <vector>

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {

/// The groups of a mixture's outputs, which `combine` goes by.
class Groups {
 public:
  Groups() = default;
  /// Of the outputs that `mix` has; a group's have at least two first inputs in common. Without `pairs` an
  /// output is the same sum, to the bit, in any group.
  explicit Groups(const Mix& mix, bool pairs = true);

  /// Those of some outputs, in rising order, which take the places 0, 1 ...: none is left of a group, or all.
  Groups some(const std::vector<int32_t>& outputs) const;

  /// The mixture with its groups; valid as long as both are.
  Mix of(Mix mix) const {
    mix.groups = static_cast<int32_t>(group_.size());
    mix.group = group_.data();
    mix.shared = shared_.data();
    return mix;
  }

 private:
  std::vector<MixGroup> group_;
  std::vector<float> shared_;
};

/// True where each output of a mixture with groups is one of four that are made of pairs alone, or an input
/// as it is: these cost less than a product of one row with them.
QUATRAIN_API bool has_cheap_outputs(const Mix& mix);

}  // namespace quatrain::kernels::cpu
