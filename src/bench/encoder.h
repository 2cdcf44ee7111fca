#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"

/// A layer of a Transformer encoder beside its real twin, and its parts.
namespace quatrain::bench {

struct EncoderCase {
  std::string algebra = "quaternion";
  int64_t width = 512, heads = 8, feed_forward = 2048, sequence = 64, batch = 16;
  double dropout = 0.1;
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference in eval mode
};

/// The layers of the cases, about `seconds` for each.
Subject encoder(const std::vector<EncoderCase>& cases, double seconds);

}  // namespace quatrain::bench
