// Dropout over the components of hypercomplex numbers. On a CPU what is dropped is a function of a seed and
// of the value's place, which the way back draws again: ATen's dropout draws value by value there, which
// takes longer than a product with the layer that follows, and keeps a mask. Elsewhere it is composed of
// ATen's.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "ops/draws.h"
#include "ops/transforms.h"
#include "quatrain/layer_ops.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBlock = 1024;     // values of a row of draws, where each value has one of its own
constexpr int64_t kGrain = 1 << 15;  // values that a thread takes at least

/// What is dropped of a tensor whose values are read in the order of a memory format. With components, the
/// last axis holds that many, which share a draw.
struct Draws {
  double p;
  int64_t components, seed;
  at::MemoryFormat order;
};

bool kernels_take(const at::Tensor& x) {
  return (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && is_plain(x);
}

/// drop(first value, distance of rows, rows, columns, number of the first row) for all values.
template <class Drop>
void for_all_values(const at::Tensor& x, int64_t components, const Drop& drop) {
  const int64_t columns = components == 1 ? kBlock : x.size(-1) / components;
  const int64_t row = components * columns, whole = x.numel() / row, rest = x.numel() % row;
  at::parallel_for(0, whole, std::max<int64_t>(1, kGrain / row), [&](int64_t begin, int64_t end) {
    for (int64_t c = 0; c < components; ++c)
      drop(begin * row + c * columns, row, end - begin, columns, begin);
  });
  if (rest > 0) drop(whole * row, row, 1, rest, whole);
}

at::Tensor dropped_on_cpu(const at::Tensor& x, const Draws& draws) {
  const at::Tensor given = x.contiguous(draws.order);
  at::Tensor y = at::empty_like(given);
  if (x.numel() == 0) return y;
  const kernels::cpu::Table& k = kernels::cpu::active();
  const auto run = [&](const auto* from, auto* to, auto kernel) {
    for_all_values(x, draws.components,
                   [&](int64_t at, int64_t row, int64_t rows, int64_t columns, int64_t first) {
                     kernel(from + at, row, to + at, row, rows, columns, drop_of(draws.p, draws.seed, first));
                   });
  };
  if (x.scalar_type() == at::kFloat)
    run(given.const_data_ptr<float>(), y.mutable_data_ptr<float>(), k.drop_f);
  else
    run(static_cast<const kernels::cpu::bf16*>(given.const_data_ptr()),
        static_cast<kernels::cpu::bf16*>(y.mutable_data_ptr()), k.drop_b);
  return y;
}

at::Tensor dropped(const at::Tensor& x, const Draws& draws);

}  // namespace

// What profiles name.
namespace autograd {

struct Dropout : torch::autograd::Function<Dropout> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double p, int64_t components,
                            int64_t seed, int64_t order) {
    ctx->saved_data["p"] = p;
    ctx->saved_data["components"] = components;
    ctx->saved_data["seed"] = seed;
    ctx->saved_data["order"] = order;
    return dropped_on_cpu(x, {p, components, seed, static_cast<at::MemoryFormat>(order)});
  }

  // Dropout is linear: its derivative of any order is itself.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(5);
    if (!grads[0].defined()) return result;
    result[0] = dropped(grads[0], {ctx->saved_data["p"].toDouble(), ctx->saved_data["components"].toInt(),
                                   ctx->saved_data["seed"].toInt(),
                                   static_cast<at::MemoryFormat>(ctx->saved_data["order"].toInt())});
    return result;
  }
};

}  // namespace autograd

namespace {

at::Tensor dropped(const at::Tensor& x, const Draws& draws) {
  if (in_function_transform() || !kernels_take(x)) {
    const at::Tensor ones = at::ones(x.sizes(), x.options().dtype(at::kFloat).device(at::kCPU));
    return (x * dropped_on_cpu(ones, draws)).to(x.scalar_type());
  }
  if (at::GradMode::is_enabled() && wants_grad(x))
    return autograd::Dropout::apply(x, draws.p, draws.components, draws.seed,
                                    static_cast<int64_t>(draws.order));
  return dropped_on_cpu(x, draws);
}

at::Tensor composed(const at::Tensor& x, double p, int64_t components) {
  if (components == 1) return at::dropout(x, p, true);
  const at::Tensor units = x.unflatten_symint(-1, {components, x.sym_size(-1) / components});
  const at::Tensor kept = at::dropout(at::ones_like(units.select(-2, 0)), p, true);
  return (units * kept.unsqueeze(-2)).flatten(-2);
}

// The result of an operator must be no alias of its input.
at::Tensor dropout_op(const at::Tensor& x, double p, bool training, int64_t n, bool per_unit) {
  const at::Tensor y = hypercomplex_dropout(x, p, training, n, per_unit);
  return y.is_same(x) ? x.clone() : y;
}

}  // namespace

at::Tensor hypercomplex_dropout(const at::Tensor& x, double p, bool training, int64_t n, bool per_unit) {
  if (!(p >= 0 && p <= 1))
    throw std::invalid_argument(c10::str("dropout: p must be between 0 and 1, got ", p));
  if (!training || p == 0) return x;
  const int64_t components = per_unit ? n : 1;
  TORCH_CHECK(components == 1 || (n >= 1 && x.dim() >= 1 && x.sym_size(-1) % n == 0),
              "dropout: the last axis must be divisible by n = ", n, ", got ", x.sym_sizes());
  if (in_function_transform() || !kernels_take(x)) return composed(x, p, components);
  const int64_t seed = at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
  return dropped(
      x, {p, components, seed, components == 1 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous});
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("hypercomplex_dropout(Tensor x, float p, bool training, int n=1, bool per_unit=False) -> Tensor",
        &dropout_op, {at::Tag::nondeterministic_seeded});
}

// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("hypercomplex_dropout", &dropout_op);
}

}  // namespace quatrain::ops
