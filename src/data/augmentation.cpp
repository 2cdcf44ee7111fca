#include "quatrain/data/augmentation.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "data/random.h"
#include "quatrain/data/audio.h"

namespace quatrain::data {
namespace {

// Streams of a seed.
constexpr uint64_t kOfSpeed = 0, kOfBands = 1, kOfTime = 2;

/// Masks `count` pieces of axis `axis`, each of 0 .. `most` in a row.
void mask(at::Tensor x, int64_t axis, int64_t count, int64_t most, LineRandom random) {
  const int64_t size = x.size(axis);
  most = std::min(most, size);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(n))); };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t width = below(most + 1);
    x.narrow(axis, below(size - width + 1), width).zero_();
  }
}

}  // namespace

at::Tensor change_speed(const at::Tensor& samples, double factor) {
  TORCH_CHECK(factor >= 0.1 && factor <= 10, "change_speed: factor must be .1 to 10, got ", factor);
  return resample(samples, std::llround(factor * 1000), 1000);
}

at::Tensor perturb_speed(const at::Tensor& samples, uint64_t seed, const std::vector<double>& factors) {
  TORCH_CHECK(!factors.empty(), "perturb_speed: there must be at least one factor, got none");
  return change_speed(samples, LineRandom(seed, kOfSpeed).pick(factors));
}

at::Tensor spec_augment(const at::Tensor& features, int64_t bands, const SpecAugmentOptions& options,
                        uint64_t seed) {
  TORCH_CHECK(features.dim() == 2 && bands > 0 && features.size(1) % bands == 0,
              "spec_augment: features must be (frames, components * ", bands, "), got ", features.sizes());
  TORCH_CHECK(
      options.band_masks >= 0 && options.widest >= 0 && options.time_masks >= 0 && options.longest >= 0 &&
          options.most_share >= 0 && options.most_share <= 1,
      "spec_augment: numbers and sizes of masks must be at least 0 and most_share 0 to 1, got band_masks = ",
      options.band_masks, ", widest = ", options.widest, ", time_masks = ", options.time_masks,
      ", longest = ", options.longest, ", most_share = ", options.most_share);
  auto masked = features.to(torch::kFloat).clone(at::MemoryFormat::Contiguous);
  const int64_t frames = masked.size(0);
  const auto share = static_cast<int64_t>(options.most_share * static_cast<double>(frames));
  const auto numbers = masked.view({frames, masked.size(1) / bands, bands});
  mask(numbers, 2, options.band_masks, options.widest, LineRandom(seed, kOfBands));
  mask(numbers, 0, options.time_masks, std::min(options.longest, share), LineRandom(seed, kOfTime));
  return masked;
}

}  // namespace quatrain::data
