#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"

/// Convolutions of one to three spatial axes beside torch's of the same size.
namespace quatrain::bench {

struct ConvolutionCase {
  std::string algebra = "quaternion";
  int64_t in_channels = 128, channels = 128;     ///< of the input and of the output
  int64_t image = 16, batch = 16;                ///< square images, or signals of so many values
  int64_t axes = 2, depth = 16;                  ///< spatial ones; planes where they are three
  int64_t kernel = 3, stride = 1, dilation = 1;  ///< of each axis; padded by half the kernel
  int64_t groups = 1;
  std::string winograd = "auto";      ///< auto, none, 2x2 or 4x4
  at::ScalarType dtype = at::kFloat;  ///< float32, bfloat16 or float64
  bool channels_last = true;          ///< ours; torch takes what is faster
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference
};

/// The operators of the cases, about `seconds` for each. Measuring throws where an output is wrong.
Subject convolution(const std::vector<ConvolutionCase>& cases, double seconds);

}  // namespace quatrain::bench
