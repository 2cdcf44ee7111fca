#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness.h"

/// Whole models beside their real twin. What a model is, and what it reads, its task says by the calls that
/// it hands in.
namespace quatrain::bench {

/// A whole training step, optimizer included, or inference in eval mode.
struct ModelPass {
  bool training = false;
  int64_t batch = 0;
};

/// One model in one pass.
struct ModelCalls {
  Call next;  ///< one batch, each time the next one, from the first again after the last
  int64_t parameters = 0;
  int64_t batches = 1;             ///< there are
  std::function<int64_t()> units;  ///< words, examples, .. in all of these batches, without padding
};

struct ModelTwin {
  std::string name{};
  std::vector<Field> said{};  ///< what the JSON says of it beside its name: algebra, dtype, ..
  /// Makes the model, fresh, with at most so many batches.
  std::function<ModelCalls(const ModelPass& pass, int64_t batches)> make{};
};

/// Every twin in every pass, about `seconds` for each pass. The first twin is the real one. `unit`: what is
/// counted, as "words".
Subject models(const std::vector<ModelTwin>& twins, const std::vector<ModelPass>& passes, int threads,
               const std::string& unit, double seconds);

}  // namespace quatrain::bench
