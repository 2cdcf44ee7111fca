#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/data/image_set.h"

/// Pictures as files, made byte for byte by the libraries that read them.
namespace quatrain::data {

inline std::vector<int64_t> labels_of(const ImageSet& set) {
  const auto labels = set.labels.contiguous();
  return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()};
}

/// A picture (3, height, width), uint8, of random pixels.
inline at::Tensor random_picture(int64_t height, int64_t width, uint64_t seed = 0) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randint(0, 256, {3, height, width}, generator, torch::kUInt8);
}

/// (channels, height, width), uint8 or (for 16 bits) int32, as a PNG of one of libpng's types of colour.
inline std::string png_file(const at::Tensor& planes, int colour_type, int bits = 8,
                            bool interlaced = false) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(bytes), count);
      },
      nullptr);
  const auto height = planes.size(1), width = planes.size(2);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), bits,
               colour_type, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const auto values = planes.permute({1, 2, 0}).to(torch::kInt32).contiguous();
  std::string bytes;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const int32_t value = values.data_ptr<int32_t>()[i];
    if (bits == 16) bytes += static_cast<char>(value >> 8);
    bytes += static_cast<char>(value & 0xFF);
  }
  std::vector<png_bytep> rows;
  const size_t row = bytes.size() / static_cast<size_t>(height);
  for (int64_t i = 0; i < height; ++i)
    rows.push_back(reinterpret_cast<png_bytep>(bytes.data()) + static_cast<size_t>(i) * row);
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

inline std::string png_file(const at::Tensor& picture) {
  return png_file(picture, PNG_COLOR_TYPE_RGB);
}

/// (3, height, width) or grey (1, height, width) or CMYK (4, height, width), uint8, as a JPEG of best
/// quality.
inline std::string jpeg_file(const at::Tensor& planes, int flags = 0) {
  const tjhandle coder = tjInitCompress();
  const auto pixels = planes.permute({1, 2, 0}).contiguous();
  const int64_t channels = planes.size(0);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  tjCompress2(coder, pixels.data_ptr<uint8_t>(), static_cast<int>(planes.size(2)), 0,
              static_cast<int>(planes.size(1)),
              channels == 1   ? TJPF_GRAY
              : channels == 3 ? TJPF_RGB
                              : TJPF_CMYK,
              &bytes, &size, channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 100, flags);
  std::string file(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(coder);
  return file;
}

/// A JPEG with EXIF data that tell an orientation, its numbers with the low byte first or last.
inline std::string with_orientation(const std::string& jpeg, int orientation, bool low_first) {
  const auto number = [&](uint32_t value, size_t width) {
    std::string bytes(width, '\0');
    for (size_t i = 0; i < width; ++i)
      bytes[low_first ? i : width - 1 - i] = static_cast<char>(value >> (8 * i));
    return bytes;
  };
  // One directory with the resolution's unit, which is passed over, and the orientation.
  const std::string tiff = std::string(low_first ? "II" : "MM") + number(42, 2) + number(8, 4) +
                           number(2, 2) + number(0x0128, 2) + number(3, 2) + number(1, 4) + number(2, 2) +
                           number(0, 2) + number(0x0112, 2) + number(3, 2) + number(1, 4) +
                           number(static_cast<uint32_t>(orientation), 2) + number(0, 2) + number(0, 4);
  const std::string content = std::string("Exif\0\0", 6) + tiff;
  const auto length = static_cast<uint16_t>(content.size() + 2);
  const std::string segment =
      std::string("\xff\xe1") + static_cast<char>(length >> 8) + static_cast<char>(length & 0xFF);
  return jpeg.substr(0, 2) + segment + content + jpeg.substr(2);
}

}  // namespace quatrain::data
