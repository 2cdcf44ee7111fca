#pragma once

#include <filesystem>

#include "quatrain/train/task.h"
#include "quatrain/train/trainer.h"

namespace quatrain::train {

/// Writes result.json.
void write_result(const Result& result, const std::filesystem::path& run_folder);

/// Writes predictions.tsv: target and answer of each example, in the data's order.
void write_predictions(const Evaluation& evaluation, const std::filesystem::path& run_folder);

}  // namespace quatrain::train
