#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace quatrain::data {

/// The kinds of audio files, by their first bytes.
enum class AudioKind { wav, flac, sphere };

/// What libsndfile does not tell: it reads half a WAV or SPHERE file as if that were all of it.
struct AudioHeader {
  AudioKind kind;
  std::optional<int64_t> frames;  ///< that the header promises; none where it says that they are unknown
};

/// Reads the header of a WAV or SPHERE file, and of others the first bytes. Throws c10::Error, which names
/// the file, where these are of no known kind or the header has no length.
AudioHeader read_audio_header(const std::filesystem::path& file);

}  // namespace quatrain::data
