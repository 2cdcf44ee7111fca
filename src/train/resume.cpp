#include "train/resume.h"

#include <torch/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"
#include "support/shell_word.h"
#include "support/text.h"
#include "train/checkpoint.h"
#include "train/checksum.h"
#include "train/metrics.h"
#include "train/run_files.h"
#include "train/sentence.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& run_folder, const std::string& why) {
  throw std::runtime_error("cannot resume '" + run_folder.string() + "': " + why);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "quatrain-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("cannot create the folder '" + name + "': " + std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool is_checksum(const fs::directory_entry& entry) {
  return entry.path().extension() == ".checksum";
}

bool has_checksums(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), {}, is_checksum);
}

// A task's files say what the model's numbers mean (words, labels). They are written again to a temporary
// folder and compared.
void check_same_data(const Resumed& r, const fs::path& checkpoint) {
  const fs::path& run_folder = r.run.folder;
  const TemporaryFolder place;  // not in the run, which may be finished and read-only
  r.task.store(place.path());
  const bool older = !has_checksums(checkpoint) && has_checksums(place.path());
  if (older)
    r.tell(
        "the checkpoint '" + checkpoint.string() +
        "' is of a version that kept no checksums of such data, so nothing says whether they have changed");
  std::vector<std::string> other;
  for (const auto& entry : fs::directory_iterator(place.path())) {
    if (older && is_checksum(entry)) continue;
    const fs::path stored = checkpoint / entry.path().filename();
    if (!fs::exists(stored) || checksum_of_file(entry.path()) != checksum_of_file(stored))
      other.push_back(stored.filename().string());
  }
  // A set that was there and is not any more is written by nobody.
  for (const auto& entry : fs::directory_iterator(checkpoint))
    if (is_checksum(entry) && !fs::exists(place.path() / entry.path().filename()))
      other.push_back(entry.path().filename().string());
  if (!other.empty())
    refuse(run_folder, "with these data " + join(other) + " differs from that of the checkpoint '" +
                           checkpoint.string() +
                           "'; use the data that the run was started with, or start a new run");
}

// best/, and what is wrong with it.
struct Best {
  std::optional<Checkpoint> sound;
  fs::path folder;                  // empty where there is none
  std::vector<std::string> damage;  // a phrase each
};

Best look_at_best(const fs::path& run_folder) {
  Best best;
  for (const char* name : {"best", "best.old"}) {
    if (!best.folder.empty() || !fs::exists(run_folder / name)) continue;
    best.folder = run_folder / name;
    best.damage = find_damage(best.folder);
    if (best.damage.empty()) best.sound = Checkpoint{"best", step_of(best.folder), best.folder};
  }
  if (best.folder.empty()) best.damage = {"it is missing"};
  return best;
}

// A finished run has lost its best weights. Selecting again would give up its result, which is still valid.
[[noreturn]] void refuse_without_best(const Resumed& r, const Best& best) {
  read_result(r.run.folder);  // throws where the result is damaged too
  refuse(r.run.folder, "it is finished, and its best weights '" + (r.run.folder / "best").string() +
                           "' cannot be used (" + join(best.damage) +
                           "): put them back, or delete result.json and resume, which selects new ones");
}

// What a user has put there, by work of their own perhaps, would be gone at the next better evaluation.
void mind_other_weights(const Resumed& r, const Best& best, bool done) {
  if (!best.sound || !has_other_weights(best.folder)) return;
  const std::string run = shell_word(r.run.folder);
  if (done)
    return r.tell("the weights in '" + best.folder.string() +
                  "' are not those of these figures, but were accepted later: quatrain evaluate " + run +
                  " scores them");
  refuse(r.run.folder, "the weights in '" + best.folder.string() +
                           "' are not those that it selected, but were accepted by quatrain check, and "
                           "training would replace them: train on from them in a new run, quatrain train " +
                           run + " --weights " + run + " --out NEW, or move '" +
                           best.folder.filename().string() + "' away to go on without them");
}

// The result of a finished run, with the best weights in the model.
Result stored_result(const Resumed& r, const Checkpoint& best) {
  load_model(r.task.model(), best.folder);
  return read_result(r.run.folder);
}

// The checkpoint as it is, but for the number of lines in metrics.jsonl that it speaks of.
void note_lines(const fs::path& run_folder, const fs::path& checkpoint, int64_t lines) {
  State state = read_state(checkpoint);
  state.metrics_lines = lines;
  const auto fill = [&](const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(checkpoint))
      fs::copy_file(entry.path(), folder / entry.path().filename());
    write_state(state, folder);
  };
  constexpr int64_t kAllOlder = std::numeric_limits<int64_t>::max();
  write_checkpoint(run_folder, "last", state.step, run_of(checkpoint), fill, kAllOlder);
}

// A finished run drops its damaged lines too, and takes what is left for all: nothing else would ever put it
// right. It is finished even where it cannot be written; where nothing is wrong nothing is written.
void mend_metrics(const Resumed& r, const Start& start, const fs::path& checkpoint) {
  const fs::path& folder = r.run.folder;
  if (!parts_of(folder).metrics) return;
  const int64_t expected = start.state.metrics_lines;
  int64_t left = expected;
  try {
    if (const auto lines = whole_lines(folder); lines && *lines >= expected) {
      // Of steps that no checkpoint has, where the run went on from here and was killed.
      if (*lines > expected && r.run.from == "last" && !checkpoint.empty())
        Metrics(folder, start.state.step, start.state.evaluated_step, r.options.log_every);
      return;
    }
    const Metrics metrics(folder);
    left = metrics.lines();
    if (const auto losses = metrics.losses(expected); !losses.empty()) r.tell(losses);
  } catch (const std::exception& error) {
    return r.tell("metrics.jsonl is not whole and cannot be put right (" + sentence_of(error) +
                  "); the model and its figures do not need it");
  }
  if (left >= expected || r.run.from != "last") return;
  try {
    note_lines(folder, checkpoint, left);
  } catch (const std::exception& error) {
    r.tell("the checkpoint 'last' still counts the lines that metrics.jsonl lost (" + sentence_of(error) +
           "); resume the run again to have it count those that are left");
  }
}

void tell_of_device(const Resumed& r, const State& state) {
  const std::string now = r.session.device_kind();
  if (state.device != now)
    r.tell("the checkpoint was made on " + state.device + " and the run continues on " + now +
           ", so its figures are not, bit for bit, those of a run that stayed there");
}

// Begins without a checkpoint to continue from.
Start begin(const Resumed& r) {
  const fs::path& folder = r.run.folder;
  Start start;
  start.state.steps_per_epoch = r.steps_per_epoch;
  if (fs::exists(folder / kResultFile)) {
    const Result result = read_result(folder);
    if (!result.stopped_early && result.steps < r.steps)
      refuse(folder, "the run is finished after " + std::to_string(result.steps) +
                         " steps, and more steps need its checkpoint 'last', which is missing; "
                         "start a new run in another folder");
    start.result = stored_result(r, open_checkpoint(folder, "best"));
    mend_metrics(r, start, {});
  } else if (has_checkpoint(folder, "best") && step_of(find_checkpoint(folder, "best")) > 0) {
    refuse(folder,
           "its checkpoint 'last' is missing and 'best' alone is not enough to continue from; start a new "
           "run in "
           "another folder, where train.weights may name this run");
  }
  mind_other_weights(r, look_at_best(folder), start.result.has_value());
  r.session.seed(r.options.seed);
  return start;
}

// True where a finished run is asked for no more steps than it made: then its result needs no checkpoint
// 'last'.
bool is_done(const Resumed& r) {
  if (!fs::exists(r.run.folder / kResultFile)) return false;
  const Result result = read_result(r.run.folder);
  return result.steps >= r.steps || (result.stopped_early && r.options.patience > 0);
}

}  // namespace

Start take_up(const Resumed& r) {
  const fs::path& folder = r.run.folder;
  if (r.run.from == "last" && !has_checkpoint(folder, "last") && (!has_checkpoint(folder) || is_done(r)))
    return begin(r);
  const fs::path from = open_checkpoint(folder, r.run.from).folder;
  // Going on would replace the one by the other's, or score weights that were never selected.
  if (const std::string why = foreign(from); !why.empty())
    refuse(folder, "its checkpoint '" + from.filename().string() + "' " + why);
  check_same_data(r, from);  // first: another vocabulary makes another model
  nn::load_weights(r.task.model(), from / "model.safetensors");
  Start start;
  State& state = start.state = load_state(r.session, r.optimizer, r.parameters, from);
  start.saved_step = state.step;
  start.run = name_of_run(folder);  // that of the others, where an older version wrote this one
  if (state.steps_per_epoch != r.steps_per_epoch)
    refuse(folder, "an epoch has " + std::to_string(r.steps_per_epoch) +
                       " steps now, but in the checkpoint " + std::to_string(state.steps_per_epoch) +
                       "; the data, the batch size or the accumulation has changed");
  // The patience may have been changed.
  state.stopped_early = state.stopped_early && r.options.patience > 0 && state.bad >= r.options.patience;
  const Best best = look_at_best(folder);
  const bool finished = fs::exists(folder / kResultFile) && (state.stopped_early || state.step >= r.steps);
  if (state.best_step > 0 && !(best.sound && best.sound->step == state.best_step)) {
    start.best_is_gone = state.best_step == state.step;
    if (finished && !best.sound && !start.best_is_gone) refuse_without_best(r, best);
    if (!best.folder.empty() && !best.sound)
      r.tell("'" + best.folder.string() + "' is damaged (" + join(best.damage) + ") and was renamed to '" +
             set_aside(best.folder).string() + "'");
    if (!start.best_is_gone) {
      r.tell("'" + (folder / "best").string() + "' does not contain the best weights so far, those of step " +
             std::to_string(state.best_step) + "; the next evaluation selects new ones");
      state.best.reset();
      state.best_step = 0;
      state.best_figures.clear();
      state.bad = 0;
    }
  } else if (finished) {
    start.result = stored_result(r, best.sound ? *best.sound : open_checkpoint(folder, "best"));
  }
  mind_other_weights(r, best, start.result.has_value());
  if (start.result) {
    mend_metrics(r, start, from);
    return start;
  }
  tell_of_device(r, state);
  return start;
}

}  // namespace quatrain::train
