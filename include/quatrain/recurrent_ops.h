#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/ops.h"

namespace quatrain::ops {

/// What a recurrent layer does with its gates, in the order of torch::nn. x: the input's part of a gate; y:
/// the state's part.
///   lstm          i, f, g, o: c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g), h_t = sigmoid(o) tanh(c_t)
///                 (QRNN (20)-(24), every function component by component)
///   lstm_printed  the same with h_t = o c_t, as PHM prints it
///   gru           r, z, n: n = tanh(x_n + sigmoid(r) y_n), h_t = (1 - sigmoid(z)) n + sigmoid(z) h_{t-1}
///   rnn_tanh, rnn_relu  h_t = tanh(x + y), or max(0, x + y) (QRNN (6))
enum class Cell { lstm, lstm_printed, gru, rnn_tanh, rnn_relu };
QUATRAIN_API const char* name(Cell cell);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Cell parse_cell(std::string_view name);
/// 4, 3 or 1.
QUATRAIN_API int64_t gates(Cell cell);
/// True where there is a state c beside h.
QUATRAIN_API bool has_memory(Cell cell);

/// A map of the state h_{t-1}: all gates at once, S (n, gates p, q), or one of them, S (n, p, q); or the
/// projection of an lstm's outputs, S (n, q, p). q = p where there is none. Of inputs x_t: the same with d
/// in the place of q.
struct QUATRAIN_API RecurrentMap {
  at::Tensor S;
  Product product;
};

struct QUATRAIN_API RecurrenceOptions {
  Cell cell = Cell::lstm;
  /// From the last step to the first.
  bool reverse = false;
  /// S will not change until it is trained again (as in linear).
  bool constant = false;
};

/// A recurrent layer after the products of its inputs: for each step t
///     gates_t = z_t + H h_{t-1} + bias,    (h_t, c_t) = cell(gates_t, c_{t-1}),
/// and with a projection P, which an lstm may have, P h_t in the place of h_t.
///
/// n components of p units each, of which a projection makes q: a row of c holds n p values, a row of h n q,
/// and a row of z n gates p, the gates of each component side by side. z: (N, n gates p), the rows of all
/// steps one after the other; batch_sizes (T) int64, on the CPU or where the inputs are: how many rows each
/// step has, as in torch's PackedSequence. They are at least 1, do not grow, and are N together; else it
/// throws c10::ValueError. Row b of a step goes on with row b of the step before. h0: (B, n q) and, where the
/// cell has memory, c0: (B, n p), with B = batch_sizes[0]. maps: one for all gates, or one a gate, and after
/// them that of a projection. bias: (n gates p), added to H h, or undefined. mask: (B, n q), what h_{t-1} is
/// multiplied by before H, or undefined.
///
/// Returns h of all steps (N, n q), and the last h (B, n q) and c (B, n p) of each row; c is undefined for a
/// cell without memory. On a CPU in float32 the engine applies H and the projection; elsewhere they
/// are composed of `linear`. Differentiable any number of times. Errors: see ops.h.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrence(
    const at::Tensor& z, const at::Tensor& batch_sizes, const at::Tensor& h0, const at::Tensor& c0,
    const std::vector<RecurrentMap>& maps, const at::Tensor& bias, const at::Tensor& mask,
    const RecurrenceOptions& options);

/// The inputs of a recurrent layer and what makes gates of them: z_t = H_x x_t + bias.
struct QUATRAIN_API RecurrentInputs {
  at::Tensor x;                    ///< (N, n d), rows as those of z
  std::vector<RecurrentMap> maps;  ///< one for all gates, or one a gate, over the algebra of the state's
  at::Tensor bias;                 ///< (n gates p), or undefined
  Way way = Way::automatic;        ///< of their products
};

/// A recurrent layer: `recurrence` of z = `linear` of its inputs. Where nothing needs a gradient, on a CPU in
/// float32, z is made a few steps at a time and stays in the caches; results differ by rounding alone.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrent_layer(
    const RecurrentInputs& inputs, const at::Tensor& batch_sizes, const at::Tensor& h0, const at::Tensor& c0,
    const std::vector<RecurrentMap>& maps, const at::Tensor& bias, const at::Tensor& mask,
    const RecurrenceOptions& options);

}  // namespace quatrain::ops
