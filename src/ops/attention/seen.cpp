#include "ops/attention/seen.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace quatrain::ops::composed {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

at::Tensor both(const at::Tensor& a, const at::Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : a.logical_and(b);
}

/// (1, 1, L, S): key s is seen by query l where s <= place + l.
at::Tensor seen_by_place(const c10::SymInt& queries, const c10::SymInt& keys, const c10::SymInt& place,
                         const at::TensorOptions& options) {
  const at::TensorOptions places = options.dtype(at::kLong);
  const at::Tensor last = at::arange(c10::Scalar(place), c10::Scalar(place + queries), places);
  return at::arange(c10::Scalar(keys), places).le(last.unsqueeze(1)).unsqueeze(0).unsqueeze(0);
}

}  // namespace

Seen::Seen(const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K) {
  const AttentionOptions& o = call.options;
  at::Tensor common;  // the part of `allowed` that all queries share, (.., .., 1, ..)
  if (o.padding.defined()) common = allowed_ = o.padding.logical_not().unsqueeze(1).unsqueeze(1);
  if (o.mask.defined()) {
    at::Tensor mask = o.mask;
    while (mask.dim() < 4) mask = mask.unsqueeze(0);
    const bool shared = mask.sym_size(2) == 1;
    if (mask.scalar_type() == at::kBool) {
      allowed_ = both(allowed_, mask);
      if (shared) common = both(common, mask);
    } else {
      bias_ = mask.to(Q.scalar_type());
      if (shared) common = both(common, bias_.ne(kMinusInfinity));
    }
  }
  if (common.defined()) hidden_ = common.logical_not().permute({0, 3, 2, 1}).unsqueeze(-1);
  const c10::SymInt place = call.place(Q, K);
  if (o.causal) allowed_ = both(allowed_, seen_by_place(Q.sym_size(1), K.sym_size(1), place, Q.options()));

  const bool may_be_blind = o.padding.defined() || o.mask.defined() || (o.causal && place < 0);
  if (bias_.defined()) {
    if (allowed_.defined()) bias_ = bias_.masked_fill(allowed_.logical_not(), kMinusInfinity);
    blind_ = bias_.eq(kMinusInfinity).all(-1, /*keepdim=*/true);
    bias_ = bias_.masked_fill(blind_, 0);
    allowed_.reset();
  } else if (may_be_blind) {
    blind_ = allowed_.logical_not().all(-1, /*keepdim=*/true);
    allowed_ = allowed_.logical_or(blind_);
  }
}

at::Tensor Seen::without_hidden(const at::Tensor& t) const {
  return hidden_.defined() ? at::where(hidden_, at::zeros({}, t.options()), t) : t;
}

at::Tensor Seen::weights(const at::Tensor& scores) const {
  if (bias_.defined()) return (scores + bias_.unsqueeze(2)).softmax(-1);
  if (!allowed_.defined()) return scores.softmax(-1);
  return scores.masked_fill(allowed_.unsqueeze(2).logical_not(), kMinusInfinity).softmax(-1);
}

at::Tensor Seen::without_blind(const at::Tensor& t, int64_t axis) const {
  return blind_.defined() ? t.masked_fill(blind_.unsqueeze(axis == 2 ? -1 : 2), 0) : t;
}

std::optional<at::Tensor> Seen::mask(int64_t maps) const {
  const at::Tensor& mask = bias_.defined() ? bias_ : allowed_;
  if (!mask.defined()) return std::nullopt;
  if (maps == 1 || mask.sym_size(2) == 1) return mask;
  return mask.unsqueeze(2).expand({-1, -1, maps, -1, -1}).flatten(2, 3);
}

}  // namespace quatrain::ops::composed
