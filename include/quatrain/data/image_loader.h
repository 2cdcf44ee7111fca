#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/image_input.h"
#include "quatrain/data/image_set.h"

namespace quatrain::data {

/// What a model is given.
struct QUATRAIN_API ImageBatch {
  at::Tensor images;             ///< (B, channels(mode), height, width), float32
  at::Tensor labels;             ///< (B), int64
  std::vector<int64_t> indices;  ///< the pictures' places in their set
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
  /// Moves the tensors to another device.
  ImageBatch to(at::Device device) const;
};

/// What makes one picture into several, in this order. What becomes of a picture is a function of (seed,
/// epoch, its place in the set) alone. A pixel from outside the picture, or under the square, is zero in all
/// channels of the input, the mean of normalised pixels: a quaternion is there as a whole or not at all.
struct QUATRAIN_API ImageAugmentation {
  int64_t padding = 4;  ///< moves by up to so many pixels, up or down and to a side (a random crop); 0: none
  bool flip = true;     ///< left and right change places, in half of the cases
  int64_t cutout = 0;   ///< hides a square of so many pixels a side around a random pixel; 0: none
  /// Before all that a random part becomes the picture, of this share of its area at least: its sides are
  /// scaled by factors whose ratio is from 3/4 to 4/3, and it is enlarged bilinearly. 1: all of it.
  double part = 1;
};

/// Options of ImageLoader.
struct QUATRAIN_API ImageLoaderOptions {
  int64_t batch_size = 128;
  bool shuffle = true;  ///< false: in the order of the set, the same in each epoch
  uint64_t seed = 0;
  std::optional<ImageAugmentation> augmentation{};  ///< none: pictures as they are
  PixelScale scale{};                               ///< that of the training set, for all sets
  ColourMode mode = ColourMode::zero_first;
  int64_t threads = 1;  ///< that make batches ahead of use; 0: each is made when it is asked for
  int64_t ahead = 2;    ///< how many batches are made ahead
};

/// Batches of pictures. Batch (epoch, index) is a function of the data, the options but the last two, and
/// these two numbers alone: a resumed run asks for the next one. Every picture occurs once in an epoch; the
/// last batch may be smaller. While a batch is in use, threads make those that follow it. To be called from
/// one thread at a time.
class QUATRAIN_API ImageLoader {
 public:
  /// An empty set and options out of their range are errors.
  explicit ImageLoader(ImageSet set, ImageLoaderOptions options = {});
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  int64_t batches() const;   ///< in an epoch
  int64_t examples() const;  ///< in an epoch
  const ImageSet& set() const;
  /// 0 <= index < batches().
  ImageBatch batch(int64_t epoch, int64_t index);

 private:
  struct Number;
  class Maker;
  class Ahead;
  std::unique_ptr<Maker> maker_;
  std::unique_ptr<Ahead> ahead_;  // null without threads
};

}  // namespace quatrain::data
