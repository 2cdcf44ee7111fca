#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::data {

/// What has a scale of its own.
///   component   each component of each band: all get variance 1
///   quaternion  each band: its components keep their sizes relative to one another, and the mean of their
///               variances becomes 1
enum class NormalisationScale { component, quaternion };
QUATRAIN_API const char* name(NormalisationScale scale);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API NormalisationScale parse_normalisation_scale(std::string_view name);

/// The mean and the variance of features over frames, and the features without them. Whose frames are added
/// is the caller's choice: one utterance's, a speaker's, or the training set's.
///
/// Sums are kept in double precision about the mean (Chan, Golub and LeVeque's update), so that neither the
/// number of frames nor a large mean costs accuracy. A scale is 1 where the variance is zero beside the
/// square of the mean: such features become 0.
class QUATRAIN_API Normalisation {
 public:
  /// Features are (frames, components * bands), as Derivatives makes them.
  Normalisation(int64_t bands, int64_t components, NormalisationScale scale = NormalisationScale::quaternion);

  /// Adds the frames of features (frames, components * bands).
  void add(const at::Tensor& features);
  /// (features - mean) * scale, float32, each frame for itself. At least one frame must have been added.
  at::Tensor apply(const at::Tensor& features) const;

  int64_t frames() const { return frames_; }  ///< how many were added
  at::Tensor mean() const;                    ///< (components * bands), float64
  at::Tensor scale() const;                   ///< (components * bands), float64

  /// The sums as tensors: frames (1), int64; mean and squares (components, bands), float64. More frames can
  /// be added to what is loaded. Loading sums of other sizes, or no sums, is an error that names both.
  std::map<std::string, at::Tensor> state() const;
  void load(const std::map<std::string, at::Tensor>& state);

 private:
  void check(const char* function, const at::Tensor& features) const;

  int64_t bands_, components_;
  NormalisationScale kind_;
  int64_t frames_ = 0;
  at::Tensor mean_, squares_;  // (components, bands), float64; the sum of (x - mean)^2
};

}  // namespace quatrain::data
