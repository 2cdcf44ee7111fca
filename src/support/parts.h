#pragma once

#include <cstdint>

namespace quatrain {

/// How many parts of at most `each`, which is above 0, make up `size`. The sum of the two may be beyond
/// int64.
constexpr int64_t count_parts(int64_t size, int64_t each) {
  return size / each + (size % each != 0);
}

}  // namespace quatrain
