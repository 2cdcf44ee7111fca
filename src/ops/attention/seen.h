#pragma once

#include "ops/attention/attention.h"

/// Which keys each query sees, as tensors: for the composed form.
namespace quatrain::ops::composed {

/// A softmax over no key at all would be 0/0. So a query that sees no key is computed as if it saw all, and
/// its result is set to zero.
class Seen {
 public:
  Seen(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key);

  /// What is hidden from all queries becomes zero, whatever it held: t is (B, S, n, h, m).
  at::Tensor without_hidden(const at::Tensor& t) const;
  /// The weights (B, h, maps, L, S) of scores of that shape.
  at::Tensor weights(const at::Tensor& scores) const;
  /// Zeros for queries without a key: t is (B, h, maps, L, ..), or with `axis` = 2 (B, h, L, .., ..).
  at::Tensor without_blind(const at::Tensor& t, int64_t axis) const;
  /// For `scaled_dot_product_attention` with queries (B, h, maps L, ..); nothing where every query sees every
  /// key.
  std::optional<at::Tensor> mask(int64_t maps) const;

 private:
  at::Tensor allowed_;  // bool, broadcasts to (B, h, L, S), or undefined
  at::Tensor bias_;     // what is added to the scores, in place of `allowed`
  at::Tensor blind_;    // bool, broadcasts to (B, h, L, 1), or undefined: queries without a key
  at::Tensor hidden_;   // bool, broadcasts to (B, S, 1, h, 1), or undefined
};

}  // namespace quatrain::ops::composed
