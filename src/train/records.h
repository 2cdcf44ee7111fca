#pragma once

#include <filesystem>
#include <string>

#include "quatrain/train/task.h"
#include "quatrain/train/trainer.h"

namespace quatrain::train {

/// Writes result.json, with its checksum.
void write_result(const Result& result, const std::filesystem::path& run_folder);

/// True where result.json has a checksum; older versions wrote none.
QUATRAIN_API bool result_is_sealed(const std::filesystem::path& run_folder);

/// Writes predictions.tsv: target and answer of each example, in the data's order. Gives its checksum.
std::string write_predictions(const Evaluation& evaluation, const std::filesystem::path& run_folder);

}  // namespace quatrain::train
