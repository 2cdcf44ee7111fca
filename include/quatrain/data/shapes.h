#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "quatrain/api.h"

namespace quatrain::data {

struct ImageSplits;

/// Generated pictures of shapes.
struct QUATRAIN_API ShapesOptions {
  int64_t train = 20000;
  int64_t dev = 1000;
  int64_t test = 2000;
  uint64_t seed = 0;
};

/// Rows and columns of a picture of a shape.
inline constexpr int64_t kShapeSide = 32;

/// A circle, square, triangle, star or cross, whole or with a hole in its middle: ten classes. It has a
/// random colour, size, place and angle, is stretched a little, and stands on a background of two colours
/// that pass into one another, before lines and patches in other colours, under noise.
///
/// Picture i of a set is a function of (seed, i) and its class is i mod 10, so that the size of a set changes
/// none of its pictures. Neither place nor colour tells anything of the class: a linear classifier finds
/// little.
QUATRAIN_API ImageSplits generate_shapes(const ShapesOptions& options = {});

/// Picture i of the training set, (3, kShapeSide, kShapeSide), uint8.
QUATRAIN_API at::Tensor shape_image(const ShapesOptions& options, int64_t i);

}  // namespace quatrain::data
