#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::train {

/// A checkpoint whose files were checked and are as they were written.
struct QUATRAIN_API Checkpoint {
  std::string name;  ///< of its folder in the run: "best", "last", "step-000120"
  int64_t step = 0;
  std::filesystem::path folder;
};

/// How closely files are checked: only their sizes, without opening them, or all their bytes.
enum class Look { sizes, bytes };

/// A run's checkpoint: "best", "last" or an older one, "step-000120"; after a crash between two renames, the
/// complete one that remains. A run without this checkpoint is an error; so is a checkpoint with a file that
/// is missing, cut short or changed, and the error names the file and the newest sound checkpoint.
///
/// In it: model.safetensors, structure.safetensors (of learned algebras), recipe.toml, what the task stored
/// (vocabulary.txt), checkpoint.json (sizes and checksums of the files); in all but "best" also
/// training.safetensors and training.json.
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

/// The undamaged checkpoints that training can continue from, newest first.
QUATRAIN_API std::vector<Checkpoint> sound_checkpoints(const std::filesystem::path& run_folder,
                                                       Look look = Look::bytes);

/// True where this checkpoint exists, damaged or not.
QUATRAIN_API bool has_checkpoint(const std::filesystem::path& run_folder, const std::string& which);
/// True where there is a checkpoint to continue from, damaged or not.
QUATRAIN_API bool has_checkpoint(const std::filesystem::path& run_folder);

/// True where the folder holds a run or a part of one.
QUATRAIN_API bool holds_run(const std::filesystem::path& run_folder);

/// True while a process trains in the folder.
QUATRAIN_API bool is_training(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
