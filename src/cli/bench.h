#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/timing.h"

/// Single layers against torch's, in one process and in turns.
namespace quatrain::cli {

/// One layer, one batch, one pass.
struct LayerCase {
  std::string algebra = "quaternion";
  int64_t in = 1024, out = 1024, batch = 32;
  at::ScalarType dtype = at::kFloat;
  int threads = 1;
  bool training = false;  ///< forward, and the gradients of inputs and weights; else inference in eval mode
};

/// The times of one case, in seconds.
struct LayerResult {
  LayerCase asked;
  int64_t parameters = 0, real_parameters = 0;
  Timing ours, real;
  Timing materialised;  ///< H built by ATen calls in every call, then a dense product: what is usual
  std::vector<std::pair<std::string, Timing>> ways;  ///< ours, forced
  std::string way;                                   ///< the planner's
  std::string best_way;                              ///< the fastest of the forced ones
  double limit = 1;                                  ///< R / n^2
  int64_t prepared = 0;                              ///< bytes of weights kept in eval mode
  int64_t peak_bytes = 0, real_peak_bytes = 0;       ///< of memory: a layer and a training step of it

  double ratio_real() const { return ours.median / real.median; }
  double ratio_materialised() const { return ours.median / materialised.median; }
};

/// Bytes that a layer and a training step of it need at their peak: ours, or torch's. See peak_memory.
int64_t layer_memory(const LayerCase& asked, bool real);

/// Measures for about `seconds`; with `forced` every way too. Throws where an output of one of them is wrong.
LayerResult measure_layer(const LayerCase& asked, double seconds, bool forced);

std::string report(const std::vector<LayerResult>& results, bool colour);
nlohmann::ordered_json to_json(const std::vector<LayerResult>& results);
/// The ratios to torch's layer alone: a row an algebra, a column a pass and batch; all of one size and type.
std::string layer_table(const std::vector<LayerResult>& results);

}  // namespace quatrain::cli
