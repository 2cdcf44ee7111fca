#pragma once

#include <filesystem>
#include <string>

#include "quatrain/train/task.h"
#include "quatrain/train/trainer.h"

namespace quatrain::train {

/// Writes result.json, with its checksum.
QUATRAIN_API void write_result(const Result& result, const std::filesystem::path& run_folder);

/// result.json as it is: read_result() without a look at the weights.
QUATRAIN_API Result read_any_result(const std::filesystem::path& run_folder);

/// True where a result's figures are of other weights than those of the run's best/. Where either does not
/// say (older versions, best/ is damaged) it is false. Reads no weights.
QUATRAIN_API bool is_of_other_weights(const std::string& weights, const std::filesystem::path& run_folder);

/// True where result.json has a checksum; older versions wrote none.
QUATRAIN_API bool result_is_sealed(const std::filesystem::path& run_folder);

/// Puts the figures of the test set into a result and what belongs to them into the run's folder:
/// predictions.tsv (target and answer of each example, in the data's order), FIGURE.counts.tsv, other files.
void keep_test(const Evaluation& evaluation, Result& result, const std::filesystem::path& run_folder);

/// The counts of the test set's examples that a figure of a run is computed from. A file that is not the one
/// that its result speaks of is a std::runtime_error.
QUATRAIN_API ExampleCounts read_counts(const Result& result, const std::string& figure,
                                       const std::filesystem::path& run_folder);

}  // namespace quatrain::train
