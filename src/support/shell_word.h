#pragma once

#include <filesystem>
#include <string>

#include "quatrain/api.h"

namespace quatrain {

/// A path as one word of a shell's command, for advice that is copied: in quotes where it holds anything but
/// letters, digits and ./_-+:@%, and with ./ before a dash at its start.
QUATRAIN_API std::string shell_word(const std::filesystem::path& path);

}  // namespace quatrain
