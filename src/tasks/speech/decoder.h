#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "tasks/speech/model.h"

namespace quatrain::tasks {

/// Turns scores of frames into what was said, by the objective of a model.
class SpeechDecoder {
 public:
  virtual ~SpeechDecoder() = default;
  /// More frames of the recording: the network's scores (frames, classes).
  virtual void push(const at::Tensor& scores) = 0;
  /// What was said so far.
  virtual std::vector<HeardToken> heard() const = 0;
  /// What was said, the best answer first: of ctc up to decode.best. A new recording begins.
  virtual std::vector<HeardAnswer> finish() = 0;
};

/// `best_path`: without beam and language model, and one answer.
std::unique_ptr<SpeechDecoder> make_decoder(const SpeechModel& model, bool best_path = false);

}  // namespace quatrain::tasks
