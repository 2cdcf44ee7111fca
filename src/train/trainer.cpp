#include "quatrain/train/trainer.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <stdexcept>

#include "nn/atomic_file.h"
#include "quatrain/nn/weights.h"
#include "train/autocast.h"
#include "train/checkpoint.h"
#include "train/records.h"
#include "train/state.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kTimedSteps = 1000;
constexpr double kSmoothing = 0.95;  // of the loss that is shown

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One run from its folder's state to its end.
class Run {
 public:
  Run(Task& task, const TrainerOptions& options, const RunOptions& run)
      : task_(task),
        options_(options),
        run_(run),
        model_(task.model()),
        parameters_(trained_parameters(model_)),
        optimizer_(make_optimizer(options.optimizer, parameters_)) {
    steps_per_epoch_ = (task.batches() + options.accumulate - 1) / options.accumulate;
    steps_ = options.epochs > 0 ? options.epochs * steps_per_epoch_ : options.steps;
    if (options.steps > 0) steps_ = std::min(steps_, options.steps);
    state_.steps_per_epoch = steps_per_epoch_;
  }

  Result go() {
    if (auto stored = open_folder()) return *stored;
    Metrics metrics(run_.folder, state_.step, state_.evaluated_step);
    metrics_ = &metrics;
    resumed_seconds_ = state_.seconds;
    resumed_step_ = state_.step;
    start_ = Clock::now();
    for (;;) {
      const bool evaluate_now = evaluation_due() && !stop();
      if (evaluate_now) evaluate();
      if (state_.stopped_early || (state_.step >= steps_ && !evaluation_due())) break;
      if (stop()) return stopped();
      if (evaluate_now || (checkpoint_due() && saved_step_ != state_.step)) save_last();
      step();
    }
    return finish();
  }

 private:
  bool stop() const { return run_.stop && run_.stop->load(); }

  // The stored result where the run is finished already.
  std::optional<Result> open_folder() {
    const auto existing = run_.existing;
    if (existing == Existing::refuse && holds_run(run_.folder))
      throw std::runtime_error("'" + run_.folder.string() +
                               "' holds a run already: resume it, overwrite it, or choose another folder");
    if (existing == Existing::overwrite) remove_run(run_.folder);
    fs::create_directories(run_.folder);
    if (!has_checkpoint(run_.folder, "last")) {
      torch::manual_seed(options_.seed);
      return std::nullopt;
    }
    const fs::path folder = find_checkpoint(run_.folder, "last");
    nn::load_weights(model_, folder / "model.safetensors");
    state_ = load_state(*optimizer_, parameters_, folder);
    if (state_.steps_per_epoch != steps_per_epoch_)
      throw std::runtime_error("cannot resume '" + run_.folder.string() + "': an epoch has " +
                               std::to_string(steps_per_epoch_) + " steps, in the checkpoint " +
                               std::to_string(state_.steps_per_epoch) +
                               "; the data, the batch size or the accumulation changed");
    saved_step_ = state_.step;
    const fs::path result = run_.folder / "result.json";
    if (!fs::exists(result)) return std::nullopt;
    if (state_.stopped_early || state_.step >= steps_) {
      nn::load_weights(model_, find_checkpoint(run_.folder, "best") / "model.safetensors");
      return read_result(run_.folder);
    }
    fs::remove(result);  // more steps are wanted than were made
    return std::nullopt;
  }

  bool evaluation_due() const {
    if (!task_.has("dev") || state_.step == 0 || state_.evaluated_step == state_.step) return false;
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
    const double rate = options_.optimizer.learning_rate *
                        schedule_scale(options_.schedule, step, steps_, steps_per_epoch_, state_.plateau);
    model_.train();
    optimizer_->zero_grad();
    double loss_sum = 0;
    int64_t examples = 0;
    for (int64_t index = first; index < last; ++index) {
      BatchLoss batch;
      {
        const Autocast autocast(options_.bf16);
        batch = task_.loss(epoch, index);
      }
      const double loss = batch.loss.item<double>();
      check_finite(loss, "loss", epoch, index);
      // Means of unequal batches weigh by their examples; a single one is left as it is.
      const auto weight = static_cast<double>(batch.examples);
      (options_.accumulate > 1 ? batch.loss * weight : batch.loss).backward();
      loss_sum += loss * weight;
      examples += batch.examples;
    }
    std::vector<at::Tensor> trained;
    for (const auto& [name, parameter] : parameters_) {
      if (options_.accumulate > 1 && parameter.grad().defined())
        parameter.mutable_grad().div_(static_cast<double>(examples));
      trained.push_back(parameter);
    }
    const double bound = options_.clip > 0 ? options_.clip : std::numeric_limits<double>::infinity();
    const double norm = torch::nn::utils::clip_grad_norm_(trained, bound);
    check_finite(norm, "gradient", epoch, first);
    set_learning_rate(*optimizer_, rate);
    optimizer_->step();

    state_.step = step;
    note_step(loss_sum, examples, seconds_since(start));
    if (options_.log_every > 0 && step % options_.log_every == 0) {
      state_.logged_loss = state_.window_loss / static_cast<double>(state_.window_examples);
      state_.window_loss = 0;
      state_.window_examples = 0;
      metrics_->training(step, epoch, state_.logged_loss, rate, norm, examples_per_second());
    }
    learning_rate_ = rate;
    report(Progress::Stage::training);
  }

  void note_step(double loss_sum, int64_t examples, double seconds) {
    state_.window_loss += loss_sum;
    state_.window_examples += examples;
    const double loss = loss_sum / static_cast<double>(examples);
    shown_loss_ = step_seconds_.empty() ? loss : kSmoothing * shown_loss_ + (1 - kSmoothing) * loss;
    step_seconds_.push_back(seconds);
    step_examples_.push_back(examples);
    if (step_seconds_.size() > kTimedSteps) {
      step_seconds_.pop_front();
      step_examples_.pop_front();
    }
  }

  // Before the optimizer has used it: weights and checkpoints stay as they are.
  void check_finite(double value, const char* what, int64_t epoch, int64_t index) const {
    if (std::isfinite(value)) return;
    const std::string kept = saved_step_ > 0 ? "the checkpoint of step " + std::to_string(saved_step_) +
                                                   " in '" + (run_.folder / "last").string() + "' is kept"
                                             : "no checkpoint was written yet";
    throw std::runtime_error(c10::str("the ", what, " is ", value, " at step ", state_.step + 1, " (",
                                      task_.describe_batch(epoch, index), "); ", kept,
                                      "; a lower learning rate, a longer warm-up or clipping may help"));
  }

  Evaluation score(const std::string& split) {
    const torch::NoGradGuard no_grad;
    const Autocast autocast(options_.bf16);
    model_.eval();
    return task_.evaluate(split);
  }

  void evaluate() {
    report(Progress::Stage::evaluating);
    const auto start = Clock::now();
    const Evaluation evaluation = score("dev");
    const Selection selection = task_.selection();
    const auto found = evaluation.figures.find(selection.figure);
    TORCH_CHECK(found != evaluation.figures.end(), "train: the task selects by '", selection.figure,
                "', but its evaluation has no such figure");
    metrics_->evaluation(state_.step, "dev", evaluation.figures, seconds_since(start));
    state_.last = found->second;
    state_.evaluated_step = state_.step;
    note_evaluation(state_.plateau, options_.schedule, found->second, selection.higher_is_better);
    if (is_better(found->second, state_.best, selection.higher_is_better)) {
      state_.best = found->second;
      state_.best_step = state_.step;
      state_.best_figures = evaluation.figures;
      state_.bad = 0;
      save_best();
    } else if (++state_.bad >= options_.patience && options_.patience > 0) {
      state_.stopped_early = true;
    }
    report(Progress::Stage::training);
  }

  // What is needed to use the model.
  void save_model(const fs::path& folder) const {
    nn::save_weights(model_, folder / "model.safetensors");
    if (const std::string recipe = task_.recipe(); !recipe.empty())
      nn::write_text(folder / "recipe.toml", recipe);
    task_.store(folder);
  }

  void save_best() {
    write_checkpoint(run_.folder, "best", state_.step, [&](const fs::path& folder) { save_model(folder); });
  }

  // And to go on training.
  void save_last() {
    state_.seconds = resumed_seconds_ + seconds_since(start_);
    write_checkpoint(run_.folder, "last", state_.step, [&](const fs::path& folder) {
      save_model(folder);
      save_state(state_, *optimizer_, parameters_, folder);
    });
    saved_step_ = state_.step;
  }

  Result stopped() {
    if (saved_step_ != state_.step) save_last();
    Result result = base_result();
    report(Progress::Stage::done);
    return result;
  }

  Result finish() {
    if (!task_.has("dev")) {  // nothing to select by: the last weights are the best
      state_.best_step = state_.step;
      save_best();
    }
    save_last();
    Result result = base_result();
    const fs::path best = find_checkpoint(run_.folder, "best") / "model.safetensors";
    nn::load_weights(model_, best);
    result.model_bytes = static_cast<int64_t>(fs::file_size(best));
    if (task_.has("test")) {
      report(Progress::Stage::testing);
      const Evaluation evaluation = score("test");
      result.test = evaluation.figures;
      if (!evaluation.predictions.empty()) write_predictions(evaluation, run_.folder);
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
    result.dev = state_.best_figures;
    result.facts = task_.facts();
    for (const auto& [name, parameter] : parameters_) result.parameters += parameter.numel();
    result.seconds = resumed_seconds_ + seconds_since(start_);
    std::vector<double> sorted(step_seconds_.begin(), step_seconds_.end());
    std::sort(sorted.begin(), sorted.end());
    if (!sorted.empty()) result.step_seconds_median = sorted[sorted.size() / 2];
    result.examples_per_second = examples_per_second();
    result.final_loss = state_.window_examples > 0
                            ? state_.window_loss / static_cast<double>(state_.window_examples)
                            : state_.logged_loss;
    result.threads = at::get_num_threads();
    result.seed = options_.seed;
    return result;
  }

  double examples_per_second() const {
    double seconds = 0;
    int64_t examples = 0;
    for (const double s : step_seconds_) seconds += s;
    for (const int64_t e : step_examples_) examples += e;
    return seconds > 0 ? static_cast<double>(examples) / seconds : 0;
  }

  void report(Progress::Stage stage) {
    if (!run_.on_progress) return;
    Progress p;
    p.stage = stage;
    p.step = state_.step;
    p.steps = steps_;
    p.epoch = std::max<int64_t>(0, state_.step - 1) / steps_per_epoch_;
    p.loss = shown_loss_;
    p.learning_rate = learning_rate_;
    p.examples_per_second = examples_per_second();
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
  torch::nn::Module& model_;
  NamedParameters parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  Metrics* metrics_ = nullptr;
  int64_t steps_per_epoch_ = 0;
  int64_t steps_ = 0;
  State state_;
  int64_t saved_step_ = -1;  // step of last/
  double resumed_seconds_ = 0;
  int64_t resumed_step_ = 0;
  Clock::time_point start_;
  std::deque<double> step_seconds_;  // of the latest steps
  std::deque<int64_t> step_examples_;
  double shown_loss_ = 0;
  double learning_rate_ = 0;
};

}  // namespace

Trainer::Trainer(Task& task, TrainerOptions options, RunOptions run)
    : task_(task), options_(std::move(options)), run_(std::move(run)) {
  const auto check = [](bool condition, const char* rule, auto value) {
    if (!condition) throw std::invalid_argument(c10::str("train: ", rule, ", got ", value));
  };
  const OptimizerOptions& o = options_.optimizer;
  const ScheduleOptions& s = options_.schedule;
  check(!run_.folder.empty(), "the run needs a folder", "none");
  check(options_.steps >= 0, "steps must not be negative", options_.steps);
  check(options_.epochs >= 0, "epochs must not be negative", options_.epochs);
  check(options_.steps > 0 || options_.epochs > 0, "steps or epochs must say when to stop", "neither");
  check(options_.accumulate >= 1, "accumulate must be at least 1", options_.accumulate);
  check(options_.clip >= 0, "clip must not be negative", options_.clip);
  check(options_.evaluate_every >= 0, "evaluate_every must not be negative", options_.evaluate_every);
  check(options_.checkpoint_every >= 0, "checkpoint_every must not be negative", options_.checkpoint_every);
  check(options_.log_every >= 0, "log_every must not be negative", options_.log_every);
  check(options_.patience >= 0, "patience must not be negative", options_.patience);
  check(std::isfinite(o.learning_rate) && o.learning_rate > 0, "learning_rate must be above 0",
        o.learning_rate);
  check(o.weight_decay >= 0, "weight_decay must not be negative", o.weight_decay);
  check(o.beta1 >= 0 && o.beta1 < 1, "beta1 must be in [0, 1)", o.beta1);
  check(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  check(o.epsilon > 0, "epsilon must be above 0", o.epsilon);
  check(o.momentum >= 0, "momentum must not be negative", o.momentum);
  check(!o.nesterov || o.momentum > 0, "nesterov needs a momentum above 0", o.momentum);
  check(s.warmup >= 0, "warmup must not be negative", s.warmup);
  check(s.factor > 0 && s.factor <= 1, "the schedule's factor must be in (0, 1]", s.factor);
  check(s.every >= 0, "the schedule's every must not be negative", s.every);
  check(s.patience >= 0, "the schedule's patience must not be negative", s.patience);
  check(s.floor >= 0 && s.floor <= 1, "the schedule's floor must be in [0, 1]", s.floor);
  check(task_.has("dev") || (options_.patience == 0 && s.kind != ScheduleKind::plateau),
        "patience and the plateau schedule need a dev set", "none");
  check(task_.batches() >= 1, "the training set must have a batch", task_.batches());
}

Result Trainer::run() {
  return Run(task_, options_, run_).go();
}

}  // namespace quatrain::train
