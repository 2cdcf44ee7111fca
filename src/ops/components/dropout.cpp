// Dropout over the components of hypercomplex numbers. On a CPU what is dropped is a function of a seed and
// of the value's place, which the way back draws again: ATen's dropout draws value by value there, which
// takes longer than a product with the layer that follows, and keeps a mask. Elsewhere it is composed of
// ATen's.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
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

void check(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
           at::MemoryFormat order) {
  TORCH_CHECK(x.layout() == at::kStrided && at::isFloatingType(x.scalar_type()),
              "hypercomplex_dropout_drawn: x must be dense and floating point, got ", x.layout(), " and ",
              x.scalar_type());
  check_draws("hypercomplex_dropout_drawn", p, seed, x);
  // As a number: c10 prints a format that it does not know by an error that prints it.
  TORCH_CHECK(
      order == at::MemoryFormat::Contiguous ||
          (components == 1 &&
           (order == at::MemoryFormat::ChannelsLast || order == at::MemoryFormat::ChannelsLast3d)),
      "hypercomplex_dropout_drawn: order must be contiguous_format, or where components are 1 a format of "
      "channels last, got memory format ",
      static_cast<int>(order), " and components = ", components);
  TORCH_CHECK(components == 1 || (components > 1 && x.dim() >= 1 && x.sym_size(-1) % components == 0),
              "hypercomplex_dropout_drawn: the last axis must be divisible by components = ", components,
              ", got ", x.sym_sizes());
}

bool has_kernel(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16;
}

at::Tensor drawn(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
                 at::MemoryFormat order) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::hypercomplex_dropout_drawn", "")
                             .typed<decltype(drawn)>();
  return op.call(x, p, components, seed, order);
}

/// What the kernels drop, as factors: for all that they cannot take. The factors are constants to autograd
/// and to function transforms.
at::Tensor drawn_by_mask(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
                         at::MemoryFormat order) {
  check(x, p, components, seed, order);
  at::Tensor factors;
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::Tensor ones = at::ones_symint(x.sym_sizes(), x.options().dtype(at::kFloat).device(at::kCPU));
    factors = drawn(ones, p, components, seed.to(at::kCPU), order).to(x.device());
  }
  return (x * factors).masked_fill(factors.eq(0), 0).to(x.scalar_type());
}

at::Tensor drawn_elsewhere(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
                           at::MemoryFormat order) {
  return drawn_by_mask(x, p, components, seed, order).contiguous(order);
}

at::Tensor drawn_on_cpu(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
                        at::MemoryFormat order) {
  check(x, p, components, seed, order);
  if (!has_kernel(x.scalar_type())) return drawn_elsewhere(x, p, components, seed, order);
  const auto number = seed.item<int64_t>();
  const at::Tensor given = x.contiguous(order);
  at::Tensor y = at::empty_like(given);
  if (x.numel() == 0) return y;
  if (p == 1) return y.zero_();  // no threshold is above all draws
  const kernels::cpu::Table& k = kernels::cpu::active();
  const auto run = [&](const auto* from, auto* to, auto kernel) {
    for_all_values(x, components, [&](int64_t at, int64_t row, int64_t rows, int64_t columns, int64_t first) {
      kernel(from + at, row, to + at, row, rows, columns, drop_of(p, number, first));
    });
  };
  if (x.scalar_type() == at::kFloat)
    run(given.const_data_ptr<float>(), y.mutable_data_ptr<float>(), k.drop_f);
  else
    run(static_cast<const kernels::cpu::bf16*>(given.const_data_ptr()),
        static_cast<kernels::cpu::bf16*>(y.mutable_data_ptr()), k.drop_b);
  return y;
}

at::Tensor drawn_meta(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
                      at::MemoryFormat order) {
  check(x, p, components, seed, order);
  return at::empty_symint(x.sym_sizes(), x.options(), order);
}

}  // namespace

// What profiles name.
namespace autograd {

struct Dropout : torch::autograd::Function<Dropout> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double p, int64_t components,
                            const at::Tensor& seed, int64_t order) {
    ctx->save_for_backward({seed});
    ctx->saved_data["p"] = p;
    ctx->saved_data["components"] = components;
    ctx->saved_data["order"] = order;
    const at::AutoDispatchBelowADInplaceOrView below;
    return drawn(x, p, components, seed, static_cast<at::MemoryFormat>(order));
  }

  // Dropout is linear: its derivative of any order is itself.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(5);
    if (!grads[0].defined()) return result;
    const at::Tensor grad = dense_gradient(grads[0]);
    const auto again = suits_operator(grad) ? drawn : drawn_by_mask;
    result[0] =
        again(grad, ctx->saved_data["p"].toDouble(), ctx->saved_data["components"].toInt(),
              ctx->get_saved_variables()[0], static_cast<at::MemoryFormat>(ctx->saved_data["order"].toInt()));
    return result;
  }
};

}  // namespace autograd

namespace {

at::Tensor drawn_autograd(const at::Tensor& x, double p, int64_t components, const at::Tensor& seed,
                          at::MemoryFormat order) {
  if (transformed({x})) return drawn_by_mask(x, p, components, seed, order);
  if (at::GradMode::is_enabled() && wants_grad(x))
    return autograd::Dropout::apply(x, p, components, seed, static_cast<int64_t>(order));
  const at::AutoDispatchBelowADInplaceOrView below;
  return drawn(x, p, components, seed, order);
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
  if (in_function_transform() || !has_kernel(x.scalar_type()) || !suits_operator(x))
    return composed(x, p, components);
  return drawn(x, p, components, new_seed(),
               components == 1 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("hypercomplex_dropout(Tensor x, float p, bool training, int n=1, bool per_unit=False) -> Tensor",
        &dropout_op, {at::Tag::nondeterministic_seeded});
  // Values are numbered in the order of a memory format. The last axis is `components` blocks side by side,
  // and the values at one place of all blocks share a draw. The seed is a tensor: a compiled program draws
  // another one in each run.
  m.def(
      "hypercomplex_dropout_drawn(Tensor x, float p, int components, Tensor seed, MemoryFormat order) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("hypercomplex_dropout_drawn", &drawn_on_cpu);
}
TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("hypercomplex_dropout_drawn", &drawn_elsewhere);
}
TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("hypercomplex_dropout_drawn", &drawn_meta);
}
TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("hypercomplex_dropout_drawn", &drawn_autograd);
}

// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("hypercomplex_dropout", &dropout_op);
}

}  // namespace quatrain::ops
