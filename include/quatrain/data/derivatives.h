#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// Acoustic features as hypercomplex numbers (QRNN section 4.1): with the energy e(f, t) of band f at time t,
///
///     Q(f, t) = e(f, t) + i e'(f, t) + j e''(f, t) + k e'''(f, t)
///
/// The derivatives are Kaldi's (add-deltas): e' is the slope of the straight line through the frames
/// t - window .. t + window,
///
///     e'(t) = sum_s s e(t + s) / sum_s s^2,    s = -window .. window
///
/// the weights of the k-th derivative are those of the first convolved k times with themselves, and frames
/// before the first and after the last are these. Components stand side by side, as layers want them:
/// [e, all bands | e' | e'' | e'''].
class QUATRAIN_API Derivatives {
 public:
  /// `order`: the last derivative, 0 to 3; 1 makes complex numbers of the features, 3 quaternions.
  explicit Derivatives(int64_t order = 3, int64_t window = 2);

  /// (frames, bands) to (frames, (order + 1) * bands), float32.
  at::Tensor operator()(const at::Tensor& features) const;

  int64_t components() const { return static_cast<int64_t>(weights_.size()); }  ///< order + 1

  // For recordings that are not there as a whole.

  /// How many frames ahead and back the last derivative looks: order * window.
  int64_t reach() const { return static_cast<int64_t>(weights_.back().size() / 2); }
  /// Frames from .. to - 1 of a recording of `total` frames, of which `features` are those from `begin` on.
  at::Tensor compute(const at::Tensor& features, int64_t begin, int64_t total, int64_t from,
                     int64_t to) const;

 private:
  std::vector<std::vector<double>> weights_;  // of each order, from the frame furthest back on
};

}  // namespace quatrain::data
