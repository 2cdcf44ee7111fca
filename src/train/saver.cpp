#include "train/saver.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "quatrain/nn/weights.h"
#include "support/atomic_file.h"
#include "train/checkpoint.h"
#include "train/sentence.h"
#include "train/state.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;

constexpr bool kDropsResult = true;  // of a run that was finished and goes on

// What is needed to use a model.
void write_model(const Task& task, const nn::Safetensors& weights, const nn::NamedTensors& structures,
                 const fs::path& folder) {
  nn::write_safetensors(folder / "model.safetensors", weights.tensors, weights.metadata);
  write_structures(structures, folder);
  if (const std::string recipe = task.recipe(); !recipe.empty()) write_text(folder / "recipe.toml", recipe);
  task.store(folder);
}

}  // namespace

Saver::Saver(Task& task, Metrics& metrics, fs::path run_folder, std::string run, int64_t keep,
             int64_t saved_step, std::function<void(const std::string&)> tell)
    : task_(task),
      metrics_(metrics),
      folder_(std::move(run_folder)),
      run_(std::move(run)),
      keep_(keep),
      tell_(std::move(tell)),
      saved_step_(saved_step) {}

void Saver::best(int64_t step, bool continues) {
  unsaved_best_ = Best{step, nn::weights_of(task_.model()), structures_of(task_.model())};
  if (write_best(step, continues)) return;
  for (auto& [name, tensor] : unsaved_best_->weights.tensors) tensor = tensor.detach().clone();
}

bool Saver::last(int64_t step, const Fill& fill, bool continues) {
  if (unsaved_best_ && !write_best(step, continues)) return false;
  return attempt(step, continues, [&] {
    metrics_.sync();
    write_checkpoint(
        folder_, "last", step, run_,
        [&](const fs::path& folder) {
          write_model(task_, nn::weights_of(task_.model()), structures_of(task_.model()), folder);
          fill(folder);
        },
        keep_, kDropsResult);
    saved_step_ = step;
  });
}

std::string Saver::kept() const {
  return saved_step_ >= 0 ? "the checkpoint of step " + std::to_string(saved_step_) + " in '" +
                                (folder_ / "last").string() + "' is kept"
                          : "no checkpoint was written yet";
}

bool Saver::write_best(int64_t step, bool continues) {
  return attempt(step, continues, [&] {
    write_checkpoint(
        folder_, "best", unsaved_best_->step, run_,
        [&](const fs::path& folder) {
          write_model(task_, unsaved_best_->weights, unsaved_best_->structures, folder);
        },
        /*keep=*/1, kDropsResult);
    unsaved_best_.reset();
  });
}

bool Saver::attempt(int64_t step, bool continues, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const std::exception& error) {
    failure_ = sentence_of(error);
    std::error_code ignored;
    if (!fs::exists(folder_, ignored))
      throw std::runtime_error("the run's folder '" + folder_.string() + "' has vanished at step " +
                               std::to_string(step) + ": nothing more can be saved, so training ends here");
    // The best one is tried again with the last one of its step, which would tell the same.
    if (!continues || std::exchange(told_step_, step) == step) return false;
    tell_("the checkpoint of step " + std::to_string(step) + " cannot be written (" + failure_ + "); " +
          kept() + ", and training continues");
    return false;
  }
}

}  // namespace quatrain::train
