#pragma once

#include <sndfile.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace quatrain::data {

/// Writes a FLAC file of whole numbers of 16 bits.
inline void write_flac(const std::filesystem::path& file, const std::vector<int16_t>& samples, int channels,
                       int rate) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
  SNDFILE* stream = sf_open(file.c_str(), SFM_WRITE, &info);
  sf_write_short(stream, samples.data(), static_cast<sf_count_t>(samples.size()));
  sf_close(stream);
}

}  // namespace quatrain::data
