#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <utility>

namespace quatrain::data {

/// Each set of what is generated needs an example.
inline void check_sizes(const char* function, int64_t train, int64_t dev, int64_t test) {
  for (const auto& [set, size] : {std::pair("train", train), {"dev", dev}, {"test", test}})
    TORCH_CHECK(size >= 1, function, ": ", set, " must be at least 1, got ", size);
}

}  // namespace quatrain::data
