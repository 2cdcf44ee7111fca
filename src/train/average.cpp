#include "train/average.h"

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>

#include "quatrain/train/optimizer.h"
#include "support/atomic_file.h"
#include "support/atomic_folder.h"
#include "support/numbers.h"
#include "support/version.h"
#include "train/checkpoint.h"
#include "train/records.h"
#include "train/run_files.h"
#include "train/score.h"
#include "train/state.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";

std::string quoted(const Checkpoint& checkpoint) {
  return "'" + checkpoint.folder.string() + "'";
}

void require(bool holds, const Checkpoint& a, const Checkpoint& b, const std::string& what) {
  if (!holds)
    throw std::runtime_error("the checkpoints " + quoted(a) + " and " + quoted(b) + " have no mean: " + what);
}

// What is needed beside the weights to use the model: all checkpoints of a run have the same, but for the
// factors of learned algebras, which move to the mean.
void copy_meaning(const Checkpoint& from, const fs::path& folder) {
  const std::set<std::string> own{kWeights, "recipe.toml", "checkpoint.json", "training.json",
                                  "training.safetensors"};
  for (const auto& entry : fs::directory_iterator(from.folder))
    if (!own.contains(entry.path().filename().string()))
      fs::copy_file(entry.path(), folder / entry.path().filename());
}

// `figure`: by which the checkpoints were chosen; empty: they are the latest.
std::string record_of(const std::vector<Checkpoint>& checkpoints, const std::string& figure) {
  nlohmann::ordered_json record;
  if (!figure.empty()) record["best_by"] = figure;
  for (const Checkpoint& one : checkpoints) {
    auto& of = record["mean_of"].emplace_back();
    of = {{"folder", fs::absolute(one.folder).lexically_normal().string()},
          {"step", one.step},
          {"weights", weights_checksum(one.folder.parent_path(), one.name)}};
    if (!figure.empty()) of["dev"] = {{figure, *dev_figure(one)}};
  }
  // A path may not be UTF-8.
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Whether a tensor is a batch norm's count of the batches it has seen.
bool counts_batches(std::string_view name) {
  return name.ends_with("num_batches_tracked");
}

}  // namespace

std::vector<Checkpoint> checkpoints_to_average(const fs::path& run_folder, int64_t most) {
  std::vector<std::string> names;
  if (has_checkpoint(run_folder, "last")) names.emplace_back("last");
  for (const fs::path& older : older_checkpoints(run_folder)) names.push_back(older.filename().string());
  if (most > 0 && static_cast<int64_t>(names.size()) > most) names.resize(static_cast<size_t>(most));
  if (names.size() < 2)
    throw std::runtime_error(
        "the run '" + run_folder.string() + "' has " +
        counted(static_cast<int64_t>(names.size()), "checkpoint") +
        " to average, and a mean needs 2: train with train.keep = 5 (--keep 5), and evaluate more than once "
        "(train.evaluate_every)");
  std::vector<Checkpoint> checkpoints;
  for (const auto& name : names) checkpoints.push_back(open_checkpoint(run_folder, name));
  for (const Checkpoint& one : checkpoints)
    if (const std::string why = foreign(one.folder); !why.empty())
      throw std::runtime_error("the checkpoint '" + one.folder.string() + "' " + why);
  std::reverse(checkpoints.begin(), checkpoints.end());
  return checkpoints;
}

std::optional<double> dev_figure(const Checkpoint& checkpoint) {
  const State state = read_state(checkpoint.folder);
  if (state.evaluated_step != checkpoint.step || !state.last || std::isnan(*state.last)) return std::nullopt;
  return state.last;
}

std::vector<Checkpoint> best_of(const std::vector<Checkpoint>& checkpoints, int64_t most,
                                bool higher_is_better) {
  std::vector<std::pair<double, Checkpoint>> ranked;
  for (const Checkpoint& one : checkpoints)
    if (const auto figure = dev_figure(one)) ranked.emplace_back(higher_is_better ? *figure : -*figure, one);
  if (ranked.size() < 2)
    throw std::runtime_error(
        "the run '" + checkpoints.front().folder.parent_path().string() + "' has " +
        counted(static_cast<int64_t>(ranked.size()), "checkpoint") +
        " saved at an evaluation, and a mean of the best needs 2: take the latest (--last)");
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second.step > b.second.step;
  });
  if (static_cast<int64_t>(ranked.size()) > most) ranked.resize(static_cast<size_t>(most));
  std::vector<Checkpoint> best;
  for (auto& [value, one] : ranked) best.push_back(std::move(one));
  std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return best;
}

nn::Safetensors mean_of_weights(const std::vector<Checkpoint>& checkpoints) {
  const Checkpoint& first = checkpoints.front();
  nn::Safetensors mean = nn::read_safetensors(first.folder / kWeights);
  const auto count = static_cast<double>(checkpoints.size());
  std::vector<at::Tensor> sums;
  for (const auto& [name, tensor] : mean.tensors)
    sums.push_back(tensor.is_floating_point() ? tensor.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true)
                                              : at::Tensor());
  for (size_t i = 1; i < checkpoints.size(); ++i) {
    const Checkpoint& other = checkpoints[i];
    const nn::Safetensors weights = nn::read_safetensors(other.folder / kWeights);
    require(weights.metadata == mean.metadata && weights.tensors.size() == mean.tensors.size(), first, other,
            "their weights are of different models");
    for (size_t t = 0; t < sums.size(); ++t) {
      const auto& [name, tensor] = mean.tensors[t];
      const at::Tensor* same = weights.find(name);
      require(same && same->sizes() == tensor.sizes() && same->scalar_type() == tensor.scalar_type(), first,
              other, "'" + name + "' is another tensor in each");
      if (sums[t].defined())
        sums[t] += *same;
      else if (counts_batches(name))
        mean.tensors[t].second = *same;
      else
        require(at::equal(tensor, *same), first, other,
                "'" + name + "' has whole numbers, which must be equal, and they differ");
    }
  }
  for (size_t t = 0; t < sums.size(); ++t)
    if (sums[t].defined())
      mean.tensors[t].second = (sums[t] / count).to(mean.tensors[t].second.scalar_type());
  return mean;
}

Result write_average(Task& task, const std::vector<Checkpoint>& checkpoints, const AverageOptions& options) {
  const Checkpoint& newest = checkpoints.back();
  AtomicFolder run(options.folder);
  write_checkpoint(run.path(), "best", newest.step, "", [&](const fs::path& folder) {
    const nn::Safetensors mean = mean_of_weights(checkpoints);
    nn::write_safetensors(folder / kWeights, mean.tensors, mean.metadata);
    copy_meaning(newest, folder);
    write_text(folder / "recipe.toml", options.recipe);
    write_text(folder / kAverageFile, record_of(checkpoints, options.best ? task.selection().figure : ""));
  });
  const fs::path best = run.path() / "best";
  load_model(task.model(), best);

  const State state = read_state(newest.folder);
  Result result;
  result.finished = true;
  result.stopped_early = state.stopped_early;
  result.steps = result.best_step = newest.step;
  result.seconds = state.seconds;
  result.skipped = state.skipped;
  result.final_loss = state.logged_loss;
  result.figure = task.selection().figure;
  result.facts = task.facts();
  for (const auto& [name, parameter] : trained_parameters(task.model()))
    result.parameters += parameter.numel();
  result.model_bytes = static_cast<int64_t>(fs::file_size(best / kWeights));
  result.weights = weights_checksum(run.path(), "best");
  result.threads = at::get_num_threads();
  result.device = state.device;
  result.seed = options.seed;
  result.version = version();
  result.commit = commit();
  if (task.has("dev")) result.dev = score(task, "dev", options.bf16, options.after_batch).figures;
  if (task.has("test")) keep_test(score(task, "test", options.bf16, options.after_batch), result, run.path());
  write_result(result, run.path());
  run.commit();
  return result;
}

}  // namespace quatrain::train
