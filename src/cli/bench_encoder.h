#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/timing.h"

/// A layer of a Transformer encoder beside its real twin, and its parts, in one process and in turns.
namespace quatrain::cli {

struct EncoderCase {
  std::string algebra = "quaternion";
  int64_t width = 512, heads = 8, feed_forward = 2048, sequence = 64, batch = 16;
  double dropout = 0.1;
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference in eval mode
};

/// Seconds of a layer and of what it is made of, each timed alone.
struct EncoderTimes {
  Timing whole;
  Timing attention;     ///< its four maps and what is between them
  Timing maps;          ///< the four maps
  Timing feed_forward;  ///< two maps and the activation

  double between_maps() const { return std::max(0.0, attention.median - maps.median); }
  /// Norms, residuals, dropout.
  double rest() const { return std::max(0.0, whole.median - attention.median - feed_forward.median); }
};

struct EncoderResult {
  EncoderCase asked;
  EncoderTimes ours, real;
  int64_t parameters = 0, real_parameters = 0;
  int64_t prepared = 0;                         ///< bytes of weights kept in eval mode
  int64_t peak_bytes = 0, real_peak_bytes = 0;  ///< of the layer and a pass

  double ratio_real() const { return ours.whole.median / real.whole.median; }
};

/// Peak bytes of a layer and a pass (see peak_memory): before OpenMP has threads, so before measure_encoder.
int64_t encoder_memory(const EncoderCase& asked);

/// Measures for about `seconds`; memory is not touched.
EncoderResult measure_encoder(const EncoderCase& asked, double seconds);

std::string report(const std::vector<EncoderResult>& results, bool colour);
nlohmann::ordered_json to_json(const std::vector<EncoderResult>& results);

}  // namespace quatrain::cli
