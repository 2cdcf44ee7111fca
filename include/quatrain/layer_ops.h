#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/api.h"

/// What layers compute besides their linear maps, as C++ functions over the registered
/// `torch.ops.quatrain.*`. They are differentiable and can be traced and batched on every device, because
/// they are composed of ATen's operators. On a CPU attention and dropout also have kernels of their own,
/// forward and backward. Two functions serve inference alone and have no derivatives: `cached_attention` and
/// `keep_words`, which is no registered operator. Errors: see ops.h.
namespace quatrain::ops {

/// A split activation: a real function applied to every component (QRNN (7)).
using ActivationFunction = at::Tensor (*)(const at::Tensor&);

/// The function of a name: identity, relu, gelu, gelu_tanh, tanh, sigmoid, silu, elu, selu, leaky_relu,
/// softplus, hardtanh, mish. An unknown name is an error that lists the known ones.
QUATRAIN_API ActivationFunction activation(std::string_view name);
/// The same for a tensor that nobody else reads, such as a layer's result: relu, tanh and sigmoid overwrite
/// it, because their gradients need the result alone. So no second tensor of its size is made.
QUATRAIN_API ActivationFunction overwriting_activation(std::string_view name);
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

/// Batch norm that whitens: the n components of each unit get the mean 0 and the covariance I over batch and
/// pixels, by the Cholesky factor L of their covariance, y = gamma L^-1 (x - mean) + bias (Gaudet and Maida
/// 2018).
///
/// x (B, n c, ...) -> the same; it whitens with the batch's own statistics while training, else with the
/// running ones, running_mean (n c) and running_covariance (n, n, c), which training moves towards the
/// batch's by `momentum`, as torch's batch norm does; undefined ones stay so. weight (n (n + 1) / 2, c): the
/// lower triangles of the symmetric gamma, row by row. bias (n c). eps is added to the variances. Computed in
/// float32 at least. While training there must be 2 values of each channel or more. The running statistics
/// are given both or neither; without training they are needed. Throws c10::Error for these, and
/// c10::LinAlgError for a covariance without a Cholesky factor.
QUATRAIN_API at::Tensor whitening_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                       const at::Tensor& running_mean, const at::Tensor& running_covariance,
                                       int64_t n, bool training, double momentum = 0.1, double eps = 1e-4);

/// The mean over the positions that are not padding: x (B, L, width), padding (B, L) bool, true where there
/// is no word -> (B, width); zero where all is padding.
QUATRAIN_API at::Tensor masked_mean(const at::Tensor& x, const at::Tensor& padding);

/// Cuts (B, L, parts * width) into `parts` views (B, L, n, heads, m) with n components, width = n * heads *
/// m. A head holds whole hypercomplex numbers: each component is cut into heads (and first into parts).
QUATRAIN_API std::vector<at::Tensor> cut_heads(const at::Tensor& x, int64_t heads, int64_t components = 1,
                                               int64_t parts = 1);

/// Which way round queries and keys are multiplied: Q * K or K * Q.
enum class ProductOrder { query_key, key_query };
/// The order's name in schemas and Python: "query_key" or "key_query".
QUATRAIN_API const char* name(ProductOrder order);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API ProductOrder parse_product_order(std::string_view name);

/// How heads attend. A query sees a key where `padding`, `mask` and `causal` all let it; one that sees no key
/// gets zeros, and passes no gradient on.
///
/// Values that are hidden from all queries are never read, so that they may be NaN. These are padding, keys
/// behind the last query's place, and what a mask with one row for all queries hides. A key that some queries
/// see must be finite for the others too, since they weight it with zero.
struct AttentionOptions {
  /// "real": one score map a head, Q K^T. Any other algebra: n maps, the components of the Hamilton product Q
  /// * K^T with that table, sum_{i,j} A[i, c, j] Q_i K_j^T, and each weights its own component of V (QNLP
  /// (4)).
  std::string algebra = "real";
  /// (B, S) bool, true where a key is padding.
  at::Tensor padding{};
  /// Of a shape that broadcasts to (B, heads, L, S), one for all score maps, as torch's
  /// `scaled_dot_product_attention` takes it: bool, true where a query sees a key (padding is the other way
  /// round), or floating, added to the scaled scores; minus infinity hides. A floating one may ask for a
  /// gradient.
  at::Tensor mask{};
  /// Query l sees the keys 0 .. offset + l.
  bool causal = false;
  /// The place of the first query among the keys: 0 where queries and keys begin together, S - L where the
  /// queries are the last of the keys, as with a cache. It goes with `causal`.
  c10::SymInt offset = 0;
  /// Scale of the scores; 1 / sqrt(n m) where none is given.
  std::optional<double> scale{};
  /// K * Q has the scores sum_{i,j} A[j, c, i] Q_i K_j^T.
  ProductOrder order = ProductOrder::query_key;
  /// Probability, from 0 to 1, with which attention weights are dropped; drawn from the device's generator.
  double dropout = 0;
};

/// Attention of cut heads: query (B, L, n, heads, m), key and value (B, S, n, heads, m) -> (B, L, n heads m).
/// Component c of a head is softmax_s(scale sum_{i,j} A[i, c, j] Q_i K_j^T) V_c; with one map, which all
/// components share, softmax_s(scale Q K^T) V.
///
/// Any strides are accepted: keys and values may be views of a longer cache, which is not copied as long as
/// the m values are contiguous. Throws std::invalid_argument or c10::Error that name the argument and the
/// rule where an algebra is unknown or shapes, types or devices do not fit.
///
/// It has derivatives of any order with n maps in float32 on a CPU (but for heads too large for the caches),
/// with a mask that learns, and where weights are returned. Elsewhere it has those of torch's
/// scaled_dot_product_attention, which are of any order with SDPBackend::math.
QUATRAIN_API at::Tensor hypercomplex_attention(const at::Tensor& query, const at::Tensor& key,
                                               const at::Tensor& value, const AttentionOptions& options = {});
/// The same, with the attention weights before dropout, (B, heads, maps, L, S), maps = n or 1.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor> hypercomplex_attention_with_weights(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const AttentionOptions& options = {});

/// Attention of one word a row over keys and values that lie in a cache, as a decoder takes its steps:
/// nothing is copied, and rows that share a history share its memory.
///
/// query (rows, n, heads, m); keys and values (slots, capacity, n, heads, m); table (rows, length) int32 says
/// in which slot row b's key of place s lies: keys[table[b, s], s]; lengths (rows) int32, 1 to length: how
/// many places a row sees, behind which the table may hold anything. -> (rows, n heads m). algebra and scale
/// as in AttentionOptions. Not differentiable: for inference.
QUATRAIN_API at::Tensor cached_attention(const at::Tensor& query, const at::Tensor& keys,
                                         const at::Tensor& values, const at::Tensor& table,
                                         const at::Tensor& lengths, const std::string& algebra = "real",
                                         std::optional<double> scale = std::nullopt);
/// Puts a word of each row, (rows, n, heads, m), at place `place` of slots 0 .. rows - 1 of such keys or
/// values. For inference.
QUATRAIN_API void keep_words(const at::Tensor& cache, int64_t place, const at::Tensor& words);

}  // namespace quatrain::ops
