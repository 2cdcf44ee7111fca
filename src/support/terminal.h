#pragma once

#include <cstdio>
#include <string>

#include "quatrain/api.h"

namespace quatrain {

/// Clears what was written in the terminal's row.
inline constexpr const char* kClearRow = "\r\x1b[K";

/// What fits into the terminal's row: what does not would stay there when the row is drawn again.
QUATRAIN_API std::string cut_to_row(const std::string& text, std::FILE* terminal);

}  // namespace quatrain
