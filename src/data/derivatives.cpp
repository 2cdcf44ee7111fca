#include "quatrain/data/derivatives.h"

#include <torch/types.h>

namespace quatrain::data {

Derivatives::Derivatives(int64_t order, int64_t window) : weights_{{1.0}} {
  TORCH_CHECK(order >= 0 && order <= 3, "derivatives: order must be 0 to 3, got ", order);
  TORCH_CHECK(window >= 1 && window <= 100, "derivatives: window must be 1 to 100 frames, got ", window);
  double squares = 0;
  for (int64_t s = -window; s <= window; ++s) squares += static_cast<double>(s * s);
  for (int64_t k = 0; k < order; ++k) {
    const auto& last = weights_.back();
    std::vector<double> next(last.size() + static_cast<size_t>(2 * window), 0.0);
    for (size_t i = 0; i < last.size(); ++i)
      for (int64_t s = -window; s <= window; ++s)
        next[i + static_cast<size_t>(s + window)] += last[i] * static_cast<double>(s) / squares;
    weights_.push_back(std::move(next));
  }
}

at::Tensor Derivatives::compute(const at::Tensor& features, int64_t begin, int64_t total, int64_t from,
                                int64_t to) const {
  const int64_t count = to - from, bands = features.size(1);
  auto result = torch::zeros({count, components() * bands});
  if (count == 0) return result;
  const auto at = torch::arange(from - reach(), to + reach()).clamp(0, total - 1) - begin;
  const auto rows = features.index_select(0, at);
  for (int64_t k = 0; k < components(); ++k) {
    const auto& weights = weights_[static_cast<size_t>(k)];
    auto derivative = result.narrow(1, k * bands, bands);
    const int64_t first = reach() - static_cast<int64_t>(weights.size() / 2);
    for (size_t i = 0; i < weights.size(); ++i)
      derivative.add_(rows.narrow(0, first + static_cast<int64_t>(i), count), weights[i]);
  }
  return result;
}

at::Tensor Derivatives::operator()(const at::Tensor& features) const {
  TORCH_CHECK(features.dim() == 2, "derivatives: features must be (frames, bands), got ", features.sizes());
  return compute(features, 0, features.size(0), 0, features.size(0));
}

}  // namespace quatrain::data
