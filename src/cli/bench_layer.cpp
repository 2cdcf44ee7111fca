#include <torch/torch.h>

#include "cli/bench.h"
#include "cli/pass.h"
#include "cli/peak_memory.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/parameters.h"

namespace quatrain::cli {
namespace {

using ops::Way;

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor wanted = expected.to(at::kDouble);
  return ((actual.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
}

/// A pass that finds A moved, as an optimizer of a rate of 1e-3 would leave it.
std::function<void()> moved(const at::Tensor& A, std::function<void()> pass) {
  if (!A.defined()) return pass;
  const torch::NoGradGuard no_grad;
  at::Tensor step = torch::randn_like(A) * 1e-3 * A.square().mean().sqrt();
  return [pass = std::move(pass), A, step]() mutable {
    {
      const torch::NoGradGuard still_none;
      A.add_(step);
      step.neg_();
    }
    pass();
  };
}

/// A training step, without its optimizer.
std::function<void()> step_of(nn::Linear layer, const at::Tensor& x, const at::Tensor& grad) {
  return moved(layer->A, pass_of(
                             true, [layer](const at::Tensor& v) mutable { return layer->forward(v); },
                             layer->parameters(), x, grad));
}

}  // namespace

int64_t layer_memory(const LayerCase& asked, bool real) {
  const Threads threads(asked.threads);
  return peak_memory([&]() -> std::function<void()> {
    torch::manual_seed(0);
    const auto options = at::TensorOptions().dtype(asked.dtype);
    const at::Tensor x = torch::randn({asked.batch, asked.in}, options),
                     grad = torch::randn({asked.batch, asked.out}, options);
    if (!real) {
      nn::Linear layer(nn::LinearOptions(asked.in, asked.out).algebra(asked.algebra));
      layer->to(asked.dtype);
      return step_of(layer, x, grad);
    }
    torch::nn::Linear layer(asked.in, asked.out);
    layer->to(asked.dtype);
    return pass_of(
        true, [layer](const at::Tensor& v) mutable { return layer->forward(v); }, layer->parameters(), x,
        grad);
  });
}

LayerResult measure_layer(const LayerCase& asked, double seconds, bool forced) {
  const Threads threads(asked.threads);
  torch::manual_seed(0);
  nn::Linear layer(nn::LinearOptions(asked.in, asked.out).algebra(asked.algebra));
  torch::nn::Linear real(asked.in, asked.out);
  for (const auto& [module, learned] :
       {std::pair<torch::nn::Module*, bool>{layer.get(), true}, {real.get(), false}}) {
    module->to(asked.dtype);
    module->eval();
  }
  layer->factorize();
  const int64_t rank = ops::rank(layer->product());
  layer->train(asked.training);
  real->train(asked.training);
  const auto options = at::TensorOptions().dtype(asked.dtype);
  const at::Tensor x = torch::randn({asked.batch, asked.in}, options),
                   grad = torch::randn({asked.batch, asked.out}, options);

  LayerResult result;
  result.asked = asked;
  result.parameters = nn::parameter_report(*layer).total;
  result.real_parameters = nn::parameter_report(*real).total;
  const int64_t n = layer->options.algebra().n;
  const ops::Product product = layer->product();
  if (rank > 0) result.limit = static_cast<double>(rank) / static_cast<double>(n * n);
  result.way = ops::name(ops::planned_way(x, layer->S, product, !asked.training));

  std::vector<std::string> names{"ours", "real", "materialised"};
  std::vector<std::function<at::Tensor(const at::Tensor&)>> forwards{
      [layer](const at::Tensor& v) mutable { return layer->forward(v); },
      [real](const at::Tensor& v) mutable { return real->forward(v); },
      [layer](const at::Tensor& v) mutable { return at::linear(v, layer->matrix(), layer->bias); }};
  if (forced)
    for (const Way way : {Way::factored, Way::mixed, Way::materialised}) {
      if (way == Way::factored && rank == 0) continue;
      names.emplace_back(ops::name(way));
      forwards.push_back([layer, way, constant = !asked.training](const at::Tensor& v) mutable {
        return ops::linear(v, layer->S, layer->bias, layer->product(), way, {}, constant);
      });
    }
  {
    const torch::NoGradGuard no_grad;
    const at::Tensor H = layer->matrix().to(at::kDouble);
    const at::Tensor expected = at::linear(x.to(at::kDouble), H, layer->bias.to(at::kDouble));
    const double rule = asked.dtype == at::kDouble ? 1e-12 : asked.dtype == at::kFloat ? 1e-4 : 3e-2;
    for (size_t i = 0; i < forwards.size(); ++i) {
      if (i == 1) continue;
      const double error = relative_error(forwards[i](x), expected);
      TORCH_CHECK(error < rule, "bench: ", asked.algebra, " by '", names[i], "' is off by ", error,
                  ", must be below ", rule);
    }
  }
  if (!asked.training) {
    const torch::NoGradGuard no_grad;
    ops::drop_prepared(layer->S);
    const int64_t without = ops::prepared_size().bytes;
    layer->forward(x);
    result.prepared = ops::prepared_size().bytes - without;
  }
  // One form of a weight is kept at a time, so each forced way has a layer of its own.
  std::vector<std::function<void()>> calls;
  for (size_t i = 0; i < forwards.size(); ++i) {
    if (i < 3) {
      const auto call =
          pass_of(asked.training, forwards[i], i == 1 ? real->parameters() : layer->parameters(), x, grad);
      calls.push_back(asked.training && i == 0 ? moved(layer->A, call) : call);
      continue;
    }
    auto twin = std::dynamic_pointer_cast<nn::LinearImpl>(layer->clone());
    twin->options.way(ops::parse_way(names[i]));
    const auto forward = [twin](const at::Tensor& v) { return twin->forward(v); };
    const auto call = pass_of(asked.training, forward, twin->parameters(), x, grad);
    calls.push_back(asked.training ? moved(twin->A, call) : call);
  }
  TimingOptions timing;
  timing.seconds = seconds;
  timing.turn = 300e-6;
  const auto times = interleaved(calls, timing);
  result.ours = times[0], result.real = times[1], result.materialised = times[2];
  for (size_t i = 3; i < times.size(); ++i) result.ways.emplace_back(names[i], times[i]);
  if (forced)
    result.best_way =
        std::min_element(result.ways.begin(), result.ways.end(), [](const auto& a, const auto& b) {
          return a.second.median < b.second.median;
        })->first;
  return result;
}

}  // namespace quatrain::cli
