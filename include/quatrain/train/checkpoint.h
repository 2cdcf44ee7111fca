#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::train {

/// A checkpoint whose files were looked at and are as they were written.
struct QUATRAIN_API Checkpoint {
  std::string name;  ///< of its folder in the run: "best", "last", "step-000120"
  int64_t step = 0;
  std::filesystem::path folder;
};

/// How closely files are looked at: their sizes alone, which opens none of them, or all their bytes.
enum class Look { sizes, bytes };

/// A run's checkpoint: "best", "last" or an older one, "step-000120"; where a crash came between two renames,
/// the whole one that is left. A run without it is an error; so is a checkpoint with a file that is missing,
/// cut short or changed, and the error names the file and the newest sound checkpoint.
///
/// In it: model.safetensors, recipe.toml, what the task stored (vocabulary.txt), checkpoint.json (sizes and
/// checksums of the files); in all but "best" also training.safetensors and training.json.
QUATRAIN_API Checkpoint open_checkpoint(const std::filesystem::path& run_folder, const std::string& which);
/// Its folder.
QUATRAIN_API std::filesystem::path find_checkpoint(const std::filesystem::path& run_folder,
                                                   const std::string& which);

/// What is wrong with the files of a checkpoint's folder, a phrase each; none where all are as they were
/// written.
QUATRAIN_API std::vector<std::string> find_damage(const std::filesystem::path& checkpoint_folder,
                                                  Look look = Look::bytes);

/// The checksum of a checkpoint's weights, as its manifest has it; empty where there is none, or none that
/// can be read.
QUATRAIN_API std::string weights_checksum(const std::filesystem::path& run_folder, const std::string& which);

/// The checkpoints that training can go on from and whose files are sound, the newest first.
QUATRAIN_API std::vector<Checkpoint> sound_checkpoints(const std::filesystem::path& run_folder,
                                                       Look look = Look::bytes);

/// True where this checkpoint is there, sound or not.
QUATRAIN_API bool has_checkpoint(const std::filesystem::path& run_folder, const std::string& which);
/// True where there is a checkpoint to go on from, sound or not.
QUATRAIN_API bool has_checkpoint(const std::filesystem::path& run_folder);

/// True where the folder holds a run or a part of one.
QUATRAIN_API bool holds_run(const std::filesystem::path& run_folder);

/// True while a process trains in the folder.
QUATRAIN_API bool is_training(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
