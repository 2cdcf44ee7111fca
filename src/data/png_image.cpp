#include <png.h>

#include <torch/types.h>

#include "data/image_decoders.h"

namespace quatrain::data {
namespace {

/// libpng's image, freed at the end.
struct Png : png_image {
  Png() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(this); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
};

/// Whether the file has its last chunk, which libpng does not read. The chunks before it must be good.
bool has_end(std::string_view bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // a chunk's length, its name and its checksum
  for (size_t chunk = kSignature; chunk + kAround <= bytes.size();) {
    if (bytes.substr(chunk + 4, 4) == "IEND") return true;
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(bytes[chunk + i]);
    chunk += kAround + length;
  }
  return false;
}

}  // namespace

at::Tensor decode_png(std::string_view bytes, const std::string& name, int64_t most_pixels) {
  Png png;
  const auto check = [&](bool done, const char* otherwise = nullptr) {
    TORCH_CHECK(done, "image: the PNG file ", name, " is damaged or cut off (",
                otherwise ? otherwise : png.message, "); copy or convert it again");
  };
  check(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0);
  check_pixels(name, png.height, png.width, most_pixels);
  png.format = PNG_FORMAT_RGB;
  // Without this 16 bits are taken for linear light where the file does not say what they are.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const at::Tensor image =
      torch::empty({static_cast<int64_t>(png.height), static_cast<int64_t>(png.width), 3}, torch::kUInt8);
  const png_color black{0, 0, 0};
  check(png_image_finish_read(&png, &black, image.data_ptr<uint8_t>(), /*row_stride=*/0,
                              /*colormap=*/nullptr) != 0);
  check(has_end(bytes), "it has no IEND chunk");
  return image;
}

}  // namespace quatrain::data
