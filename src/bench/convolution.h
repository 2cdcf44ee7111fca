#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"

/// Convolutions of two or three spatial axes beside torch's of the same size.
namespace quatrain::bench {

struct ConvolutionCase {
  std::string algebra = "quaternion";
  int64_t channels = 128, image = 16, batch = 16;  ///< as many channels out as in; square images
  int64_t depth = 0;                               ///< of images of three axes; 0: two axes
  int64_t kernel = 3, stride = 1;                  ///< of each axis; padded by half the kernel
  std::string winograd = "auto";                   ///< auto, none, 2x2 or 4x4
  at::ScalarType dtype = at::kFloat;               ///< float32 or float64
  bool channels_last = true;                       ///< ours; torch takes what is faster
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference
};

/// The operators of the cases, about `seconds` for each. Measuring throws where an output is wrong.
Subject convolution(const std::vector<ConvolutionCase>& cases, double seconds);

}  // namespace quatrain::bench
