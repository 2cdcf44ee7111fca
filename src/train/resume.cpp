#include "train/resume.h"

#include <torch/torch.h>

#include <stdexcept>

#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"
#include "support/text.h"
#include "train/checkpoint.h"
#include "train/checksum.h"
#include "train/run_files.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& run_folder, const std::string& why) {
  throw std::runtime_error("cannot resume '" + run_folder.string() + "': " + why);
}

// A task's files say what the model's numbers mean, a word's or a label's: they are written again, compared
// and removed.
void check_same_data(const Task& task, const fs::path& run_folder, const fs::path& checkpoint) {
  const fs::path part = part_of(run_folder, "last");
  fs::remove_all(part);
  fs::create_directory(part);
  task.store(part);
  std::vector<std::string> other;
  for (const auto& entry : fs::directory_iterator(part)) {
    const fs::path stored = checkpoint / entry.path().filename();
    if (!fs::exists(stored) || checksum_of_file(entry.path()) != checksum_of_file(stored))
      other.push_back(stored.filename().string());
  }
  fs::remove_all(part);
  if (!other.empty())
    refuse(run_folder, "the data give another " + join(other) + " than the checkpoint '" +
                           checkpoint.string() +
                           "' has; take the data that the run was started with, or start anew");
}

// best/ as the state speaks of it.
std::optional<Checkpoint> find_best(const fs::path& run_folder, int64_t step) {
  try {
    Checkpoint best = open_checkpoint(run_folder, "best");
    return best.step == step ? std::optional(std::move(best)) : std::nullopt;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

// The result of a finished run, with the best weights in the model.
Result stored_result(const Resumed& r, const Checkpoint& best) {
  nn::load_weights(r.task.model(), best.folder / "model.safetensors");
  return read_result(r.run.folder);
}

void tell_of_device(const Resumed& r, const State& state) {
  const std::string now = c10::DeviceTypeName(r.session.device().type(), /*lower_case=*/true);
  if (state.device != now)
    r.tell("the checkpoint was made on " + state.device + " and the run goes on on " + now +
           ", so its figures are not, bit for bit, those of a run that stayed there");
}

// Without a checkpoint to go on from.
Start begin(const Resumed& r) {
  const fs::path& folder = r.run.folder;
  Start start;
  start.state.steps_per_epoch = r.steps_per_epoch;
  if (fs::exists(folder / kResultFile)) {
    const Result result = read_result(folder);
    if (!result.stopped_early && result.steps < r.steps)
      refuse(folder, "it is finished after " + std::to_string(result.steps) +
                         " steps, and the checkpoint 'last' that more of them would start from is gone; "
                         "start anew in another folder");
    start.result = stored_result(r, open_checkpoint(folder, "best"));
  } else if (has_checkpoint(folder, "best") && step_of(find_checkpoint(folder, "best")) > 0) {
    refuse(
        folder,
        "its checkpoint 'last' is gone and 'best' alone is not enough to go on from; start anew in another "
        "folder, where train.weights may name this run");
  }
  r.session.seed(r.options.seed);
  return start;
}

}  // namespace

Start take_up(const Resumed& r) {
  const fs::path& folder = r.run.folder;
  if (r.run.from == "last" && !has_checkpoint(folder)) return begin(r);
  const fs::path from = open_checkpoint(folder, r.run.from).folder;
  nn::load_weights(r.task.model(), from / "model.safetensors");
  Start start;
  State& state = start.state = load_state(r.session, r.optimizer, r.parameters, from);
  start.saved_step = state.step;
  if (state.steps_per_epoch != r.steps_per_epoch)
    refuse(folder, "an epoch has " + std::to_string(r.steps_per_epoch) + " steps, in the checkpoint " +
                       std::to_string(state.steps_per_epoch) +
                       "; the data, the batch size or the accumulation changed");
  check_same_data(r.task, folder, from);
  // Patience may be another now.
  state.stopped_early = state.stopped_early && r.options.patience > 0 && state.bad >= r.options.patience;
  const auto best = state.best_step > 0 ? find_best(folder, state.best_step) : std::nullopt;
  if (state.best_step > 0 && !best) {
    start.best_is_gone = state.best_step == state.step;
    if (!start.best_is_gone) {
      r.tell("'" + (folder / "best").string() + "' does not hold the best weights so far, those of step " +
             std::to_string(state.best_step) + "; the next evaluation selects anew");
      state.best.reset();
      state.best_step = 0;
      state.best_figures.clear();
      state.bad = 0;
    }
  } else if (fs::exists(folder / kResultFile) && (state.stopped_early || state.step >= r.steps)) {
    start.result = stored_result(r, best ? *best : open_checkpoint(folder, "best"));
  }
  if (start.result) return start;
  fs::remove(folder / kResultFile);  // it will be another
  tell_of_device(r, state);
  return start;
}

}  // namespace quatrain::train
