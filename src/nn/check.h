#pragma once

#include <c10/util/StringUtil.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

/// Refusals of a layer's options: std::invalid_argument with one sentence.
namespace quatrain::nn {

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw std::invalid_argument(c10::str(parts...));
}

template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) refuse(parts...);
}

/// Refuses a size that is not a positive multiple of `divisor`, naming the nearest ones. `divisor_text`: what
/// it is, "n". `way_out`: what else may be done.
inline void require_divisible(const char* layer, const char* argument, int64_t value, int64_t divisor,
                              const char* divisor_text, const char* way_out = "") {
  require(value > 0, layer, ": ", argument, " must be positive, got ", value);
  require(divisor > 0, layer, ": ", divisor_text, " must be positive, got ", divisor);
  if (value % divisor == 0) return;
  const int64_t below = value / divisor * divisor;
  refuse(layer, ": ", argument, " must be divisible by ", divisor_text, " = ", divisor, ", got ", value,
         " (nearest: ", below > 0 ? c10::str(below, ", ") : std::string(), below + divisor,
         *way_out ? "; " : "", way_out, ")");
}

inline void require_at_least_zero(const char* layer, const char* argument, double value) {
  require(std::isfinite(value) && value >= 0, layer, ": ", argument,
          " must be a finite number that is at least 0, got ", value);
}

inline void require_probability(const char* layer, const char* argument, double p) {
  require(p >= 0 && p <= 1, layer, ": ", argument, " must be between 0 and 1, got ", p);
}

}  // namespace quatrain::nn
