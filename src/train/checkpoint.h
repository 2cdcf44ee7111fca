#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "quatrain/train/checkpoint.h"

namespace quatrain::train {

/// Puts a checkpoint in the place of the one before it. `fill` writes its files into a folder beside; then
/// their sizes and checksums are noted, everything is put on the disk and the folder is renamed. `run` names
/// the run that it belongs to, and is empty where it belongs to none. At any moment a whole checkpoint is
/// there: the old one stays as WHICH.old until the new one has its name. With `keep` above 1, that many
/// checkpoints stay, this one among them: older ones are called step-N. `drops_result`: the run has other
/// weights now than those of its result, which goes when the new ones are on the disk.
///
/// Where it fails, what was begun is removed and what was there stays.
QUATRAIN_API void write_checkpoint(const std::filesystem::path& run_folder, const std::string& which,
                                   int64_t step, const std::string& run,
                                   const std::function<void(const std::filesystem::path&)>& fill,
                                   int64_t keep = 1, bool drops_result = false);

/// Gives a damaged best/ another name, best.damaged, where a new one will be written: what is in it may be of
/// use still. Its new folder.
std::filesystem::path set_aside(const std::filesystem::path& checkpoint_folder);

/// Notes the sizes and checksums of a checkpoint's files as they are. `selected`: the checksum of the weights
/// that were selected, where a user may have put others in their place.
QUATRAIN_API void seal_checkpoint(const std::filesystem::path& checkpoint_folder, int64_t step,
                                  const std::string& run, const std::string& selected = "");

/// The checksum of the weights that the run selected, as far as the manifest says; else "".
QUATRAIN_API std::string selected_weights(const std::filesystem::path& checkpoint_folder);
/// True where the checkpoint has others: no figure of the run is of these.
QUATRAIN_API bool has_other_weights(const std::filesystem::path& checkpoint_folder);

/// The folders of a run's older checkpoints, step-N, the newest first.
std::vector<std::filesystem::path> older_checkpoints(const std::filesystem::path& run_folder);

/// True where a folder has the manifest of a checkpoint.
QUATRAIN_API bool is_checkpoint(const std::filesystem::path& folder);

/// The step of a checkpoint; 0 where its manifest cannot be read.
QUATRAIN_API int64_t step_of(const std::filesystem::path& checkpoint_folder);

/// The run that a checkpoint belongs to, as write_checkpoint() was told; "" where that is not known: older
/// versions did not say.
QUATRAIN_API std::string run_of(const std::filesystem::path& checkpoint_folder);

/// The first name that a checkpoint of this folder has for its run; "" where none has one.
std::string name_of_run(const std::filesystem::path& run_folder);

/// What to say of a checkpoint beside which one of another run lies, as where folders were copied from one
/// run to another: "is of another run than 'best' ..."; "" where there is none.
QUATRAIN_API std::string foreign(const std::filesystem::path& checkpoint_folder);

/// Where write_checkpoint() puts what is not whole yet: nothing that stands there is worth keeping.
QUATRAIN_API std::filesystem::path part_of(const std::filesystem::path& run_folder, const std::string& which);

/// Removes a run's files, and no others.
void remove_run(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
