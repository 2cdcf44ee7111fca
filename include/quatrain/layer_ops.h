#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/api.h"

/// What layers compute beside their linear maps, as C++ functions over the registered `torch.ops.quatrain.*`.
/// All are differentiable, traced and batched, on every device: compositions of ATen's operators. For
/// attention a CPU has a kernel of its own too, in both directions.
namespace quatrain::ops {

/// A split activation: a real function applied to every component (QRNN (7)).
using ActivationFunction = at::Tensor (*)(const at::Tensor&);

/// The function of a name: identity, relu, gelu, gelu_tanh, tanh, sigmoid, silu, elu, selu, leaky_relu,
/// softplus, hardtanh, mish. An unknown name is an error that lists the known ones.
QUATRAIN_API ActivationFunction activation(std::string_view name);
/// The known names, in the order above.
QUATRAIN_API std::vector<std::string> activation_names();

/// Dropout of (..., n m), scaled by 1/(1 - p): element by element, or per unit, where the n components of a
/// number share one draw. The identity where `training` is false.
QUATRAIN_API at::Tensor hypercomplex_dropout(const at::Tensor& x, double p, bool training, int64_t n = 1,
                                             bool per_unit = false);

/// Layer norm of (..., n m) over the last axis, or per component where n > 1: each over its own m values.
/// weight and bias: (n m).
QUATRAIN_API at::Tensor hypercomplex_layer_norm(const at::Tensor& x, const at::Tensor& weight,
                                                const at::Tensor& bias, int64_t n = 1, double eps = 1e-5);

/// The mean over the positions that are not padding: x (B, L, width), padding (B, L) bool, true where there
/// is no word -> (B, width); zero where all is padding.
QUATRAIN_API at::Tensor masked_mean(const at::Tensor& x, const at::Tensor& padding);

/// Cuts (B, L, parts * width) into `parts` views (B, L, n, heads, m) with n components, width = n * heads *
/// m. A head holds whole hypercomplex numbers: each component is cut into heads (and first into parts).
QUATRAIN_API std::vector<at::Tensor> cut_heads(const at::Tensor& x, int64_t heads, int64_t components = 1,
                                               int64_t parts = 1);

/// Attention of cut heads: query (B, L, n, heads, m), key and value (B, S, n, heads, m) -> (B, L, n heads m).
///
/// `algebra` "real": one score map a head, Q K^T / sqrt(n m). Another: n maps, the components of the Hamilton
/// product Q * K^T with that table, sum_{i,j} A[i, c, j] Q_i K_j^T / sqrt(n m), and each weights its own
/// component of V (QNLP (4)). padding: (B, S) bool, true where a key is padding, or undefined; a query whose
/// keys are all padding gets zeros. `dropout`, from 0 to 1, acts on the weights; its draws follow the
/// generator of the device.
QUATRAIN_API at::Tensor hypercomplex_attention(const at::Tensor& query, const at::Tensor& key,
                                               const at::Tensor& value, std::string_view algebra = "real",
                                               const at::Tensor& padding = {}, double dropout = 0);
/// The same, with the attention weights before dropout, (B, heads, maps, L, S), maps = n or 1.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor> hypercomplex_attention_with_weights(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    std::string_view algebra = "real", const at::Tensor& padding = {}, double dropout = 0);

}  // namespace quatrain::ops
