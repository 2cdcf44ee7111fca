#include "ops/linear/resolved.h"

#include <ATen/TensorOperators.h>

#include "ops/engine/options.h"
#include "ops/linear/schema.h"

namespace quatrain::ops {

bool is_composed(const BilinearMap& map) {
  return !map.on_engine() || (map.n() == 1 && map.way() == Way::materialised && !map.packs_H());
}

std::optional<ResolvedLinear> ResolvedLinear::of(const at::Tensor& S, const at::Tensor& bias,
                                                 const Product& product, Way way, int64_t rows,
                                                 const at::Tensor& alpha) {
  if (!S.is_cpu() || S.scalar_type() != at::kFloat || rows == 0) return std::nullopt;
  Call call = make_call(product);
  call.way = requested_way(way);
  call.constant = true;
  check_weight("linear", S, call);
  check_bias(bias.defined() ? Optional(bias) : std::nullopt, S);
  BilinearMap map(S, std::move(call), rows, at::kFloat);
  const bool stands_alone = map.rows_stand_alone() || requested_rows() == PlannedRows::automatic;
  if (is_composed(map) || !stands_alone) return std::nullopt;
  map.prepare(false, map.worth_packing());
  return ResolvedLinear(std::move(map), rows, bias, alpha);
}

ResolvedLinear::ResolvedLinear(BilinearMap map, int64_t rows, const at::Tensor& bias, const at::Tensor& alpha)
    : map_(std::move(map)), rows_(rows) {
  if (bias.defined()) bias_ = bias.detach().to(at::kFloat).contiguous();
  if (!alpha.defined()) return;
  scale_ = alpha.detach().to(at::kFloat).expand({out_features()}).contiguous();
  if (bias_.defined()) bias_ = bias_ * scale_;
}

void ResolvedLinear::apply(const float* x, const engine::Blocks& to, const Then& then) const {
  const int64_t p = map_.p();
  const engine::Piece inputs{{const_cast<float*>(x), p, in_features()}, p};
  BilinearMap::Output output;
  output.epilogue.scale = engine::values_or_null(scale_);
  output.epilogue.bias = engine::values_or_null(bias_);
  output.epilogue.activation = then.activation;
  if (then.residual) {
    output.epilogue.residual = to;
    output.epilogue.residual.data = const_cast<float*>(then.residual);
  }
  map_.apply(rows_, {&inputs, 1}, to, output);
}

void ResolvedLinear::apply(const float* x, float* y, const Then& then) const {
  apply(x, {y, map_.m(), out_features()}, then);
}

}  // namespace quatrain::ops
