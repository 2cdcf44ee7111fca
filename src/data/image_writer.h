#pragma once

#include <array>
#include <cstdint>

#include "quatrain/data/image_input.h"
#include "quatrain/data/image_loader.h"

namespace quatrain::data {

/// Some of the picture along an axis, in shares of it.
struct ImageSpan {
  double begin = 0, length = 1;
};

/// Where the pixels of an input come from.
struct ImageMove {
  ImageSpan rows, columns;             // enlarged to the whole picture first
  int64_t down = 0, right = 0;         // a pixel is that so many rows below and columns to the right of it
  bool flip = false;                   // and then left and right change places
  int64_t top = 0, left = 0, cut = 0;  // a square of zeros, which may reach beyond the picture
};

/// What becomes of a picture.
ImageMove draw_move(const ImageAugmentation& augmentation, int64_t height, int64_t width, uint64_t seed,
                    int64_t epoch, int64_t place);

/// Writes pictures as a model's input, one at a time; const calls may run at the same time.
class ImageWriter {
 public:
  ImageWriter(const PixelScale& scale, ColourMode mode, int64_t height, int64_t width);

  /// From (3, height, width) to (channels(mode), height, width).
  void write(const uint8_t* image, const ImageMove& move, float* input) const;

 private:
  std::array<std::array<float, 256>, 3> normalised_;  // of each channel and value
  ColourMode mode_;
  int64_t height_, width_;
};

/// An error where it is not (N, 3, height, width), uint8.
void check_images(const char* function, const at::Tensor& images);

}  // namespace quatrain::data
