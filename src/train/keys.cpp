#include "quatrain/train/keys.h"

#include <algorithm>
#include <utility>

#include "quatrain/train/options.h"

namespace quatrain::train {

void Keys::table(const std::string& name, const char* description) {
  table_ = name;
  const auto same = [&](const KeyTable& table) { return table.name == name; };
  if (std::none_of(tables_.begin(), tables_.end(), same)) tables_.push_back({name, description});
}

Key& Keys::flag(const char* name, bool& option, const char* description) {
  return add(
      name, [&option] { return Value(option); },
      [&option](const Value& value) { option = std::get<bool>(value); }, description);
}

Key& Keys::text(const char* name, std::string& option, const char* description,
                std::vector<std::string> values) {
  Key& key = add(
      name, [&option] { return Value(option); },
      [&option](const Value& value) { option = std::get<std::string>(value); }, description);
  key.values = std::move(values);
  return key;
}

Key& Keys::path(const char* name, std::filesystem::path& option, const char* description) {
  return add(
             name, [&option] { return Value(option.string()); },
             [&option](const Value& value) { option = std::get<std::string>(value); }, description)
      .is_path();
}

Key& Keys::algebra(const char* name, nn::AlgebraSpec& option, const char* description) {
  return add(
      name, [&option] { return Value(option.text()); },
      [&option](const Value& value) { option = nn::AlgebraSpec(std::get<std::string>(value)); }, description);
}

Key& Keys::add(const char* name, std::function<Value()> get, std::function<void(const Value&)> set,
               const char* description) {
  return keys_.emplace_back(Key{table_, name, description, std::move(get), std::move(set)});
}

std::vector<Key> Keys::take() {
  const auto place = [this](const Key& key) {
    return std::find_if(tables_.begin(), tables_.end(),
                        [&](const KeyTable& table) { return table.name == key.table; });
  };
  std::stable_sort(keys_.begin(), keys_.end(),
                   [&](const Key& a, const Key& b) { return place(a) < place(b); });
  return std::move(keys_);
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void describe(TrainerOptions& options, Keys& keys) {
  constexpr double kMost = 1e12;
  OptimizerOptions& o = options.optimizer;
  ScheduleOptions& s = options.schedule;
  using O = OptimizerKind;
  using S = ScheduleKind;
  keys.choice("optimizer", o.kind, {O::adam, O::adamw, O::sgd, O::adagrad, O::rmsprop}, "The optimizer.");
  keys.number("rate", o.learning_rate, 1e-12, 1e3, "Highest learning rate.");
  keys.number("weight_decay", o.weight_decay, 0, 1e3,
              "Weight decay, of weights alone where `decay_all` is off.");
  keys.flag("decay_all", o.decay_all, "Everything else decays too: biases, norms, embeddings, factors of residuals and learned algebras.").only("train.weight_decay above 0", [&o] { return o.weight_decay > 0; });
  keys.number("beta1", o.beta1, 0, 0.999999, "adam, adamw: memory of the mean gradient.").only("train.optimizer = adam or adamw", [&o] { return o.kind == O::adam || o.kind == O::adamw; });
  keys.number("beta2", o.beta2, 0, 0.9999999, "adam, adamw, rmsprop: memory of the squared gradient.").only("train.optimizer = adam, adamw or rmsprop", [&o] { return o.kind == O::adam || o.kind == O::adamw || o.kind == O::rmsprop; });
  keys.number("epsilon", o.epsilon, 1e-30, 1, "adam, adamw, adagrad, rmsprop: added to the root of the squared gradient.").only("train.optimizer = adam, adamw, adagrad or rmsprop", [&o] { return o.kind != O::sgd; });
  keys.number("momentum", o.momentum, 0, 0.999999, "sgd, rmsprop: momentum.").only("train.optimizer = sgd or rmsprop", [&o] { return o.kind == O::sgd || o.kind == O::rmsprop; });
  keys.choice("schedule", s.kind, {S::constant, S::inverse_square_root, S::cosine, S::step, S::plateau},
              "The learning rate after the warm-up. `constant`: it stays. `inverse_square_root`: it falls with "
              "1/sqrt(step). `cosine`: it falls as a half cosine. `step`: it is multiplied by `factor` every `every` "
              "steps. `plateau`: it is multiplied by `factor` whenever the figure of the dev set does not improve.");
  keys.number("warmup", s.warmup, 0, kMost, "Steps over which the learning rate rises to `rate`.").only("train.warmup_share = 0", [&s] { return s.warmup_share == 0; });
  keys.number("warmup_share", s.warmup_share, 0, 1,
              "Length of the warm-up as a share of the run's steps. 0: `warmup` gives it in steps.");
  keys.number("factor", s.factor, 0.000001, 1, "step, plateau: what the learning rate is multiplied by.").only("train.schedule = step or plateau", [&s] { return s.kind == S::step || s.kind == S::plateau; });
  keys.number("every", s.every, 0, kMost, "step: steps between two reductions; 0: once an epoch.").only("train.schedule = step", [&s] { return s.kind == S::step; });
  keys.number("plateau_patience", s.patience, 0, kMost,
              "plateau: number of evaluations without a better figure that are allowed before each reduction.").only("train.schedule = plateau", [&s] { return s.kind == S::plateau; });
  keys.number("floor", s.floor, 0, 1, "cosine, plateau: the learning rate never falls below this share of `rate`.").only("train.schedule = cosine or plateau", [&s] { return s.kind == S::cosine || s.kind == S::plateau; });
  keys.number("steps", options.steps, 0, kMost, "Optimizer steps; 0: as many as `epochs` give, which a recipe that sets `epochs` alone means.").may_change();
  keys.number("epochs", options.epochs, 0, kMost,
              "Passes over the training set; 0: as many as `steps` give. Where both are set, the one that gives fewer steps counts.").may_change();
  keys.number("accumulate", options.accumulate, 1, 1 << 20, "Batches whose gradients make one step.");
  keys.number("clip", options.clip, 0, kMost, "Largest norm of the gradient; 0: not clipped.");
  keys.add("precision", [&options] { return Value(std::string(options.bf16 ? "bfloat16" : "float32")); },
           [&options](const Value& value) { options.bf16 = std::get<std::string>(value) == "bfloat16"; },
           "Arithmetic of the layers; weights are float32 in both.").values = {"float32", "bfloat16"};
  keys.number("evaluate_every", options.evaluate_every, 0, kMost,
              "Steps between two evaluations on the dev set, each of which writes a checkpoint; 0: after each epoch.");
  keys.number("patience", options.patience, 0, kMost,
              "Evaluations without a better figure after which training stops; 0: never.").may_change();
  keys.number("checkpoint_every", options.checkpoint_every, 0, kMost,
              "Steps between two checkpoints beside those of the evaluations; 0: none.").may_change();
  keys.number("keep", options.keep, 1, 1000,
              "Number of checkpoints that are kept: the latest one, and older ones in case it is damaged. `--keep` "
              "sets it.").may_change();
  keys.choice("nonfinite", options.nonfinite, {NonFinite::stop, NonFinite::skip},
              "What to do with a step whose loss or gradient is not finite: stop the run, or skip the step, which "
              "then changes no weight and is counted.").may_change();
  keys.number("log_every", options.log_every, 1, kMost,
              "Steps between two training lines in metrics.jsonl.").may_change();
  keys.number("seed", options.seed, 0, kMost, "Seed of the weights, the order of the batches and the dropout.");
  keys.text("device", options.device, "Where to compute: `cpu`, `cuda` or `cuda:N`. `--device` sets it.").may_change();
  keys.flag("deterministic", options.deterministic,
            "Operations of torch whose results are not reproducible bit by bit become errors. `--deterministic` sets it.");
}
// clang-format on

}  // namespace quatrain::train
