#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "ops/map/call.h"
#include "quatrain/recurrent_ops.h"

/// The operators `recurrent_layer` and `recurrence`. A call goes through these files, in this order:
///
///   schema.cpp      the registered schemas and the C++ functions; call.cpp checks the arguments
///   layer.cpp       a layer becomes `linear` and `recurrence`, but for inference on a CPU
///   meta.cpp        and autocast
///   autograd.cpp    records it
///   cpu.cpp, cpu_backward.cpp  on gate_maps.h and step_gates.h, step by step; composed.cpp for other devices
///                   and types
///
/// N rows in T steps, the first of which has B; n components, p units of each. The state h has q of each: p,
/// or what a projection makes of them, one more map in each step.
namespace quatrain::ops {

using Optional = std::optional<at::Tensor>;

/// The arguments other than z and the states.
struct RecurrenceCall {
  at::Tensor batch_sizes;
  std::vector<at::Tensor> S;  ///< of the gates; after them of the projection, where there is one
  std::vector<Call> maps;     ///< what each S is multiplied with
  Optional bias, mask;
  Cell cell = Cell::lstm;
  bool reverse = false;

  int64_t n() const { return S[0].size(0); }
  int64_t p() const { return (projects() ? S.back() : S[0]).size(2); }
  /// Those of S that are of the gates: one for all, or one for each. One more is of the projection.
  size_t gate_maps() const {
    return S.size() == 1 || S.size() == static_cast<size_t>(gates(cell)) ? S.size() : S.size() - 1;
  }
  bool projects() const { return gate_maps() < S.size(); }
  /// n p, and n q.
  c10::SymInt hidden() const { return S[0].sym_size(0) * (projects() ? S.back() : S[0]).sym_size(2); }
  c10::SymInt state() const { return S[0].sym_size(0) * S[0].sym_size(2); }
};

/// The inputs of a layer: what z is made of.
struct InputCall {
  at::Tensor x;
  std::vector<at::Tensor> S;  ///< of all gates, or one a gate
  std::vector<Call> maps;     ///< what each S is multiplied with
  Optional bias;
};

/// What reaches y, h_n and c_n; undefined where nothing does.
struct Upstream {
  Optional y, h, c;
};

/// True where `is` holds for one of the tensors: the states, biases, masks, the weights and what A holds.
bool any_of(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0, const Optional& c0,
            bool (*is)(const at::Tensor&));
bool any_of(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0, const Optional& c0,
            bool (*is)(const at::Tensor&));

/// Values that the way back needs, for each unit: those of kernels::cpu::CellStep.
int64_t kept_values(Cell cell);

/// Throws unless shapes, types and devices fit. Works on symbolic sizes.
void check_recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                      const Optional& c0);

/// The same for a layer.
void check_recurrent_layer(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                           const Optional& c0);

/// The same for the way back.
void check_recurrence_backward(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                               const at::Tensor& kept, const at::Tensor& h0, const Optional& c0);

/// Where the rows of the steps lie; made of the values of batch_sizes, which it checks.
struct Steps {
  /// Throws unless they are at least 1, do not grow, begin with B, and are N together.
  Steps(const at::Tensor& batch_sizes, int64_t N, int64_t B);

  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
  /// The i-th step in the order of time, or against it.
  int64_t at(int64_t i, bool backwards) const { return backwards ? count() - 1 - i : i; }
  /// Cuts the batch into runs of sequences with about as many rows each: where they begin, and B.
  std::vector<int64_t> cuts(int64_t parts) const;
  /// Of each row the row that it goes on from; N + b for the start of row b.
  std::vector<int64_t> before(bool reverse) const;

  std::vector<int64_t> sizes, first;  ///< rows of each step; the first of them
};

/// y (N, n q), h_n (B, n q), c_n (B, n p; empty without memory), and what the way back needs (N, n kept p;
/// empty unless `keep`).
using States = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
/// The first three.
using LayerStates = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
/// Of z, of the state's products (the same tensor but for a gru), h0, c0 (empty without memory); the states
/// that H was applied to (N, n q); and what reached the projected states (N, n q; empty without a
/// projection).
using StateGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// In ATen's calls and `linear`, differentiable; a layer in `linear` and `recurrence`.
namespace composed {
LayerStates recurrent_layer(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                            const Optional& c0);
States recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0, const Optional& c0,
                  bool keep);
StateGradients recurrence_backward(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                                   const at::Tensor& kept, const at::Tensor& h0, const Optional& c0);
/// What the projection was applied to (N, n p), from what was kept.
at::Tensor unprojected(const RecurrenceCall& call, const at::Tensor& kept);
}  // namespace composed

/// The operators through torch's dispatcher.
LayerStates dispatch_recurrent_layer(const RecurrenceCall& call, const InputCall& inputs,
                                     const at::Tensor& h0, const Optional& c0);
States dispatch_recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                           const Optional& c0, bool keep);
StateGradients dispatch_recurrence_backward(const RecurrenceCall& call, const Upstream& grads,
                                            const at::Tensor& y, const at::Tensor& kept, const at::Tensor& h0,
                                            const Optional& c0);

inline at::Tensor value_or_none(const Optional& t) {
  return t ? *t : at::Tensor();
}

}  // namespace quatrain::ops
