// `linear` and `linear_backward` on a CPU, in the types that the engine serves: tensors become the raw
// operands of its passes. Everything else takes the composed form.

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "ops/engine/expand.h"
#include "ops/engine/mixed_rows.h"
#include "ops/engine/planner.h"
#include "ops/engine/recycled.h"
#include "ops/linear/linear.h"
#include "ops/map/operands.h"
#include "ops/map/prepared.h"
#include "ops/structure/structure.h"

namespace quatrain::ops {

namespace {

using engine::Blocks;
using engine::Mixings;
using engine::Pass;

bool wanted(const std::optional<at::Tensor>& t) {
  return t && t->defined();
}

/// Of rounding errors by packed products. The estimate is up to 7% low, where a mixture has but two terms; so
/// this keeps errors below twice the real layer's.
constexpr double kLargestGrowth = 1.85;

/// True where products of bfloat16 are taken to be much faster than those of float32.
bool has_fast_halves() {
  const Bfloat16 asked = requested_bfloat16();
  TORCH_CHECK(
      asked != Bfloat16::packed || engine::multiplies_halves(),
      "linear: bfloat16 = packed needs a processor with AVX512_BF16 or AMX, which this one has not; take "
      "auto or widened");
  return asked == Bfloat16::packed || (asked == Bfloat16::automatic && engine::prefers_halves());
}

Problem make_cpu_problem(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  const at::ScalarType type = call.compute_dtype(x);
  Problem problem = make_problem(x, S, call);
  problem.engine = (type == at::kFloat || type == at::kBFloat16) && problem.rows * S.numel() > 0;
  problem.halves = type == at::kBFloat16 && has_fast_halves();
  // The gradient of a learned tensor comes from the products themselves: those stay exact.
  if (problem.engine && problem.halves && problem.rank > 0 && (problem.prepared || !call.learned())) {
    const Mixings& f = *constants(call)->factors;
    const double growth = problem.prepared ? f.growth_y : std::max({f.growth_y, f.growth_dx, f.growth_dS});
    problem.packed = growth <= kLargestGrowth;
  }
  return problem;
}

using Held = std::shared_ptr<const structure::Factors>;

/// A learned A without factors of its own may have some that are followed while it trains.
bool may_follow(const Problem& problem, const Call& call) {
  return problem.engine && call.learned() && problem.rank == 0 && structure::followed_rank(problem.n) > 0;
}

/// The way this call takes, and the factors that are held beside A where it takes them.
Held choose(Problem problem, Call& call, const std::function<Held(bool insist)>& factors_of) {
  Held held;
  if (may_follow(problem, call)) {
    problem.rank = structure::followed_rank(problem.n);
    problem.followed = true;
    if (plan(problem, call.way) == Way::factored) held = factors_of(call.way == Way::factored);
    problem.rank = held ? held->rank : 0;
  }
  call.way = plan(problem, call.way);
  return call.way == Way::factored ? held : nullptr;
}

/// H in another type than float32 is left to ATen.
bool dense_product(Way way, at::ScalarType dtype) {
  return way == Way::materialised && dtype != at::kFloat;
}

/// Into `H`, (n m, n p).
at::Tensor expanded(const Operands& o, const Constants& c, const at::Tensor& H) {
  engine::expand(c.blocks, o.n, o.m, o.p, o.S.const_data_ptr<float>(), H.mutable_data_ptr<float>());
  return H;
}

Gradients materialised_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                const Call& call, Mask mask, const Problem& problem, const Constants& c) {
  if (mask[1] || mask[2]) mark_in_training(S);
  const at::ScalarType type = call.compute_dtype(x);
  const Operands o(x, S, problem, type);
  const at::Tensor g = o.matrix(grad, o.n * o.m, type);
  at::Tensor dx, dS, dA;
  // H, then its gradient, in memory that is used again.
  const at::Tensor H = recycled_empty({o.n * o.m, o.n * o.p});
  if (mask[0]) dx = at::mm(g, expanded(o, c, H)).view(x.sizes()).to(x.scalar_type());
  const bool want_A = mask[2] && call.learned();
  if (mask[1] || want_A) {
    at::Tensor dH = H;
    at::mm_out(dH, g.t(), o.x);
    if (mask[1]) dS = at::empty(S.sizes(), o.S.options());
    if (want_A) dA = at::empty({o.n, o.n, o.n}, o.S.options());
    engine::contract(c.components, o.n, o.m, o.p, dH.const_data_ptr<float>(),
                     mask[1] ? dS.mutable_data_ptr<float>() : nullptr, o.S.const_data_ptr<float>(),
                     want_A ? dA.mutable_data_ptr<float>() : nullptr);
    if (mask[1]) dS = dS.to(S.scalar_type());
    if (want_A) dA = call.structure_gradient(dA).to(call.A->scalar_type());
  }
  return {dx, dS, dA};
}

/// `products`, where it is given, is made to hold the R products of the factored way.
at::Tensor forward(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias, Call call,
                   at::Tensor* products) {
  check_linear("linear", x, S, call);
  if (wanted(bias)) check_bias(*bias, S);
  const at::ScalarType type = call.compute_dtype(x);
  const Problem problem = make_cpu_problem(x, S, call);
  const Held held = choose(problem, call, [&](bool insist) {
    return call.constant && !insist ? structure::find(*call.A) : structure::follow(*call.A, insist);
  });
  if (problem.rows == 0) call.constant = false;  // the composed form prepares weights in another order
  // The real layer is one dense product already.
  if (!problem.engine || problem.n == 1 || dense_product(call.way, type))
    return composed::linear(x, S, bias, call);

  // Factors that are held beside A need nothing else that is made of it.
  const auto algebra_constants = held ? nullptr : constants(call);
  const Operands operands(x, S, problem, type);
  if (call.way == Way::materialised) {
    const at::Tensor H = prepared(S, call, call.way, type, [&] {
      const std::vector<int64_t> sizes{operands.n * operands.m, operands.n * operands.p};
      return expanded(operands, *algebra_constants,
                      call.constant ? at::empty(sizes, operands.S.options()) : recycled_empty(sizes));
    });
    return at::linear(x.to(type), H, wanted(bias) ? std::optional(bias->to(type)) : std::nullopt);
  }
  const at::Tensor b = wanted(bias) ? bias->to(at::kFloat).contiguous() : at::Tensor();
  const auto sizes = sizes_with(x, operands.n * operands.m);
  if (call.way == Way::mixed) {
    const at::Tensor y = at::empty(sizes, x.options().dtype(at::kFloat));
    engine::Stream stream;
    stream.rows = operands.rows, stream.n = operands.n, stream.m = operands.m, stream.p = operands.p;
    stream.x = operands.of_x(), stream.S = operands.of_S();
    stream.y = y.mutable_data_ptr<float>();
    stream.inputs = &algebra_constants->rows;
    stream.bias = b.defined() ? b.const_data_ptr<float>() : nullptr;
    engine::run(stream);
    return y.to(type);
  }
  const Mixings& f = held ? *held->mixings : *algebra_constants->factors;
  Pass pass = operands.forward(f);
  at::Tensor packed;
  if (call.constant) {
    packed = prepared(S, call, call.way, pass.multiplied_in, [&] {
      const at::Tensor fresh = at::empty({packed_bytes(pass)}, S.options().dtype(at::kByte));
      pack(pass, fresh.mutable_data_ptr());
      return fresh;
    });
    pass.packed = packed.const_data_ptr();
  }
  const at::Tensor y = output(pass, sizes, x.options().dtype(type));
  pass.C = Operands::of_rows(y.view({operands.rows, -1}), operands.m);
  pass.bias = b.defined() ? b.const_data_ptr<float>() : nullptr;
  if (products) {
    *products = recycled_empty({f.rank, operands.rows, operands.m});
    pass.products = products->mutable_data_ptr<float>();
  }
  run(pass);
  return y.to(type);
}

at::Tensor linear_cpu(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                      std::string_view algebra, const std::optional<at::Tensor>& A,
                      const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                      const std::optional<at::Tensor>& W, std::string_view way,
                      std::optional<at::ScalarType> dtype, bool constant) {
  return forward(x, S, bias, make_call(algebra, A, U, V, W, way, dtype, constant), nullptr);
}

std::tuple<at::Tensor, at::Tensor> linear_with_products_cpu(
    const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias, std::string_view algebra,
    const std::optional<at::Tensor>& A, std::string_view way, std::optional<at::ScalarType> dtype) {
  at::Tensor products = at::empty({0}, x.options().dtype(at::kFloat));
  const at::Tensor y = forward(x, S, bias, make_call(algebra, A, {}, {}, {}, way, dtype, false), &products);
  return {y, products};
}

Gradients linear_backward_cpu(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                              std::string_view algebra, const std::optional<at::Tensor>& A,
                              const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                              const std::optional<at::Tensor>& W, std::string_view way,
                              std::optional<at::ScalarType> dtype, Mask mask,
                              const std::optional<at::Tensor>& products) {
  Call call = make_call(algebra, A, U, V, W, way, dtype, false);
  check_linear("linear_backward", x, S, call);
  check_grad(grad, x, S, call);
  const at::ScalarType type = call.compute_dtype(x);
  const Problem problem = make_cpu_problem(x, S, call);
  const Held held = choose(problem, call, [&](bool insist) {
    const Held known = structure::find(*call.A);
    return known || !insist ? known : structure::follow(*call.A, true);
  });
  if (!problem.engine || problem.n == 1 || call.way == Way::mixed || dense_product(call.way, type))
    return composed::linear_backward(grad, x, S, call, mask);

  const auto algebra_constants = held ? nullptr : constants(call);
  if (call.way == Way::materialised)
    return materialised_backward(grad, x, S, call, mask, problem, *algebra_constants);
  const Mixings& f = held ? *held->mixings : *algebra_constants->factors;
  if (mask[1] || mask[2]) mark_in_training(S);
  const Operands operands(x, S, problem, type);
  const at::Tensor g = operands.matrix(grad, operands.n * operands.m, type);
  const bool want_A = mask[2] && (held || call.factored());
  const auto sums_size = static_cast<size_t>(want_A ? operands.n * f.rank : 0);
  std::vector<float> dU(sums_size), dV(sums_size), dW(sums_size);
  at::Tensor dx, dS, dA;
  if (mask[0] || want_A) {
    Pass pass = operands.backward_x(g, f);
    if (mask[0]) {
      dx = output(pass, x.sizes(), x.options());
      pass.C = Operands::of_rows(dx.view({operands.rows, -1}), operands.p);
    }
    if (want_A) pass.probe = operands.of_x(), pass.sums = dV.data();
    run(pass);
  }
  if (mask[1] || want_A) {
    Pass pass = operands.backward_S(g, f);
    if (mask[1]) {
      dS = output(pass, S.sizes(), S.options());
      pass.C = Operands::of_blocks(dS);
    }
    if (want_A) pass.probe = operands.of_S(), pass.sums = dU.data();
    run(pass);
  }
  if (want_A) {
    const Blocks probe = Operands::of_rows(g, operands.m);
    const std::vector<int64_t> sizes{f.rank, operands.rows, operands.m};
    if (products && products->sizes() == sizes) {
      engine::dots(probe, operands.n, products->const_data_ptr<float>(), f.rank, operands.rows, operands.m,
                   dW.data());
    } else {
      Pass pass = operands.forward(f);
      pass.probe = probe, pass.sums = dW.data();
      run(pass);
    }
    if (held) {
      dA = structure::gradient(*held, dU, dV, dW);
    } else {
      dA = at::empty({3, operands.n, f.rank}, x.options().dtype(at::kFloat));
      float* to = dA.mutable_data_ptr<float>();
      for (const auto& sums : {dU, dV, dW}) to = std::copy(sums.begin(), sums.end(), to);
    }
  } else if (mask[2] && call.learned()) {
    // Factors that the caller brings may be of any condition: dA is taken from dH.
    Call by_H = call;
    by_H.way = Way::materialised;
    dA = std::get<2>(composed::linear_backward(grad, x, S, by_H, {false, false, true}));
  }
  const auto finished = [](const at::Tensor& t, const at::Tensor& like) {
    return t.defined() ? t.to(like.scalar_type()) : t;
  };
  return {finished(dx, x), finished(dS, S), dA.defined() ? dA.to(call.A->scalar_type()) : dA};
}

std::string planned_way_cpu(const at::Tensor& x, const at::Tensor& S, std::string_view algebra,
                            const std::optional<at::Tensor>& A, const std::optional<at::Tensor>& U,
                            const std::optional<at::Tensor>& V, const std::optional<at::Tensor>& W,
                            bool constant) {
  const Call call = make_call(algebra, A, U, V, W, "auto", std::nullopt, constant);
  check_linear("planned_way", x, S, call);
  Problem problem = make_cpu_problem(x, S, call);
  if (may_follow(problem, call) && (!constant || structure::find(*call.A))) {
    problem.rank = structure::followed_rank(problem.n);
    problem.followed = true;
  }
  return name(plan(problem, call.way));
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("linear", &linear_cpu);
  m.impl("linear_backward", &linear_backward_cpu);
  m.impl("linear_with_products", &linear_with_products_cpu);
  m.impl("planned_way", &planned_way_cpu);
}

}  // namespace quatrain::ops
