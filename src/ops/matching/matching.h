#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

/// hypercomplex_matching: what matching.cpp and cpu.cpp share.
namespace quatrain::ops {

/// Numbers of n components, and what their product is made of: component c gets value * a_i * b_j.
struct MatchedNumbers {
  struct Term {
    int64_t c, i, j;
    double value;
  };
  int64_t n;
  std::vector<Term> terms;

  /// With the table of an algebra of n dimensions, or of one dimension for each component.
  MatchedNumbers(std::string_view algebra, int64_t n);
};

namespace cpu {

/// float32 on a CPU. a and b: (..., n m) of equal sizes.
at::Tensor matching(const MatchedNumbers& numbers, const at::Tensor& a, const at::Tensor& b);
/// The gradients of a and b; grad: (..., n 4 m).
std::tuple<at::Tensor, at::Tensor> matching_backward(const MatchedNumbers& numbers, const at::Tensor& grad,
                                                     const at::Tensor& a, const at::Tensor& b);

}  // namespace cpu

}  // namespace quatrain::ops
