#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::data {

/// What a frame of N samples is multiplied by; i = 0 .. N - 1, c = cos(2 pi i / (N - 1)).
///   povey    (.5 - .5 c)^.85, Kaldi's own: like hamming, but zero at the ends
///   hamming  .54 - .46 c
///   hanning  .5 - .5 c
enum class WindowShape { povey, hamming, hanning };
QUATRAIN_API const char* name(WindowShape shape);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API WindowShape parse_window_shape(std::string_view name);

/// Options of FilterBank. The defaults are Kaldi's, but for the 40 bands (its own: 23), the edges (snipped)
/// and the dither, which this one has none of.
struct QUATRAIN_API FilterBankOptions {
  int64_t rate = 16000;      ///< samples in a second
  double frame_length = 25;  ///< ms
  double frame_shift = 10;   ///< ms
  int64_t bands = 40;
  double low = 20;            ///< Hz, where the first band begins
  double high = 0;            ///< Hz, where the last one ends; 0 and below: beside the Nyquist frequency
  double preemphasis = 0.97;  ///< of the sample before, which each sample loses
  WindowShape window = WindowShape::povey;
  bool remove_dc_offset = true;  ///< subtracts a frame's mean
  /// True: only frames that lie within the recording, for Kaldi's alignments. False: one frame for each
  /// shift, around its middle; the recording is reflected at its ends.
  bool snip_edges = false;

  // A frame has whole samples and begins at one: at 11,025 Hz every 110 samples, which are 9.98 ms.
  int64_t length_samples() const {
    return static_cast<int64_t>(static_cast<double>(rate) * frame_length / 1000);
  }
  int64_t shift_samples() const {
    return static_cast<int64_t>(static_cast<double>(rate) * frame_shift / 1000);
  }
};

/// The logarithms of the energies in bands that are equally wide on the mel scale, as Kaldi and
/// kaldi-native-fbank define them: a frame's mean is removed, its samples x[i] (on the scale of 16 bits)
/// become x[i] - p x[i - 1], are multiplied by the window and padded with zeros to a power of two; the power
/// spectrum below the Nyquist frequency is added up under triangles with corners at equal distances in
/// 1127 ln(1 + f / 700); ln(max(energy, 2^-23)). All of it is computed in double precision, so that what a
/// recording is cut into does not show.
///
/// Throws c10::Error where the options make no frame, or a band that holds no frequency of the transform.
class QUATRAIN_API FilterBank {
 public:
  explicit FilterBank(const FilterBankOptions& options = {});

  /// Samples (samples) in [-1, 1] to (frames(samples), bands), float32.
  at::Tensor operator()(const at::Tensor& samples) const;

  /// How many frames a recording of so many samples has; none where it is very short.
  int64_t frames(int64_t samples) const;
  const FilterBankOptions& options() const { return options_; }

  // For recordings that are not there as a whole.

  /// How many frames lie within the first `samples` of a longer recording.
  int64_t whole_frames(int64_t samples) const;
  /// Where a frame begins; before 0 where the recording is reflected.
  int64_t first_sample(int64_t frame) const;
  int64_t frame_length() const { return length_; }  ///< in samples
  /// Frames from .. to - 1 of a recording of `total` samples, of which `samples` are those from `begin` on.
  at::Tensor compute(const at::Tensor& samples, int64_t begin, int64_t total, int64_t from, int64_t to) const;

 private:
  at::Tensor energies(const at::Tensor& frames) const;

  FilterBankOptions options_;
  int64_t length_, shift_, padded_;  // samples
  at::Tensor window_;                // (length), float64
  at::Tensor triangles_;             // (padded / 2, bands), float64
};

}  // namespace quatrain::data
