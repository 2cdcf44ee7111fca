#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/zeros_like.h>

namespace quatrain::ops {

/// sum_t coefficient_t tensor_t, with as few operations as the signs allow; undefined where there is no term.
class WeightedSum {
 public:
  void add(const at::Tensor& t, double coefficient) {
    if (coefficient == 0) return;
    if (!sum_.defined())
      sum_ = coefficient == 1 ? t : t * coefficient;
    else
      sum_ = at::add(sum_, t, coefficient);
  }
  at::Tensor or_zeros_like(const at::Tensor& t) const { return sum_.defined() ? sum_ : at::zeros_like(t); }

 private:
  at::Tensor sum_;
};

}  // namespace quatrain::ops
