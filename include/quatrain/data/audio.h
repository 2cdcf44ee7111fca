#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>

#include "quatrain/api.h"

struct sf_private_tag;

namespace quatrain::data {

/// What the header of an audio file says.
struct QUATRAIN_API AudioInfo {
  int64_t rate = 0;  ///< samples of a channel in a second
  int64_t channels = 0;
  int64_t frames = 0;  ///< samples of each channel
  double seconds() const { return static_cast<double>(frames) / static_cast<double>(rate); }
};

/// A recording in memory.
struct QUATRAIN_API Audio {
  at::Tensor samples;  ///< (channels, frames), float32; whole numbers of a file are scaled to [-1, 1)
  int64_t rate = 0;    ///< samples of a channel in a second
  double seconds() const { return static_cast<double>(samples.size(1)) / static_cast<double>(rate); }
};

/// An audio file that is read in pieces: WAV (8 to 32 bits, float, A-law, mu-law), FLAC, or SPHERE without
/// compression. Its first bytes decide which, not its name. Samples of floats are taken as they are.
///
/// Errors are c10::Error and name the file: it is missing or of another format, its header is damaged or
/// does not say how long it is, it holds fewer frames than its header promises (both numbers are named), or
/// a sample is no finite number or beyond 1e9. A file without any frames is none. A WAV that was written to a
/// pipe, whose header holds the usual mark of an unknown length, goes on to the end of its file.
class QUATRAIN_API AudioFile {
 public:
  explicit AudioFile(std::filesystem::path file);

  const AudioInfo& info() const { return info_; }
  /// The next frames as (channels, frames), float32: `most`, or fewer at the end, where none are left.
  at::Tensor read(int64_t most = std::numeric_limits<int64_t>::max());
  /// Goes to a frame, from 0 (the first) to info().frames (the end); no frame before it is read. Any other
  /// number is an error, and so is a frame that a damaged file does not lead to.
  void seek(int64_t frame);

 private:
  struct QUATRAIN_API Close {
    void operator()(sf_private_tag* stream) const;
  };
  std::filesystem::path file_;
  std::unique_ptr<sf_private_tag, Close> stream_;
  AudioInfo info_;
  int64_t next_ = 0;  // the frame that is read next
};

/// Reads a whole file; errors as AudioFile.
QUATRAIN_API Audio read_audio(const std::filesystem::path& file);
/// Reads a file's header alone, as for batches by duration; errors as AudioFile. A WAV or SPHERE file that is
/// cut off is found here too, a FLAC file only when it is read.
QUATRAIN_API AudioInfo read_audio_info(const std::filesystem::path& file);

/// One channel of (channels, frames), from 0 on, as (frames).
QUATRAIN_API at::Tensor choose_channel(const at::Tensor& samples, int64_t channel);
/// The mean of the channels of (channels, frames), as (frames).
QUATRAIN_API at::Tensor mix_channels(const at::Tensor& samples);

/// Samples (..., frames) at the rate `from`, as float32 (..., round(frames * to / from)) at the rate `to`, by
/// libsamplerate's best interpolation (144 dB; frequencies up to 96% of the lower Nyquist frequency pass).
/// The rates are in any common unit and differ by a factor of at most 256.
QUATRAIN_API at::Tensor resample(const at::Tensor& samples, int64_t from, int64_t to);

}  // namespace quatrain::data
