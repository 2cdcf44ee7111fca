#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/settings.h"
#include "temporary_folder.h"

/// Small runs that make lines of other lines.
namespace quatrain::tasks {

/// Three letters backwards: a task for seconds.
inline constexpr const char* kBackwards = R"toml(
[task]
kind = "seq2seq"
data = "reverse"
[reverse]
shortest = 1
longest = 4
symbols = 7
train = 4000
dev = 50
test = 100
[model]
algebra = "quaternion"
norm = "pre"
width = 32
heads = 2
feed_forward = 64
encoder_layers = 1
decoder_layers = 1
dropout = 0.0
[train]
rate = 5e-3
schedule = "cosine"
warmup = 20
steps = 500
batch = 64
evaluate_every = 100
label_smoothing = 0.0
select = "exact"
)toml";

class Seq2SeqKindTest : public test::FolderTest {
 protected:
  Recipe recipe(const std::vector<std::string>& settings = {}) {
    return parse_recipe(kBackwards, "backwards.toml", "backwards", settings_of_tests(settings));
  }
  // A corpus of lines and the same lines in capitals.
  Recipe corpus(const std::vector<std::string>& settings = {}) {
    for (const auto& [split, count] : {std::pair{"train", 60}, std::pair{"dev", 8}, std::pair{"test", 8}})
      write_corpus(split, count);
    std::vector<std::string> all{
        "task.data=parallel", "task.source=low",        "task.target=up", "task.folder=" + folder_.string(),
        "train.steps=12",     "train.evaluate_every=6", "train.batch=16"};
    all.insert(all.end(), settings.begin(), settings.end());
    return recipe(all);
  }
  void write_corpus(const std::string& split, int count, const std::string& more = "") {
    std::ofstream low(folder_ / (split + ".low")), up(folder_ / (split + ".up"));
    for (int i = 0; i < count; ++i) {
      std::string line;
      for (int j = 0; j < 2 + i % 5; ++j) line += static_cast<char>('a' + (i * 3 + j * j) % 26);
      low << line << "\n";
      for (char& c : line) c = static_cast<char>(c - 32);
      up << line << more << "\n";
    }
  }
  train::Result learn(const Recipe& recipe, train::RunOptions run = {}) {
    const auto data = load_data(recipe);
    const auto task = make_task(data->recipe(), *data);
    if (run.folder.empty()) run.folder = folder_ / "run";
    return train::Trainer(*task, data->recipe().train, run).run();
  }
  // Stopped after a step, as by a signal.
  train::Result learn_until(int64_t step, const Recipe& recipe, const std::filesystem::path& folder) {
    std::atomic<bool> stop = false;
    train::RunOptions run{.folder = folder};
    run.stop = &stop;
    run.on_progress = [&](const train::Progress& progress) { stop = progress.step >= step; };
    return learn(recipe, run);
  }
  std::string refusal_of(const Recipe& recipe, train::RunOptions run) {
    try {
      learn(recipe, std::move(run));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
};

}  // namespace quatrain::tasks
