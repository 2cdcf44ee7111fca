#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "quatrain/api.h"
#include "quatrain/data/derivatives.h"
#include "quatrain/data/filter_bank.h"
#include "quatrain/data/recent_rows.h"

namespace quatrain::data {

/// Filter banks and their derivatives of a recording that is still being made. All frames together are those
/// of the whole recording, Derivatives(order)(FilterBank(options)(samples)). A frame comes out as soon as no
/// later sample can change it: order * 2 frames later, 60 ms with the defaults, and where the edges are not
/// snipped half a frame after that. What is kept does not grow with the length of the recording.
class QUATRAIN_API FeatureStream {
 public:
  explicit FeatureStream(const FilterBankOptions& options = {}, int64_t order = 3);

  /// Takes the next samples, (samples) in [-1, 1], as many or few as there are. Returns the frames that are
  /// final now and were not before, (frames, (order + 1) * bands), often none.
  at::Tensor push(const at::Tensor& samples);
  /// Ends the recording: returns its last frames. The stream then begins a new one.
  at::Tensor finish();

 private:
  at::Tensor advance(int64_t frames, bool last);
  void restart();

  FilterBank bank_;
  Derivatives derivatives_;
  RecentRows samples_, energies_;  // those that are still needed
  int64_t given_ = 0;              // frames
};

}  // namespace quatrain::data
