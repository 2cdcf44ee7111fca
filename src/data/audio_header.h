#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace quatrain::data {

/// How many frames the header of a WAV, FLAC or SPHERE file promises; none where a WAV says that it does not
/// know. libsndfile does not tell: it reads half a WAV or SPHERE file as if that were all of it. Throws
/// c10::Error, which names the file, where its first bytes are of no known kind, or the header is damaged or
/// has no length.
std::optional<int64_t> promised_frames(const std::filesystem::path& file);

}  // namespace quatrain::data
