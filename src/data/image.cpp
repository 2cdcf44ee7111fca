#include "quatrain/data/image.h"

#include <torch/types.h>

#include <algorithm>

#include "data/image_decoders.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace {

constexpr size_t kMostBytes = size_t{1} << 28;  // of a file; a picture without compression has as many
constexpr size_t kShown = 12;                   // bytes of another format that a message shows

}  // namespace

void check_pixels(const std::string& name, int64_t height, int64_t width, int64_t most_pixels) {
  TORCH_CHECK(height >= 1 && width >= 1 && height <= most_pixels / width, "image: the header of ", name,
              " tells of ", width, " x ", height, " pixels; there may be ", most_pixels,
              ": it is damaged, or must be made smaller");
}

at::Tensor decode_image(std::string_view bytes, const std::string& name, int64_t most_pixels) {
  TORCH_CHECK(!bytes.empty(), "image: ", name, " is empty; copy or convert it again");
  at::Tensor image;
  if (bytes.starts_with("\xff\xd8\xff"))
    image = decode_jpeg(bytes, name, most_pixels);
  else if (bytes.starts_with("\x89PNG\r\n\x1a\n"))
    image = decode_png(bytes, name, most_pixels);
  else
    TORCH_CHECK(false, "image: ", name, " begins with ", readable(bytes.substr(0, kShown)),
                R"(, but a JPEG file begins with "\xff\xd8\xff" and PNG with "\x89PNG"; convert it, for )"
                "example by: magick FILE FILE.png");
  return image.permute({2, 0, 1}).contiguous();
}

at::Tensor read_image(const std::filesystem::path& file) {
  std::string bytes;
  try {
    bytes = read_file(file, kMostBytes);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "image: ", file.string(), " cannot be read: ", error.what());
  }
  return decode_image(bytes, file.string());
}

at::Tensor fit_image(const at::Tensor& image, int64_t side, const std::string& name) {
  TORCH_CHECK(image.dim() == 3 && image.size(0) == 3 && image.numel() > 0 && image.scalar_type() == at::kByte,
              "fit_image: the image must be (3, height, width) of uint8, got ", image.sizes(), " of ",
              image.scalar_type());
  TORCH_CHECK(side >= 2 && side <= kMostPixels / side, "fit_image: side must be from 2 to 8192, got ", side);
  const int64_t height = image.size(1), width = image.size(2), shorter = std::min(height, width);
  const int64_t longer = side * std::max(height, width) / shorter;
  TORCH_CHECK(longer <= kMostPixels / side, "image: ", name, " has ", width, " x ", height,
              " pixels, which are too narrow to become ", side, " x ", side, "; cut it first");
  const int64_t to_height = height <= width ? side : longer, to_width = height <= width ? longer : side;
  const at::Tensor resized =
      shorter == side
          ? image
          : at::_upsample_bilinear2d_aa(image.unsqueeze(0), {to_height, to_width}, /*align_corners=*/false)
                .squeeze(0);
  return resized.narrow(1, (to_height - side) / 2, side).narrow(2, (to_width - side) / 2, side).contiguous();
}

}  // namespace quatrain::data
