#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/timing.h"
#include "quatrain/tasks/kind.h"

/// The twins of a recipe as fresh models, in one process and in turns.
namespace quatrain::cli {

/// One twin in one pass.
struct ModelResult {
  tasks::Recipe recipe;
  bool training = false;  ///< a whole step, optimizer included; else inference in eval mode
  int64_t batch = 0;      ///< examples
  int64_t units = 0;      ///< words, say, in the inputs of a call, without padding
  int64_t batches = 1;    ///< of a call, one after the other
  Timing time;            ///< of a call
  Timing real;            ///< the real twin's
  int64_t parameters = 0;
  int64_t prepared = 0;    ///< bytes of weights kept in eval mode
  int64_t peak_bytes = 0;  ///< of the model and its pass (see peak_memory)
  int64_t real_peak_bytes = 0;

  double seconds_per_batch() const { return time.median / static_cast<double>(batches); }
  double units_per_second() const { return static_cast<double>(units) / time.median; }
  double ratio_real() const { return time.median / real.median; }
};

/// The passes that are measured: training at the recipe's batch, inference at 32 examples and at one.
struct ModelPass {
  bool training = false;
  int64_t batch = 0;
};
std::vector<ModelPass> model_passes(const tasks::Recipe& recipe);

/// The twins to measure, the real one first: the recipe's first over the reals, or one made of the recipe. A
/// recipe without twins is measured itself.
std::vector<tasks::Recipe> twins_beside_real(const tasks::Recipe& recipe);

/// Peak bytes; before OpenMP has threads, so before measure_models.
int64_t model_memory(const tasks::Recipe& twin, const tasks::Data& data, const ModelPass& pass);

/// Every twin in one pass, for about `seconds`; memory is not touched.
std::vector<ModelResult> measure_models(const std::vector<tasks::Recipe>& twins, const tasks::Data& data,
                                        const ModelPass& pass, double seconds);

std::string report(const std::vector<ModelResult>& results, bool colour);
nlohmann::ordered_json to_json(const std::vector<ModelResult>& results);

}  // namespace quatrain::cli
