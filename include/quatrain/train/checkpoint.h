#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "quatrain/api.h"

namespace quatrain::train {

/// The folder of a run's checkpoint, "best" or "last"; where a crash came between two renames, of the whole
/// one that is left. A run without it, and a checkpoint with files missing or cut short, are errors that name
/// them.
///
/// In it: model.safetensors, recipe.toml, what the task stored (vocabulary.txt), checkpoint.json (the files'
/// sizes); in "last" also training.safetensors and training.json.
QUATRAIN_API std::filesystem::path find_checkpoint(const std::filesystem::path& run_folder,
                                                   const std::string& which);

/// True where the folder holds a run or a part of one.
QUATRAIN_API bool holds_run(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
