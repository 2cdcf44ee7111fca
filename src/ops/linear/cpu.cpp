// `linear` and `linear_backward` on a CPU, in the types that the engine serves: tensors become raw operands
// of a BilinearMap. Everything else takes the composed form.

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <vector>

#include "ops/engine/options.h"
#include "ops/linear/resolved.h"
#include "ops/linear/schema.h"
#include "ops/map/bilinear_map.h"
#include "ops/map/choice.h"
#include "ops/map/prepared.h"
#include "ops/memory/recycled.h"

namespace quatrain::ops {

namespace {

/// A fresh tensor's rows, without a call of ATen's: n components of `width` values.
engine::Blocks whole_rows(const at::Tensor& t, int64_t n, int64_t width) {
  return {t.mutable_data_ptr(), width, n * width, false, t.scalar_type()};
}

/// What has its type already passes without a call of ATen's, which few rows would feel.
at::Tensor typed(const at::Tensor& t, at::ScalarType type) {
  return t.scalar_type() == type ? t : t.to(type);
}

at::Tensor typed_as(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() ? typed(t, like.scalar_type()) : t;
}

/// `products`, where it is given, is made to hold the R products of the factored way.
at::Tensor forward(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call,
                   at::Tensor* products) {
  check_linear("linear", x, S, call);
  check_bias(bias, S);
  const at::ScalarType type = call.compute_dtype(x);
  const int64_t rows = rows_of(x);
  const auto planned = static_cast<int64_t>(requested_rows());
  // Products of few rows, and of any number in narrow types, round by how many there are.
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  if (narrow && planned > 0 && rows > planned && !products) {
    std::vector<at::Tensor> parts;
    for (const at::Tensor& part : x.reshape({rows, x.size(-1)}).split(planned))
      parts.push_back(forward(part, S, bias, call, nullptr));
    return at::cat(parts).reshape(sizes_with(x, parts[0].size(-1)));
  }
  BilinearMap map(S, call, rows, type);
  if (rows > 0 && rows < planned && !products && !map.rows_stand_alone()) {
    const at::Tensor filled = at::constant_pad_nd(x.reshape({rows, x.size(-1)}), {0, 0, 0, planned - rows});
    return forward(filled, S, bias, call, nullptr)
        .narrow(0, 0, rows)
        .reshape(sizes_with(x, map.n() * map.m()));
  }
  if (is_composed(map)) return composed::linear(x, S, bias, map.call());
  if (call.constant || map.way() == Way::materialised) map.prepare(false, map.worth_packing());
  const at::Tensor b = given(bias) ? typed(*bias, at::kFloat).contiguous() : at::Tensor();
  const at::Tensor inputs = map.matrix(x, rows, map.n() * map.p());
  BilinearMap::Output output;
  output.epilogue.bias = engine::values_or_null(b);
  if (products && map.way() == Way::factored) {
    *products = recycled_empty({map.rank(), rows, map.m()});
    output.products = products->mutable_data_ptr<float>();
  }
  const at::Tensor y =
      at::empty(sizes_with(x, map.n() * map.m()), x.options().dtype(map.result_type(rows, output)));
  const engine::Piece piece{BilinearMap::blocks_of_rows(inputs, map.p()), map.p()};
  map.apply(rows, {&piece, 1}, whole_rows(y, map.n(), map.m()), output);
  return typed(y, type);
}

at::Tensor linear_cpu(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
  return forward(x, S, bias, call, nullptr);
}

std::tuple<at::Tensor, at::Tensor> linear_with_products_cpu(const at::Tensor& x, const at::Tensor& S,
                                                            const Optional& bias, const Call& call) {
  at::Tensor products = at::empty({0}, x.options().dtype(at::kFloat));
  const at::Tensor y = forward(x, S, bias, call, &products);
  return {y, products};
}

Gradients linear_backward_cpu(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                              const Call& call, Mask mask, const Optional& products) {
  check_linear("linear_backward", x, S, call);
  check_grad(grad, x, S, call);
  const at::ScalarType type = call.compute_dtype(x);
  const int64_t rows = rows_of(x);
  BilinearMap map(S, call, rows, type, BilinearMap::Pass::backward);
  if (!map.on_engine() || map.way() == Way::mixed || (map.n() == 1 && map.way() == Way::materialised))
    return composed::linear_backward(grad, x, S, map.call(), mask);

  if (mask[1] || mask[2]) mark_in_training(S);
  const int64_t n = map.n(), m = map.m(), p = map.p();
  const at::Tensor inputs = map.matrix(x, rows, n * p), g = map.matrix(grad, rows, n * m);
  const engine::Blocks of_x = BilinearMap::blocks_of_rows(inputs, p),
                       of_g = BilinearMap::blocks_of_rows(g, m);
  const engine::Piece piece{of_x, p};
  const bool want_A = mask[2] && call.learned(), by_sums = want_A && map.sums_structure();
  const bool factored = map.way() == Way::factored;
  // Without products that were kept, and where dx is not wanted, the sums take two passes beside that of dS:
  // dH, which gives dS and dA at once, has less arithmetic than the three.
  if (by_sums && factored && call.way == Way::automatic && type == at::kFloat && !mask[0] &&
      !given(products) && n * n < 3 * map.rank()) {
    Call by_H = map.call();
    by_H.way = Way::materialised;
    return linear_backward_cpu(grad, x, S, by_H, mask, std::nullopt);
  }
  auto sums = map.structure_sums();
  // Where values are stored once they may be rounded at once.
  const auto result = [&](const at::Tensor& like, bool rounds) {
    return at::empty(like.sizes(), like.options().dtype(rounds ? like.scalar_type() : at::kFloat));
  };
  at::Tensor dx, dS, dA;
  if (mask[0] || (by_sums && factored)) {
    if (mask[0]) dx = result(x, x.scalar_type() == at::kBFloat16 && map.stores_once(rows, false));
    if (!factored) map.prepare();
    map.apply_transposed(rows, of_g, mask[0] ? whole_rows(dx, n, p) : engine::Blocks(), false,
                         by_sums ? &sums : nullptr, of_x);
  }
  if (mask[1] || by_sums) {
    if (mask[1]) dS = result(S, S.scalar_type() == at::kBFloat16 && map.stores_once(rows, true));
    map.weight_gradient(rows, of_g, {&piece, 1}, mask[1] ? BilinearMap::blocks_of(dS) : engine::Blocks(),
                        false, by_sums ? &sums : nullptr);
  }
  if (by_sums) {
    const std::vector<int64_t> kept{map.rank(), rows, m};
    const bool has = given(products) && products->sizes() == kept && products->is_contiguous() &&
                     products->scalar_type() == at::kFloat;
    map.sum_products(rows, of_g, {&piece, 1}, has ? products->const_data_ptr<float>() : nullptr, sums);
    dA = map.structure_gradient(sums);
  }
  if (want_A && !dA.defined()) {
    // Factors that the caller brings may be of any condition, and those of A may not reach it: from dH.
    Call by_H = map.call();
    by_H.way = Way::materialised;
    dA = std::get<2>(composed::linear_backward(grad, x, S, by_H, {false, false, true}));
  }
  return {typed_as(dx, x), typed_as(dS, S), want_A ? typed_as(dA, *call.A) : dA};
}

Way planned_way_cpu(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  check_linear("planned_way", x, S, call);
  return foreseen_way(S, call, rows_of(x), call.compute_dtype(x));
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("linear", &linear_schema<&linear_cpu>);
  m.impl("linear_backward", &linear_backward_schema<&linear_backward_cpu>);
  m.impl("linear_with_products", &linear_with_products_schema<&linear_with_products_cpu>);
  m.impl("planned_way", &planned_way_schema<&planned_way_cpu>);
}

}  // namespace quatrain::ops
