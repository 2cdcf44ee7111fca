#include "quatrain/train/optimizer.h"

#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/types.h>

#include <algorithm>
#include <set>

#include "quatrain/nn/parameters.h"
#include "support/enum_names.h"

namespace quatrain::train {
namespace {

namespace optim = torch::optim;

constexpr EnumNames<OptimizerKind, 5> kKinds{{{OptimizerKind::adam, "adam"},
                                              {OptimizerKind::adamw, "adamw"},
                                              {OptimizerKind::sgd, "sgd"},
                                              {OptimizerKind::adagrad, "adagrad"},
                                              {OptimizerKind::rmsprop, "rmsprop"}}};

template <typename Options>
Options adam_options(const OptimizerOptions& options) {
  return Options(options.learning_rate)
      .betas({options.beta1, options.beta2})
      .eps(options.epsilon)
      .weight_decay(options.weight_decay);
}

// Set on the group itself: an optimizer's constructor takes a group's option for absent where it equals
// torch's default.
template <typename Options>
std::unique_ptr<optim::Optimizer> without_decay_in_last_group(std::unique_ptr<optim::Optimizer> optimizer) {
  static_cast<Options&>(optimizer->param_groups().back().options()).weight_decay(0);
  return optimizer;
}

// Calls visit(name, value, needed) for each thing that the state of one parameter holds: int64_t& or
// at::Tensor&; one that is not needed is undefined without a momentum.
template <typename Visit>
void visit_state(optim::OptimizerParamState& state, Visit&& visit) {
  const auto adam = [&](auto& s) {
    visit("step", s.step(), true);
    visit("exp_avg", s.exp_avg(), true);
    visit("exp_avg_sq", s.exp_avg_sq(), true);
  };
  if (auto* s = dynamic_cast<optim::AdamParamState*>(&state)) {
    adam(*s);
  } else if (auto* s = dynamic_cast<optim::AdamWParamState*>(&state)) {
    adam(*s);
  } else if (auto* s = dynamic_cast<optim::SGDParamState*>(&state)) {
    visit("momentum_buffer", s->momentum_buffer(), true);
  } else if (auto* s = dynamic_cast<optim::AdagradParamState*>(&state)) {
    visit("step", s->step(), true);
    visit("sum", s->sum(), true);
  } else if (auto* s = dynamic_cast<optim::RMSpropParamState*>(&state)) {
    visit("step", s->step(), true);
    visit("square_avg", s->square_avg(), true);
    visit("momentum_buffer", s->momentum_buffer(), false);
  } else {
    TORCH_CHECK(false, "optimizer_state: the state of this kind of optimizer cannot be stored");
  }
}

std::unique_ptr<optim::OptimizerParamState> empty_state(const optim::Optimizer& optimizer) {
  if (dynamic_cast<const optim::Adam*>(&optimizer)) return std::make_unique<optim::AdamParamState>();
  if (dynamic_cast<const optim::AdamW*>(&optimizer)) return std::make_unique<optim::AdamWParamState>();
  if (dynamic_cast<const optim::SGD*>(&optimizer)) return std::make_unique<optim::SGDParamState>();
  if (dynamic_cast<const optim::Adagrad*>(&optimizer)) return std::make_unique<optim::AdagradParamState>();
  if (dynamic_cast<const optim::RMSprop*>(&optimizer)) return std::make_unique<optim::RMSpropParamState>();
  TORCH_CHECK(false, "load_optimizer_state: the state of this kind of optimizer cannot be stored");
}

}  // namespace

const char* name(OptimizerKind kind) {
  return name_of(kKinds, kind);
}

OptimizerKind parse_optimizer(std::string_view name) {
  return parse_name(kKinds, "optimizer", name);
}

NamedParameters trained_parameters(torch::nn::Module& module) {
  NamedParameters result;
  std::set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    if (item.value().requires_grad() && seen.insert(item.value().unsafeGetTensorImpl()).second)
      result.emplace_back(item.key(), item.value());
  }
  return result;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerOptions& options, torch::nn::Module& module) {
  std::set<const void*> decaying;
  for (const at::Tensor& parameter : nn::decaying_parameters(module))
    decaying.insert(parameter.unsafeGetTensorImpl());
  std::vector<at::Tensor> decayed, others;
  for (const auto& [name, parameter] : trained_parameters(module))
    (options.decay_all || decaying.contains(parameter.unsafeGetTensorImpl()) ? decayed : others)
        .push_back(parameter);
  const std::vector<optim::OptimizerParamGroup> groups{decayed, others};
  switch (options.kind) {
    case OptimizerKind::adam:
      return without_decay_in_last_group<optim::AdamOptions>(
          std::make_unique<optim::Adam>(groups, adam_options<optim::AdamOptions>(options)));
    case OptimizerKind::adamw:
      return without_decay_in_last_group<optim::AdamWOptions>(
          std::make_unique<optim::AdamW>(groups, adam_options<optim::AdamWOptions>(options)));
    case OptimizerKind::sgd:
      return without_decay_in_last_group<optim::SGDOptions>(
          std::make_unique<optim::SGD>(groups, optim::SGDOptions(options.learning_rate)
                                                   .momentum(options.momentum)
                                                   .weight_decay(options.weight_decay)));
    case OptimizerKind::adagrad:
      return without_decay_in_last_group<optim::AdagradOptions>(
          std::make_unique<optim::Adagrad>(groups, optim::AdagradOptions(options.learning_rate)
                                                       .eps(options.epsilon)
                                                       .weight_decay(options.weight_decay)));
    case OptimizerKind::rmsprop:
      return without_decay_in_last_group<optim::RMSpropOptions>(
          std::make_unique<optim::RMSprop>(groups, optim::RMSpropOptions(options.learning_rate)
                                                       .alpha(options.beta2)
                                                       .eps(options.epsilon)
                                                       .momentum(options.momentum)
                                                       .weight_decay(options.weight_decay)));
  }
  TORCH_CHECK(false, "make_optimizer: unknown kind");
}

void set_learning_rate(optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

nn::NamedTensors optimizer_state(const optim::Optimizer& optimizer, const NamedParameters& parameters) {
  nn::NamedTensors result;
  for (const auto& [name, parameter] : parameters) {
    const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;  // it has not had a gradient yet
    visit_state(*found->second, [&, &name = name](const std::string& field, const auto& value, bool) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>) {
        result.emplace_back(name + "/" + field, at::scalar_tensor(value, at::kLong));
      } else if (value.defined()) {
        result.emplace_back(name + "/" + field, value);
      }
    });
  }
  return result;
}

void load_optimizer_state(optim::Optimizer& optimizer, const NamedParameters& parameters,
                          const nn::NamedTensors& state) {
  std::map<std::string, at::Tensor> left(state.begin(), state.end());
  const auto take = [&](const std::string& name) {
    auto node = left.extract(name);
    TORCH_CHECK(!node.empty(), "load_optimizer_state: '", name, "' is missing: was another optimizer used?");
    return node.mapped();
  };
  std::decay_t<decltype(optimizer.state())> fresh;
  for (const auto& [name, parameter] : parameters) {
    const auto first = left.lower_bound(name + "/");
    if (first == left.end() || !first->first.starts_with(name + "/")) continue;
    auto one = empty_state(optimizer);
    visit_state(*one, [&, &name = name, &parameter = parameter](const std::string& field, auto& value,
                                                                bool needed) {
      if (!needed && !left.contains(name + "/" + field)) return;
      const at::Tensor stored = take(name + "/" + field);
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>) {
        TORCH_CHECK(stored.dim() == 0 && stored.scalar_type() == at::kLong, "load_optimizer_state: '", name,
                    "/", field, "' must be one whole number");
        value = stored.template item<int64_t>();
      } else {
        TORCH_CHECK(stored.sizes() == parameter.sizes(), "load_optimizer_state: '", name, "/", field,
                    "' has shape ", stored.sizes(), ", the parameter has ", parameter.sizes());
        value = stored.to(parameter.options().requires_grad(false), /*non_blocking=*/false, /*copy=*/true);
      }
    });
    fresh[parameter.unsafeGetTensorImpl()] = std::move(one);
  }
  TORCH_CHECK(left.empty(), "load_optimizer_state: '", left.begin()->first,
              "' belongs to no parameter of this model and optimizer");
  optimizer.state() = std::move(fresh);
}

}  // namespace quatrain::train
