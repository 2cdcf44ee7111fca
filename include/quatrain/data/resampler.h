#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "quatrain/api.h"

struct SRC_STATE_tag;

namespace quatrain::data {

/// resample() of a recording that comes in pieces: all that is returned, joined, is what resample() makes of
/// the whole. What is kept does not grow with the length of the recording.
class QUATRAIN_API Resampler {
 public:
  /// The rates are in any common unit and differ by a factor of at most 256.
  Resampler(int64_t from, int64_t to);

  /// Takes the next samples, (samples), and returns those that are ready, float32.
  at::Tensor push(const at::Tensor& samples);
  /// Ends the recording: returns its last samples. The resampler then begins a new one.
  at::Tensor finish();

 private:
  at::Tensor advance(const at::Tensor& samples, bool last);

  struct QUATRAIN_API Close {
    void operator()(SRC_STATE_tag* state) const;
  };
  int64_t from_, to_;
  std::unique_ptr<SRC_STATE_tag, Close> state_;
  int64_t received_ = 0, given_ = 0;
};

}  // namespace quatrain::data
