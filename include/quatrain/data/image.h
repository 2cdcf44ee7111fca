#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "quatrain/api.h"

/// Pictures in files: JPEG and PNG. Their first bytes decide which, not their names.
///
/// A picture becomes (3, height, width), uint8: red, green, blue.
///   grey         all three are equal
///   transparent  on black, mixed in linear light
///   16 bits      the nearest of 8 bits
///   JPEG's EXIF  the picture is turned as its orientation says
/// Profiles of colour are not applied. JPEG's CMYK is refused, since its colours are those of inks.
///
/// Errors are c10::Error: one sentence that names the file, what is wrong and the way out. Such are a file
/// that is missing, damaged, cut off or of another format, and one whose header tells of more pixels than are
/// allowed, for which no memory is taken.
namespace quatrain::data {

/// Pixels of the largest picture that is read, 64 Mi: as many as 8192 x 8192.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

/// The picture in the bytes of a file; messages call it `name`.
QUATRAIN_API at::Tensor decode_image(std::string_view bytes, const std::string& name,
                                     int64_t most_pixels = kMostPixels);

/// The picture in a file.
QUATRAIN_API at::Tensor read_image(const std::filesystem::path& file);

/// A picture (3, height, width), uint8, as (3, side, side): its short side becomes `side`, by antialiased
/// bilinear interpolation, and then what the long side has too much is cut off at both ends. One that would
/// have more than kMostPixels on the way, a line a pixel wide, is an error, whose message calls it `name`.
QUATRAIN_API at::Tensor fit_image(const at::Tensor& image, int64_t side,
                                  const std::string& name = "the picture");

}  // namespace quatrain::data
