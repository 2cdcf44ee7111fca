#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::data {

/// "WAV", "FLAC" or "SPHERE", by the first 8 bytes of a file or more; empty: none of them. A RIFF that is no
/// WAV begins like one.
QUATRAIN_API std::string_view audio_format(std::string_view head);

/// How many frames the header of a WAV, FLAC or SPHERE file promises; none where a WAV says that it does not
/// know. libsndfile does not tell: it reads half a WAV or SPHERE file as if that were all of it. Throws
/// c10::Error, which names the file, where its first bytes are of no known kind, or the header is damaged or
/// has no length.
std::optional<int64_t> promised_frames(const std::filesystem::path& file);

}  // namespace quatrain::data
