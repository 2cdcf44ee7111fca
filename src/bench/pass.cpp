#include "bench/pass.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace quatrain::bench {

std::function<void()> pass_of(bool training, std::function<at::Tensor(const at::Tensor&)> forward,
                              const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                              const at::Tensor& grad) {
  if (!training)
    return [forward, x] {
      const torch::NoGradGuard no_grad;
      forward(x);
    };
  return [forward, parameters, grad, input = x.clone().requires_grad_()] {
    for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    input.mutable_grad().reset();
    forward(input).backward(grad);
  };
}

}  // namespace quatrain::bench
