#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"

/// Models of pairs of texts beside their real twins.
namespace quatrain::bench {

struct PairsCase {
  std::string model = "attention";  ///< attention (models::PairAttention) or encoder (models::PairEncoder)
  std::string algebra = "quaternion";
  int64_t width = 256;         ///< of attention's words, or of the encoder's state
  int64_t word_width = 300;    ///< of the words' fixed vectors
  std::string gates = "auto";  ///< of the encoder
  int64_t batch = 64, words = 30;
  int threads = 1;
  bool training = false;  ///< a step with Adam; else inference in eval mode
};

/// The models of the cases, about `seconds` for each.
Subject pairs(const std::vector<PairsCase>& cases, double seconds);

}  // namespace quatrain::bench
