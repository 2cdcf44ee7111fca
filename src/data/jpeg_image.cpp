#include <turbojpeg.h>

#include <torch/types.h>

#include <memory>

#include "data/image_decoders.h"

namespace quatrain::data {
namespace {

struct CloseJpeg {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};

at::Tensor turned(const at::Tensor& image, int orientation) {
  const at::Tensor straight = orientation >= 5 ? image.transpose(0, 1) : image;
  switch (orientation) {
    case 2:
    case 6:
      return straight.flip({1});
    case 3:
    case 7:
      return straight.flip({0, 1});
    case 4:
    case 8:
      return straight.flip({0});
    default:
      return straight;
  }
}

}  // namespace

at::Tensor decode_jpeg(std::string_view bytes, const std::string& name, int64_t most_pixels) {
  const std::unique_ptr<void, CloseJpeg> decoder(tjInitDecompress());
  TORCH_CHECK(decoder, "image: libjpeg-turbo cannot start: ", tjGetErrorStr2(nullptr));
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto check = [&](bool done, const char* otherwise = nullptr) {
    TORCH_CHECK(done, "image: the JPEG file ", name, " is damaged, cut off or of an unusual kind (",
                otherwise ? otherwise : tjGetErrorStr2(decoder.get()),
                "); copy it again, or convert it to PNG");
  };
  int width = 0, height = 0, sampling = 0, colours = 0;
  check(tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &sampling, &colours) == 0);
  check(width > 0 && height > 0, "It holds no picture");
  TORCH_CHECK(colours != TJCS_CMYK && colours != TJCS_YCCK, "image: the JPEG file ", name,
              " is stored in CMYK, the colours of inks; convert it to RGB, for example by: magick FILE "
              "-colorspace sRGB FILE.png");
  check_pixels(name, height, width, most_pixels);
  const at::Tensor image = torch::empty({height, width, 3}, torch::kUInt8);
  // The exact transform, which gives the same numbers on every machine. A warning is an error, since a file
  // that is cut off is no more to the decoder; and no picture needs hundreds of passes.
  constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  check(tjDecompress2(decoder.get(), data, bytes.size(), image.data_ptr<uint8_t>(), width, /*pitch=*/0,
                      height, TJPF_RGB, kFlags) == 0);
  return turned(image, exif_orientation(bytes));
}

}  // namespace quatrain::data
