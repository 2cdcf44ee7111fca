#include "quatrain/data/image_input.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/image_writer.h"
#include "data/random.h"
#include "support/enum_names.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<ColourMode, 4> kColourModeNames{{{ColourMode::rgb, "rgb"},
                                                     {ColourMode::zero_first, "zero_first"},
                                                     {ColourMode::grey_first, "grey_first"},
                                                     {ColourMode::zero_last, "zero_last"}}};
constexpr double kLargest = 255;  // of a pixel

/// Of an axis of the enlarged part the pixel that lies `weight` of the way from the first to the second one.
struct Between {
  int64_t first, second;
  float weight;
};
std::vector<Between> enlarged(const ImageSpan& part, int64_t size) {
  std::vector<Between> all;
  const auto whole = static_cast<double>(size);
  for (int64_t i = 0; i < size; ++i) {
    const double middle = part.begin * whole + (static_cast<double>(i) + .5) * part.length - .5,
                 at = std::clamp(middle, 0., whole - 1);
    const auto first = static_cast<int64_t>(at);
    all.push_back(
        {first, std::min(first + 1, size - 1), static_cast<float>(at - static_cast<double>(first))});
  }
  return all;
}

/// The place of red among the channels.
int64_t red_channel(ColourMode mode) {
  return mode == ColourMode::zero_first || mode == ColourMode::grey_first ? 1 : 0;
}

}  // namespace

const char* name(ColourMode mode) {
  return name_of(kColourModeNames, mode);
}

ColourMode parse_colour_mode(std::string_view text) {
  return parse_name(kColourModeNames, "colour:", text);
}

int64_t channels(ColourMode mode) {
  return mode == ColourMode::rgb ? 3 : 4;
}

void check_images(const char* function, const at::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == 3 && images.scalar_type() == at::kByte &&
                  images.is_contiguous() && images.is_cpu(),
              function, ": images must be (N, 3, height, width) of uint8, contiguous and on the CPU, got ",
              images.sizes(), " of ", images.scalar_type());
}

PixelScale measure_pixels(const at::Tensor& images) {
  check_images("measure_pixels", images);
  TORCH_CHECK(images.numel() > 0, "measure_pixels: there must be at least one pixel, got none");
  const int64_t pixels = images.size(2) * images.size(3);
  std::array<std::array<int64_t, 256>, 3> counts{};
  const auto* pixel = images.data_ptr<uint8_t>();
  for (int64_t i = 0; i < images.size(0); ++i)
    for (auto& of_channel : counts)
      for (int64_t j = 0; j < pixels; ++j) ++of_channel[*pixel++];

  PixelScale scale;
  const auto all = static_cast<double>(images.size(0) * pixels);
  for (size_t c = 0; c < 3; ++c) {
    int64_t sum = 0;
    for (size_t value = 0; value < 256; ++value) sum += counts[c][value] * static_cast<int64_t>(value);
    const double mean = static_cast<double>(sum) / all;
    double squares = 0;
    for (size_t value = 0; value < 256; ++value) {
      const double distance = static_cast<double>(value) - mean;
      squares += static_cast<double>(counts[c][value]) * distance * distance;
    }
    scale.mean[c] = mean / kLargest;
    scale.deviation[c] = squares > 0 ? std::sqrt(squares / all) / kLargest : 1;
  }
  return scale;
}

at::Tensor to_input(const at::Tensor& images, const PixelScale& scale, ColourMode mode) {
  check_images("to_input", images);
  const ImageWriter writer(scale, mode, images.size(2), images.size(3));
  const auto input = torch::empty({images.size(0), channels(mode), images.size(2), images.size(3)});
  const int64_t pixels = images.size(2) * images.size(3);
  for (int64_t i = 0; i < images.size(0); ++i)
    writer.write(images.data_ptr<uint8_t>() + i * 3 * pixels, {},
                 input.data_ptr<float>() + i * channels(mode) * pixels);
  return input;
}

ImageMove draw_move(const ImageAugmentation& augmentation, int64_t height, int64_t width, uint64_t seed,
                    int64_t epoch, int64_t place) {
  LineRandom random(mixed(mixed(seed) + static_cast<uint64_t>(epoch)), static_cast<uint64_t>(place));
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(n))); };
  ImageMove move;
  move.down = below(2 * augmentation.padding + 1) - augmentation.padding;
  move.right = below(2 * augmentation.padding + 1) - augmentation.padding;
  move.flip = random.chance(.5) && augmentation.flip;
  move.top = below(height) - augmentation.cutout / 2;
  move.left = below(width) - augmentation.cutout / 2;
  move.cut = augmentation.cutout;
  // Drawn again where a part would reach beyond the picture, and at last all of it is taken.
  constexpr int kTries = 10;
  const double longest = std::log(4. / 3);
  for (int i = 0; augmentation.part < 1 && i < kTries; ++i) {
    const double area = augmentation.part + (1 - augmentation.part) * random.fraction(),
                 ratio = std::exp((2 * random.fraction() - 1) * longest), rows = std::sqrt(area / ratio),
                 columns = std::sqrt(area * ratio);
    if (rows > 1 || columns > 1) continue;
    move.rows = {(1 - rows) * random.fraction(), rows};
    move.columns = {(1 - columns) * random.fraction(), columns};
    break;
  }
  return move;
}

ImageWriter::ImageWriter(const PixelScale& scale, ColourMode mode, int64_t height, int64_t width)
    : mode_(mode), height_(height), width_(width) {
  for (size_t c = 0; c < 3; ++c) {
    const double mean = scale.mean[c], deviation = scale.deviation[c];
    TORCH_CHECK(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0,
                "PixelScale: means must be finite and deviations above 0, got ", mean, " and ", deviation,
                " for channel ", c);
    for (size_t value = 0; value < 256; ++value)
      normalised_[c][value] = static_cast<float>((static_cast<double>(value) / kLargest - mean) / deviation);
  }
}

void ImageWriter::write(const uint8_t* image, const ImageMove& move, float* input) const {
  const int64_t pixels = height_ * width_;
  std::fill_n(input, channels(mode_) * pixels, 0.0F);
  float* red = input + red_channel(mode_) * pixels;
  const bool whole = move.rows.length == 1 && move.columns.length == 1;
  std::vector<Between> rows, columns;
  if (!whole) rows = enlarged(move.rows, height_), columns = enlarged(move.columns, width_);
  for (int64_t row = 0; row < height_; ++row) {
    const int64_t from_row = row + move.down;
    if (from_row < 0 || from_row >= height_) continue;
    for (int64_t column = 0; column < width_; ++column) {
      const int64_t from_column = (move.flip ? width_ - 1 - column : column) + move.right;
      const bool cut = row >= move.top && row < move.top + move.cut && column >= move.left &&
                       column < move.left + move.cut;
      if (from_column < 0 || from_column >= width_ || cut) continue;
      for (int64_t c = 0; c < 3; ++c) {
        const auto at = [&](int64_t i, int64_t j) {
          return normalised_[static_cast<size_t>(c)][image[c * pixels + i * width_ + j]];
        };
        float& to = red[c * pixels + row * width_ + column];
        if (whole) {
          to = at(from_row, from_column);
          continue;
        }
        const Between &i = rows[static_cast<size_t>(from_row)],
                      &j = columns[static_cast<size_t>(from_column)];
        const float above = std::lerp(at(i.first, j.first), at(i.first, j.second), j.weight),
                    below = std::lerp(at(i.second, j.first), at(i.second, j.second), j.weight);
        to = std::lerp(above, below, i.weight);
      }
    }
  }
  if (mode_ != ColourMode::grey_first) return;
  // ITU-R BT.601's luma.
  for (int64_t i = 0; i < pixels; ++i)
    input[i] = .299F * red[i] + .587F * red[pixels + i] + .114F * red[2 * pixels + i];
}

}  // namespace quatrain::data
