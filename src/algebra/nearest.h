#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quatrain {

/// The word of `known` that is fewest edits away from `word` (insert, delete, replace, swap of neighbours);
/// empty where none is near, that is where more than a third of the longer word would have to change.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// For the end of an error's sentence: ` (did you mean NAME?)`, or nothing where no known word is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace quatrain
