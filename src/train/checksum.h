#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::train {

/// XXH3, 128 bits, as 32 hexadecimal digits: what `xxhsum -H2` prints. It finds accidents, not attackers.
QUATRAIN_API std::string checksum(std::string_view bytes);

/// Of a file's content; a file that cannot be read is a std::runtime_error.
std::string checksum_of_file(const std::filesystem::path& path);

}  // namespace quatrain::train
