#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cli/text_task.h"
#include "quatrain/data/loader.h"

/// What is timed of a text model, by `compare` and `bench model`.
namespace quatrain::cli {

/// At most `count` batches of test texts (or of the dev set's); every model gets the same.
std::vector<data::Batch> test_batches(const train::Recipe& recipe, const TextData& data, int64_t size,
                                      int64_t count);

/// Words in the batches, without padding.
int64_t words_in(const std::vector<data::Batch>& batches);

/// Reads the batches in turn, one a call, without gradients; the caller sets the model's mode.
std::function<void()> inference_call(const train::Recipe& recipe, models::TextClassifier model,
                                     std::shared_ptr<const std::vector<data::Batch>> batches);

/// What Trainer does in a step, without its records: the recipe's batches in turn, the first `count` of them.
std::function<void()> training_call(const train::Recipe& recipe, const TextData& data, int64_t count);

/// Words of the batches that training_call takes.
int64_t training_words(const train::Recipe& recipe, const TextData& data, int64_t count);

}  // namespace quatrain::cli
