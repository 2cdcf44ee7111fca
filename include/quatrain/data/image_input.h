#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "quatrain/api.h"

/// How pictures become what a model is given: numbers of mean 0 and deviation 1, and four of them for a pixel
/// where it is to be a quaternion.
namespace quatrain::data {

/// What the channels of a model's input are, after normalisation.
///   rgb         R, G, B
///   zero_first  0, R, G, B: an imaginary quaternion
///   grey_first  grey, R, G, B, with grey = .299 R + .587 G + .114 B
///   zero_last   R, G, B, 0
enum class ColourMode { rgb, zero_first, grey_first, zero_last };
/// All of them, for lists and messages.
inline constexpr std::array kColourModes{ColourMode::rgb, ColourMode::zero_first, ColourMode::grey_first,
                                         ColourMode::zero_last};
QUATRAIN_API const char* name(ColourMode mode);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API ColourMode parse_colour_mode(std::string_view name);
/// Channels of the input: 3 or 4.
QUATRAIN_API int64_t channels(ColourMode mode);

/// Mean and standard deviation of red, green and blue, of which 0 is none and 1 is all.
struct QUATRAIN_API PixelScale {
  std::array<double, 3> mean{0, 0, 0};
  std::array<double, 3> deviation{1, 1, 1};
};

/// The scale of pictures (N, 3, height, width), uint8, over all their pixels; sums are exact. A deviation is
/// 1 where all pixels are equal. At least one picture.
QUATRAIN_API PixelScale measure_pixels(const at::Tensor& images);

/// Pictures (N, 3, height, width), uint8, as (N, channels(mode), height, width), float32:
/// (pixel / 255 - mean) / deviation. Deviations must be above zero, and all numbers finite.
QUATRAIN_API at::Tensor to_input(const at::Tensor& images, const PixelScale& scale, ColourMode mode);

}  // namespace quatrain::data
