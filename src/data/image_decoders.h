#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

/// What knows a format. Pictures come as they are stored, (height, width, 3), uint8.
namespace quatrain::data {

/// An error where the header of a picture tells of too many pixels.
void check_pixels(const std::string& name, int64_t height, int64_t width, int64_t most_pixels);

at::Tensor decode_jpeg(std::string_view bytes, const std::string& name, int64_t most_pixels);
at::Tensor decode_png(std::string_view bytes, const std::string& name, int64_t most_pixels);

/// The orientation that the EXIF data of a JPEG file tell, from 1 (as it is stored) to 8; 1 where they tell
/// none.
int exif_orientation(std::string_view jpeg);

}  // namespace quatrain::data
