#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <tuple>

#include "ops/attention/attention.h"

/// hypercomplex_alignment: what alignment.cpp and cpu.cpp share.
namespace quatrain::ops {

/// Two calls of attention: of the words of A over those of B, and of those of B over those of A.
struct AlignmentCalls {
  AttentionCall first_sees, second_sees;
};
/// Rows of E = A * B^T are words of the first text. Its transpose has those words on the left of the product
/// too, although they are its keys.
AlignmentCalls alignment_calls(std::string_view algebra, const at::Tensor& first_padding,
                               const at::Tensor& second_padding);

namespace cpu {

/// Whether one map of scores serves both calls, in all passes: float32 on a CPU, n > 1 maps, and the scores
/// of a pair are one tile of each call. A: (B, la, n, h, m), B: (B, lb, n, h, m).
QUATRAIN_API bool aligns_together(const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B,
                                  bool with_gradient);
/// B' (B, la, n h m) and A' (B, lb, n h m).
std::tuple<at::Tensor, at::Tensor> alignment(const AlignmentCalls& calls, const at::Tensor& A,
                                             const at::Tensor& B);
/// The gradients of A and B, of those of B' and A', one of which may be undefined.
std::tuple<at::Tensor, at::Tensor> alignment_backward(const AlignmentCalls& calls, const at::Tensor& of_first,
                                                      const at::Tensor& of_second, const at::Tensor& A,
                                                      const at::Tensor& B);

}  // namespace cpu

}  // namespace quatrain::ops
