#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "quatrain/api.h"

/// What makes one recording into several. What is drawn is a function of `seed` alone.
namespace quatrain::data {

/// Samples (..., samples) `factor` times as fast, as (..., round(samples / factor)) at the same rate: a tape
/// that runs faster, which raises the voice too. `factor`, .1 to 10, is taken to a thousandth.
QUATRAIN_API at::Tensor change_speed(const at::Tensor& samples, double factor);

/// Speed perturbation: change_speed by one of the factors, each drawn as often as the others.
QUATRAIN_API at::Tensor perturb_speed(const at::Tensor& samples, uint64_t seed,
                                      const std::vector<double>& factors = {0.9, 1.0, 1.1});

/// SpecAugment's masks (Park et al. 2019, section 2; without time warping).
struct QUATRAIN_API SpecAugmentOptions {
  int64_t band_masks = 2;
  int64_t widest = 10;  ///< bands that a mask covers at most; its width is drawn from 0 on
  int64_t time_masks = 2;
  int64_t longest = 40;     ///< frames that a mask covers at most, and
  double most_share = 0.2;  ///< at most this share of the utterance's
};

/// Features (frames, components * bands), float32, with masked bands and frames, which are zero. That is the
/// mean of normalised features. A masked band is masked in all its components: a hypercomplex number is there
/// as a whole or not at all. Masks may overlap.
QUATRAIN_API at::Tensor spec_augment(const at::Tensor& features, int64_t bands,
                                     const SpecAugmentOptions& options, uint64_t seed);

}  // namespace quatrain::data
