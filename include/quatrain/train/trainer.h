#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/train/optimizer.h"
#include "quatrain/train/options.h"
#include "quatrain/train/progress.h"
#include "quatrain/train/session.h"
#include "quatrain/train/task.h"

namespace quatrain::train {

/// What to do if the run folder already contains a run.
enum class Existing { refuse, resume, overwrite };

/// Where a run lives and who watches it.
struct QUATRAIN_API RunOptions {
  std::filesystem::path folder;
  /// resume: continues from the last checkpoint, or from the start where none was written yet; a run that is
  /// finished gives its stored result. overwrite: removes the run's files (and no others) and starts from the
  /// beginning.
  Existing existing = Existing::refuse;
  /// The checkpoint to resume from: "last" or an older one ("step-000120", see sound_checkpoints).
  std::string from = "last";
  /// Set from elsewhere (a signal handler): training saves and stops after the step that is being made; an
  /// evaluation is abandoned and made again when the run is resumed.
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const Progress&)> on_progress = {};    ///< called at every step; see ProgressLine
  std::function<void(const std::string&)> on_message = {};  ///< what a user should know: a sentence
  /// Examples of the dev set with their answers, a line each, at every evaluation; see Evaluation::samples.
  std::function<void(const std::string&)> on_sample = {};
};

/// What came of a run; the same is in result.json.
struct QUATRAIN_API Result {
  bool finished = false;  ///< false: stopped from outside, to be resumed; then there are no test figures
  bool stopped_early = false;
  int64_t steps = 0;      ///< steps made
  int64_t best_step = 0;  ///< step of the best checkpoint
  std::string figure;     ///< that of the dev set which selected it
  Figures dev;            ///< of the best checkpoint
  Figures test;           ///< of the best checkpoint; scored once, at the end
  Figures facts;          ///< the task's own numbers
  int64_t parameters = 0;
  int64_t model_bytes = 0;         ///< size of best/model.safetensors
  double seconds = 0;              ///< training time, evaluations included, over all parts of a resumed run
  double step_seconds_median = 0;  ///< over the latest steps, at most 1,000
  double examples_per_second = 0;  ///< of training
  int64_t skipped = 0;             ///< steps that were not finite and changed nothing
  double final_loss = 0;           ///< mean training loss since the last line of the log, else that line's
  int64_t threads = 0;
  std::string device = "cpu";  ///< where the last steps were made: "cpu" or "cuda"
  uint64_t seed = 0;
  std::string version;                        ///< of the program that trained and scored last
  std::string commit;                         ///< of its sources; empty where they were no checkout
  std::string predictions;                    ///< checksum of predictions.tsv; empty where none was written
  std::map<std::string, std::string> files;   ///< checksums of the test set's other files, by name
  std::map<std::string, std::string> counts;  ///< checksums of FIGURE.counts.tsv, by the figure
  std::string weights;                        ///< checksum of best/model.safetensors, whose figures these are
};

/// What ends a run whose numbers are not finite any more: a loss, a gradient, weights or running statistics.
class QUATRAIN_API NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Trains a task's model: batches in, checkpoints and figures out. Independent of what the task is about.
///
/// The run folder: last/, best/ and step-N/ (checkpoints), metrics.jsonl (a JSON object a line), result.json,
/// predictions.tsv (target and answer of each test example) or FIGURE.counts.tsv (what a figure of the test
/// set is computed from). docs/training.md describes them. For one seed,
/// machine and number of threads a run gives the same bits, resumed or not. One process trains in a folder at
/// a time.
class QUATRAIN_API Trainer {
 public:
  /// Options out of range are errors here, before anything is written. The task's model moves to the
  /// session's device when the run begins.
  Trainer(Task& task, TrainerOptions options, RunOptions run, Session session = {});

  /// Trains until the last step, an early stop, or a stop from outside; then scores the best checkpoint on
  /// the test set. Leaves the model with the best checkpoint's weights.
  ///
  /// A loss that is not finite ends the run with an error that names the step and the batch, unless such
  /// steps are to be skipped. A checkpoint that cannot be written (a full disk) is told to `on_message` and
  /// training continues. The next one is tried, and the run ends with an error only if the last one fails
  /// too. What was written before always stays.
  Result run();

 private:
  Task& task_;
  TrainerOptions options_;
  RunOptions run_;
  Session session_;
};

/// Steps of a whole run whose epochs have so many.
QUATRAIN_API int64_t steps_of(const TrainerOptions& options, int64_t steps_per_epoch);

/// Reads result.json of a run folder. One whose figures are of other weights than those of best/, such as
/// another run's, is an error.
QUATRAIN_API Result read_result(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
