#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness.h"

/// Single layers beside torch's.
namespace quatrain::bench {

/// One layer, one batch, one pass.
struct LinearCase {
  std::string algebra = "quaternion";
  int64_t in = 1024, out = 1024, batch = 32;
  at::ScalarType dtype = at::kFloat;
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference in eval mode
};

/// "float32", "float64", "bfloat16" or "float16"; std::invalid_argument else.
at::ScalarType dtype_of(std::string_view name);
/// The inverse.
const char* dtype_name(at::ScalarType dtype);

/// The layers of the cases, about `seconds` for each; with `forced` every way beside the planner's choice.
/// Measuring throws where an output is wrong.
Subject linear(const std::vector<LinearCase>& cases, double seconds, bool forced);

/// The ratios to torch's layer alone: a row an algebra, a column a pass and batch; all of one size and type.
std::string linear_table(const std::vector<Row>& rows);

}  // namespace quatrain::bench
