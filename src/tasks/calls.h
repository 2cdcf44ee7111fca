#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "quatrain/tasks/kind.h"

/// What is timed of a model, of whatever kind.
namespace quatrain::tasks {

/// At most `count` batches of the test set (or of the dev set), as a model of this recipe reads them; every
/// twin gets the same examples.
QUATRAIN_API std::vector<Input> test_inputs(const Recipe& recipe, const Data& data, int64_t size,
                                            int64_t count);

/// Reads the inputs in turn, one a call, without gradients; the caller sets the model's mode.
QUATRAIN_API std::function<void()> inference_call(std::shared_ptr<Model> model,
                                                  std::shared_ptr<const std::vector<Input>> inputs);

/// What Trainer does with a batch, without its records: loss, gradients, clipping and a step of the
/// optimizer, whatever the recipe accumulates. The recipe's batches in turn, the first `count` of them.
QUATRAIN_API std::function<void()> training_call(const Recipe& recipe, const Data& data, int64_t count);

/// Units (words, say) of the inputs together.
QUATRAIN_API int64_t units_in(const std::vector<Input>& inputs);

}  // namespace quatrain::tasks
