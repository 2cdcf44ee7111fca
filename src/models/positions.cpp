#include "quatrain/models/positions.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

namespace quatrain::models {

at::Tensor sinusoidal_positions(int64_t length, int64_t width, int64_t first) {
  const int64_t waves = width / 2;
  const at::Tensor wave = torch::arange(waves, torch::kDouble);
  const double step = std::log(1e4) / static_cast<double>(std::max<int64_t>(waves - 1, 1));
  const at::Tensor angle =
      torch::arange(first, first + length, torch::kDouble).unsqueeze(1) * (wave * -step).exp();
  at::Tensor positions = torch::zeros({length, width}, torch::kDouble);
  positions.narrow(1, 0, waves).copy_(angle.sin());
  positions.narrow(1, waves, waves).copy_(angle.cos());
  return positions.to(torch::kFloat);
}

}  // namespace quatrain::models
