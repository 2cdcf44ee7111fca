#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace quatrain::bench {

/// Sets torch's threads while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// One pass of something, to be timed: `forward` without gradients, or with the gradients of its input and
/// parameters.
std::function<void()> pass_of(bool training, std::function<at::Tensor(const at::Tensor&)> forward,
                              const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                              const at::Tensor& grad);

}  // namespace quatrain::bench
