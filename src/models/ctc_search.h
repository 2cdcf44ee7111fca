#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "quatrain/models/ctc_decoder.h"

namespace quatrain::models {

/// The search for one utterance, frame by frame.
class CtcDecoder::Search {
 public:
  virtual ~Search() = default;
  /// One frame more: its log-probabilities.
  virtual void advance(const double* frame, int64_t classes) = 0;
  /// Up to `most`, the best first; with the end's score where the utterance has `ended`.
  virtual std::vector<Recognition> result(bool ended, int64_t most) const = 0;
};

/// The search over prefixes. The options must outlive it.
std::unique_ptr<CtcDecoder::Search> make_prefix_search(const CtcDecoderOptions& options);

}  // namespace quatrain::models
