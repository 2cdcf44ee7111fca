#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain {

/// The word of `known` that is fewest edits away from `word` (insert, delete, replace, swap of neighbours);
/// empty where none is near, that is where more than a third of the longer word would have to change.
QUATRAIN_API std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// For the end of an error's sentence: ` (did you mean NAME?)`, or nothing where no known word is near.
QUATRAIN_API std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace quatrain
