#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::train {

/// XXH3, 128 bits, as 32 hexadecimal digits: what `xxhsum -H2` prints. It finds accidents, not attackers.
QUATRAIN_API std::string checksum(std::string_view bytes);

/// Of a file's content; a file that cannot be read is a std::runtime_error.
QUATRAIN_API std::string checksum_of_file(const std::filesystem::path& path);

/// The text of a JSON object with one more member, the last: "checksum", the first 16 digits for all that
/// stands before them.
QUATRAIN_API std::string with_checksum(std::string_view object);

/// Whether an object's text is as with_checksum() gave it; nothing where its last member is not a checksum
/// (older versions wrote none). Together with the rules of JSON it notices every bit that changes.
QUATRAIN_API std::optional<bool> holds_checksum(std::string_view object);

}  // namespace quatrain::train
