#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"

/// A recurrent layer beside torch's of the same size.
namespace quatrain::bench {

struct RecurrentCase {
  std::string algebra = "quaternion";
  std::string cell = "lstm";  ///< lstm, gru or rnn
  int64_t width = 512;        ///< of input and state
  int64_t projection = 0;     ///< of an lstm's state, to so many values; 0: none
  int64_t batch = 16, steps = 100;
  std::string gates = "packed";  ///< packed or separate: one map for all gates, or one for each
  bool packed = false;           ///< sequences of steps / B, 2 steps / B ... steps, as PackedSequence
  bool emptied = false;          ///< caches, before each call
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference in eval mode
};

/// The layers of the cases, about `seconds` for each.
Subject recurrent(const std::vector<RecurrentCase>& cases, double seconds);

}  // namespace quatrain::bench
