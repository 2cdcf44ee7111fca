// What dropout does to attention weights, as a tensor: for the composed form, which must drop what a kernel
// dropped.

#include "ops/attention/dropout.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <torch/library.h>

#include "ops/attention/attention.h"

namespace quatrain::ops {

namespace {

/// On a GPU too: the draws are made by the CPU.
at::Tensor drawn_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                      const at::Tensor& seed) {
  const int64_t heads = query.size(3), rows = query.size(0) * heads * maps * query.size(1);
  const int64_t keys = key.size(1), filled = filled_up(keys);
  const at::Tensor mask = at::ones({rows, filled}, query.options().dtype(at::kFloat).device(at::kCPU));
  kernels::cpu::active().drop(mask.mutable_data_ptr<float>(), filled, rows, filled,
                              drop_of(p, seed.item<int64_t>(), 0));
  return mask.slice(1, 0, keys)
      .unflatten(0, {query.size(0), heads, maps, query.size(1)})
      .to(query.options())
      .contiguous();
}

at::Tensor mask_of_a_trace(const at::Tensor& query, const at::Tensor& key, int64_t maps, double,
                           const at::Tensor&) {
  return at::empty_symint({query.sym_size(0), query.sym_size(3), maps, query.sym_size(1), key.sym_size(1)},
                          query.options());
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("attention_dropout_mask", &drawn_mask);
}
TORCH_LIBRARY_IMPL(quatrain, CUDA, m) {
  m.impl("attention_dropout_mask", &drawn_mask);
}
TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("attention_dropout_mask", &mask_of_a_trace);
}

}  // namespace quatrain::ops
