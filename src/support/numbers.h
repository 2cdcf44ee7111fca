#pragma once

#include <cstdint>
#include <string>

#include "quatrain/api.h"

/// Numbers as people read them; the point is a point in every locale.
namespace quatrain {

/// 1234567 -> "1,234,567".
QUATRAIN_API std::string grouped(int64_t number);
/// "1 seed", "3 seeds".
QUATRAIN_API std::string counted(int64_t number, const std::string& what);
/// A number with that many digits after the point.
QUATRAIN_API std::string fixed(double number, int digits);
/// "0.123", "1.2e-07".
QUATRAIN_API std::string short_number(double value);
/// 0.931 -> "93.1%".
QUATRAIN_API std::string percent(double share, int digits = 1);
/// Bytes as "1.63 MB".
QUATRAIN_API std::string bytes(double size);
/// Seconds as "12.3 us", "4.56 ms", "1.2 s".
QUATRAIN_API std::string seconds(double time);
/// Seconds as "12s", "4m05s", "1h02m".
QUATRAIN_API std::string duration(double seconds);
/// "0.27x"; "-" where there is nothing to compare with.
QUATRAIN_API std::string ratio(double value, double reference);

}  // namespace quatrain
