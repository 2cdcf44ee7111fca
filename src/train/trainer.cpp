#include "quatrain/train/trainer.h"

#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <stdexcept>

#include "quatrain/train/checkpoint.h"
#include "support/parts.h"
#include "support/version.h"
#include "train/checkpoint.h"
#include "train/checksum.h"
#include "train/finite.h"
#include "train/gradients.h"
#include "train/metrics.h"
#include "train/pace.h"
#include "train/records.h"
#include "train/resume.h"
#include "train/run_files.h"
#include "train/run_lock.h"
#include "train/saver.h"
#include "train/score.h"
#include "train/state.h"
#include "train/trainer_options.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;  // it never jumps

constexpr int64_t kMostSkippedInRow = 100;
constexpr int64_t kMostSkippedTold = 1000;  // then each of so many

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Thrown out of an evaluation that shall end; nothing has changed then.
struct Interrupted {};

// Makes torch refuse what has no deterministic form, and puts its old choice back.
class Deterministic {
 public:
  explicit Deterministic(bool wanted)
      : before_(at::globalContext().deterministicAlgorithms()),
        warned_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
    if (wanted) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(before_, warned_); }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  bool before_, warned_;
};

// One run from its folder's state to its end.
class Run {
 public:
  Run(Task& task, const TrainerOptions& options, const RunOptions& run, const Session& session)
      : task_(task),
        options_(options),
        run_(run),
        session_(session),
        deterministic_(options.deterministic),
        model_(moved(task.model())),
        parameters_(trained_parameters(model_)),
        optimizer_(make_optimizer(options.optimizer, model_)) {
    steps_per_epoch_ = count_parts(task.batches(), options.accumulate);
    steps_ = steps_of(options, steps_per_epoch_);
  }

  Result go() {
    refuse_training(run_.folder);
    refuse_existing(run_);
    fs::create_directories(run_.folder);
    const RunLock lock(run_.folder);
    refuse_existing(run_);
    if (run_.existing == Existing::overwrite) remove_run(run_.folder);
    const auto told = [this](const std::string& text) { tell(text); };
    Start start =
        take_up({task_, options_, run_, session_, *optimizer_, parameters_, steps_, steps_per_epoch_, told});
    if (start.result) return *start.result;
    state_ = std::move(start.state);
    Metrics metrics(run_.folder, state_.step, state_.evaluated_step, options_.log_every);
    if (const auto losses = metrics.losses(state_.metrics_lines); !losses.empty()) tell(losses);
    state_.figure = task_.selection().figure;
    state_.device = session_.device_kind();
    const std::string name =
        start.run.empty() ? checksum(task_.recipe() + std::to_string(options_.seed)) : start.run;
    Saver saver(task_, metrics, run_.folder, name, options_.keep, start.saved_step, told);
    metrics_ = &metrics;
    saver_ = &saver;
    resumed_seconds_ = state_.seconds;
    resumed_step_ = state_.step;
    start_ = Clock::now();
    if (const int64_t warming = warmup_steps(options_.schedule, steps_);
        state_.step == 0 && warming >= steps_)
      tell("the run's " + std::to_string(steps_) + " steps end within the warm-up of " +
           std::to_string(warming) +
           ", so that the rate never reaches its highest: set train.warmup_share = 0.1, or train longer");
    if (state_.step == 0 && options_.steps > steps_)
      tell("train.epochs = " + std::to_string(options_.epochs) + " ends the run at step " +
           std::to_string(steps_) + ", before train.steps = " + std::to_string(options_.steps));
    if (start.saved_step < 0) save_or_end("begins");
    if (start.best_is_gone) saver.best(state_.step, !ended());
    for (;;) {
      const bool evaluate_now = evaluation_due() && !stop();
      if (evaluate_now && !evaluate()) return stopped();
      if (ended() && !evaluation_due()) break;
      if (stop()) return stopped();
      if (evaluate_now || (checkpoint_due() && saver.saved_step() != state_.step)) save_last();
      step();
    }
    return finish();
  }

 private:
  // Before the optimizer takes hold of its parameters.
  torch::nn::Module& moved(torch::nn::Module& model) const {
    session_.move(model);
    return model;
  }

  bool stop() const { return run_.stop && run_.stop->load(); }

  void tell(const std::string& text) const {
    if (run_.on_message) run_.on_message(text);
  }

  bool ended() const { return state_.stopped_early || state_.step >= steps_; }

  bool evaluation_due() const {
    if (!task_.has("dev") || state_.step == 0) return false;
    if (ended() && !state_.best) return true;  // the best weights are gone: these are
    if (state_.evaluated_step == state_.step) return false;
    const int64_t every = options_.evaluate_every > 0 ? options_.evaluate_every : steps_per_epoch_;
    return state_.step >= steps_ || state_.step % every == 0;
  }

  bool checkpoint_due() const {
    return options_.checkpoint_every > 0 && state_.step > 0 && state_.step % options_.checkpoint_every == 0;
  }

  void step() {
    const auto start = Clock::now();
    const int64_t step = state_.step + 1;
    const int64_t epoch = state_.step / steps_per_epoch_;
    const int64_t first = state_.step % steps_per_epoch_ * options_.accumulate;
    const int64_t last = std::min(first + options_.accumulate, task_.batches());
    model_.train();
    if (options_.nonfinite == NonFinite::skip) buffers_.keep(model_);
    optimizer_->zero_grad();
    const Gradients made =
        make_gradients(task_, options_, session_.device().type(), parameters_, epoch, first, last);
    if (made.problem) return not_finite(*made.problem, epoch);
    learning_rate_ = options_.optimizer.learning_rate *
                     schedule_scale(options_.schedule, step, steps_, steps_per_epoch_, state_.plateau);
    set_learning_rate(*optimizer_, learning_rate_);
    optimizer_->step();

    state_.step = step;
    state_.skipped_in_row = 0;
    state_.window_loss += made.loss_sum;
    state_.window_examples += made.examples;
    pace_.note(made.loss_sum / static_cast<double>(made.examples), made.examples, seconds_since(start));
    if (metrics_->due(step)) {
      state_.logged_loss = state_.window_loss / static_cast<double>(state_.window_examples);
      state_.window_loss = 0;
      state_.window_examples = 0;
      metrics_->training(step, epoch, state_.logged_loss, learning_rate_, made.norm,
                         pace_.examples_per_second());
    }
    report(Progress::Stage::training);
  }

  // Before the optimizer has used it: weights and checkpoints stay as they are.
  void not_finite(const Gradients::Problem& problem, int64_t epoch) {
    const auto& [what, value, index] = problem;
    const int64_t step = state_.step + 1;
    const std::string batch = task_.describe_batch(epoch, index);
    const bool skip = options_.nonfinite == NonFinite::skip;
    if (!skip || state_.skipped_in_row >= kMostSkippedInRow) {
      const std::string so_far =
          skip ? ", after " + std::to_string(state_.skipped_in_row) + " steps in a row that were skipped"
               : "";
      // The weights of a first step are those that were drawn.
      throw NotFinite(c10::str(
          "the ", what, " is ", value, " at step ", step, so_far, " (", batch, "); ", saver_->kept(),
          step > 1 ? "; a lower learning rate, a longer warm-up or clipping may help"
                   : "; the model is not trained yet: look at its inputs and at what it computes of them"));
    }
    buffers_.restore();
    state_.step = step;
    ++state_.skipped;
    ++state_.skipped_in_row;
    if (state_.skipped <= kMostSkippedTold || state_.skipped % kMostSkippedTold == 0) {
      metrics_->skipped(step, epoch, c10::str(what, " ", value), batch);
      tell(c10::str("step ", step, " is skipped: the ", what, " is ", value, " (", batch, ")"));
    }
    report(Progress::Stage::training);
  }

  Evaluation scored(std::string_view split, Progress::Stage stage) {
    report(stage);
    return score(task_, split, options_.bf16, [&] {
      if (stop()) throw Interrupted{};
      report(stage);
    });
  }

  // False where it was interrupted.
  bool evaluate() {
    const auto start = Clock::now();
    check_weights();
    Evaluation evaluation;
    try {
      evaluation = scored("dev", Progress::Stage::evaluating);
    } catch (const Interrupted&) {
      return false;
    }
    const Selection selection = task_.selection();
    const auto found = evaluation.figures.find(selection.figure);
    TORCH_CHECK(found != evaluation.figures.end(), "train: the task selects by '", selection.figure,
                "', but its evaluation has no such figure");
    metrics_->evaluation(state_.step, "dev", evaluation.figures, seconds_since(start));
    if (run_.on_sample)
      for (const auto& sample : evaluation.samples) run_.on_sample(sample);
    const std::string doubt = doubt_of(evaluation.figures, "dev");
    if (!doubt.empty()) tell(c10::str("step ", state_.step, ": ", doubt));
    // An accuracy is a number even of answers that are none.
    const double figure = doubt.empty() ? found->second : std::nan("");
    state_.last = figure;
    state_.evaluated_step = state_.step;
    note_evaluation(state_.plateau, options_.schedule, figure, selection.higher_is_better);
    if (is_better(figure, state_.best, selection.higher_is_better)) {
      state_.best = figure;
      state_.best_step = state_.step;
      state_.best_figures = evaluation.figures;
      state_.bad = 0;
      saver_->best(state_.step, !ended());
    } else if (++state_.bad >= options_.patience && options_.patience > 0) {
      state_.stopped_early = true;
    }
    report(Progress::Stage::training);
    return true;
  }

  void check_weights() const {
    if (const std::string what = first_not_finite(model_); !what.empty())
      throw NotFinite("the " + what + " are not finite after step " + std::to_string(state_.step) + "; " +
                      saver_->kept() + "; a lower learning rate, a longer warm-up or clipping may help");
  }

  bool save_last(bool continues = true) {
    check_weights();
    state_.seconds = resumed_seconds_ + seconds_since(start_);
    state_.metrics_lines = metrics_->lines();
    const auto fill = [&](const fs::path& folder) {
      save_state(state_, session_, *optimizer_, parameters_, folder);
    };
    return saver_->last(state_.step, fill, continues);
  }

  // At the beginning and at the end of a run it makes no sense to continue without a checkpoint.
  void save_or_end(const char* what) {
    if (save_last(/*continues=*/false)) return;
    const bool begun = saver_->saved_step() >= 0;
    std::error_code ignored;  // there is no run to resume: what is left must not look like one
    if (!begun) fs::remove(run_.folder / kMetricsFile, ignored);
    throw std::runtime_error("the run " + std::string(what) + " at step " + std::to_string(state_.step) +
                             " and its checkpoint cannot be written (" + saver_->failure() + "); " +
                             saver_->kept() + ": make room, then " +
                             (begun ? "resume the run" : "start the run again"));
  }

  Result stopped() {
    if (saver_->saved_step() != state_.step) save_or_end("ends");
    Result result = base_result();
    report(Progress::Stage::done);
    return result;
  }

  Result finish() {
    if (!task_.has("dev")) {  // nothing to select by: the last weights are the best
      state_.best_step = state_.step;
      saver_->best(state_.step, /*continues=*/false);
    }
    save_or_end("ends");
    Result result = base_result();
    const fs::path best = find_checkpoint(run_.folder, "best");
    load_model(model_, best);
    result.model_bytes = static_cast<int64_t>(fs::file_size(best / "model.safetensors"));
    result.weights = weights_checksum(run_.folder, "best");
    if (task_.has("test")) {
      Evaluation evaluation;
      try {
        evaluation = scored("test", Progress::Stage::testing);
      } catch (const Interrupted&) {
        report(Progress::Stage::done);
        return result;
      }
      keep_test(evaluation, result, run_.folder);
      if (const std::string doubt = doubt_of(result.test, "test"); !doubt.empty()) tell(doubt);
    }
    result.finished = true;
    result.seconds = resumed_seconds_ + seconds_since(start_);
    write_result(result, run_.folder);
    report(Progress::Stage::done);
    return result;
  }

  Result base_result() const {
    Result result;
    result.stopped_early = state_.stopped_early;
    result.steps = state_.step;
    result.best_step = state_.best_step;
    result.figure = task_.selection().figure;
    result.dev = state_.best_figures;
    result.facts = task_.facts();
    for (const auto& [name, parameter] : parameters_) result.parameters += parameter.numel();
    result.seconds = resumed_seconds_ + seconds_since(start_);
    result.step_seconds_median = pace_.step_seconds_median();
    result.examples_per_second = pace_.examples_per_second();
    result.skipped = state_.skipped;
    result.final_loss = state_.window_examples > 0
                            ? state_.window_loss / static_cast<double>(state_.window_examples)
                            : state_.logged_loss;
    result.threads = at::get_num_threads();
    result.device = state_.device;
    result.seed = options_.seed;
    result.version = version();
    result.commit = commit();
    return result;
  }

  void report(Progress::Stage stage) {
    if (!run_.on_progress) return;
    Progress p;
    p.stage = stage;
    p.step = state_.step;
    p.steps = steps_;
    p.epoch = std::max<int64_t>(0, state_.step - 1) / steps_per_epoch_;
    p.loss = pace_.loss();
    p.learning_rate = learning_rate_;
    p.examples_per_second = pace_.examples_per_second();
    p.unit = task_.unit();
    const double here = seconds_since(start_);
    p.seconds = resumed_seconds_ + here;
    const auto made = static_cast<double>(state_.step - resumed_step_);
    // Evaluations and checkpoints are in the rate, because they will come again.
    p.seconds_left = made > 0 ? here / made * static_cast<double>(steps_ - state_.step) : 0;
    p.figure = task_.selection().figure;
    p.last = state_.last;
    p.best = state_.best;
    run_.on_progress(p);
  }

  Task& task_;
  const TrainerOptions& options_;
  const RunOptions& run_;
  const Session& session_;
  Deterministic deterministic_;
  torch::nn::Module& model_;
  NamedParameters parameters_;
  KeptBuffers buffers_;  // where a step may be skipped
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  Metrics* metrics_ = nullptr;
  Saver* saver_ = nullptr;
  int64_t steps_per_epoch_ = 0;
  int64_t steps_ = 0;
  State state_;
  double resumed_seconds_ = 0;
  int64_t resumed_step_ = 0;
  Clock::time_point start_;
  Pace pace_;
  double learning_rate_ = 0;
};

}  // namespace

Trainer::Trainer(Task& task, TrainerOptions options, RunOptions run, Session session)
    : task_(task), options_(std::move(options)), run_(std::move(run)), session_(session) {
  check(options_, run_, task_);
  if (const at::Device asked = parse_device(options_.device); !asked.is_cpu() && session_.device().is_cpu())
    throw std::invalid_argument("train: device = " + options_.device +
                                ", but the session is on the CPU: give the Trainer a Session(\"" +
                                options_.device + "\")");
}

Result Trainer::run() {
  return Run(task_, options_, run_, session_).go();
}

}  // namespace quatrain::train
