// What dropout does to attention weights, as a tensor: for the composed form, which must drop what a kernel
// dropped.

#include "ops/attention/dropout.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <torch/library.h>

#include <limits>

#include "ops/attention/attention.h"
#include "ops/draws.h"

namespace quatrain::ops {

namespace {

void check(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p, const at::Tensor& seed) {
  TORCH_CHECK(query.layout() == at::kStrided && key.layout() == at::kStrided && query.dim() == 5 &&
                  key.dim() == 5 && at::isFloatingType(query.scalar_type()),
              "attention_dropout_mask: query and key must be dense, floating point and (batch, length, n, "
              "heads, values)");
  TORCH_CHECK(maps >= 1 && maps <= std::numeric_limits<int32_t>::max(),
              "attention_dropout_mask: maps must be at least 1 and few, got ", maps);
  check_draws("attention_dropout_mask", p, seed, query);
}

/// Rows are numbered through texts, heads, maps and queries, in this order. On a GPU too: the draws are made
/// by the CPU.
at::Tensor drawn_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                      const at::Tensor& seed) {
  check(query, key, maps, p, seed);
  // Refuses sizes whose product is beyond counting.
  at::empty({query.size(0), query.size(3), maps, query.size(1), key.size(1)},
            query.options().device(at::kMeta));
  const int64_t heads = query.size(3), rows = query.size(0) * heads * maps * query.size(1);
  const int64_t keys = key.size(1), filled = filled_up(keys);
  const at::Tensor mask = at::ones({rows, filled}, query.options().dtype(at::kFloat).device(at::kCPU));
  auto* values = mask.mutable_data_ptr<float>();
  kernels::cpu::active().drop_f(values, filled, values, filled, rows, filled,
                                drop_of(p, seed.item<int64_t>(), 0));
  return mask.slice(1, 0, keys)
      .unflatten(0, {query.size(0), heads, maps, query.size(1)})
      .to(query.options())
      .contiguous();
}

at::Tensor mask_of_a_trace(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                           const at::Tensor& seed) {
  check(query, key, maps, p, seed);
  return at::empty_symint({query.sym_size(0), query.sym_size(3), maps, query.sym_size(1), key.sym_size(1)},
                          query.options());
}

/// It has no derivative: what it gives is a constant to autograd.
at::Tensor constant_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                         const at::Tensor& seed) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return dropout_mask(query, key, maps, p, seed);
}

}  // namespace

at::Tensor dropout_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                        const at::Tensor& seed) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::attention_dropout_mask", "")
                             .typed<decltype(dropout_mask)>();
  return op.call(query, key, maps, p, seed);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("attention_dropout_mask(Tensor query, Tensor key, int maps, float p, Tensor seed) -> Tensor");
}
TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("attention_dropout_mask", &drawn_mask);
}
TORCH_LIBRARY_IMPL(quatrain, CUDA, m) {
  m.impl("attention_dropout_mask", &drawn_mask);
}
TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("attention_dropout_mask", &mask_of_a_trace);
}
TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("attention_dropout_mask", &constant_mask);
}

}  // namespace quatrain::ops
