#pragma once

#include <ATen/TensorIterator.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/engine/team.h"
#include "ops/map/bilinear_map.h"
#include "ops/recurrent/recurrent.h"

/// What both passes of a recurrence on a CPU are made of: the maps of its gates, and who does what in a step.
namespace quatrain::ops {

// Of the same order.
inline kernels::cpu::Cell cell_of(Cell cell) {
  static_assert(static_cast<int>(Cell::rnn_relu) == static_cast<int>(kernels::cpu::Cell::rnn_relu));
  return static_cast<kernels::cpu::Cell>(cell);
}

using Range = engine::Team::Range;

/// The maps of all gates, of the state or of inputs, and where their rows lie among the gates. A projection
/// is the same with one gate.
class GateMaps {
 public:
  /// One map for all gates, or the first `gates` of S, one each. For `rows` rows at a time, so many `times`.
  GateMaps(const std::vector<at::Tensor>& S, const std::vector<Call>& maps, int64_t gates,
           const Optional& bias, int64_t rows, int64_t times, BilinearMap::Pass pass);

  bool on_engine() const { return on_engine_; }
  /// True where results can be made in parts, without a change of a bit.
  bool splits() const { return splits_; }
  /// Blocks of columns in which the gates, or the gradient of the state, are made.
  int64_t blocks() const { return blocks_; }
  /// Products of values in a step of so many rows.
  int64_t work(int64_t rows) const { return rows * n_ * n_ * p_ * q_ * gates_; }

  /// Some blocks of rows of gates become those of H x + bias.
  void apply(Range rows, Range blocks, const float* x, float* gates) const;

  /// Some blocks of H^T of rows of gates are added to dh, times `mask` where there is one; then `through` is
  /// memory of dh's size.
  void apply_transposed(Range rows, Range blocks, float* dr, float* dh, const float* mask,
                        float* through) const;

 private:
  engine::Blocks gates_at(float* rows, size_t k) const {
    return {rows + static_cast<int64_t>(k) * p_, gates_ * p_, n_ * gates_ * p_};
  }

  int64_t n_, gates_, p_, q_, blocks_ = 0;  // q: units of a component of x
  std::vector<BilinearMap> maps_;
  at::Tensor bias_;  // (maps, n, rows of S)
  bool on_engine_ = true, splits_ = true;
};

/// The maps of the state: of its gates, and of its projection where there is one.
struct StateMaps {
  StateMaps(const RecurrenceCall& call, int64_t rows, int64_t steps, BilinearMap::Pass pass);

  bool on_engine() const { return gates.on_engine() && (!projection || projection->on_engine()); }
  bool splits() const { return gates.splits() && (!projection || projection->splits()); }

  GateMaps gates;
  std::optional<GateMaps> projection;
};

/// Who does what in a step. Sequences do not depend on each other: where there are many, each thread takes
/// some of them and goes through all steps alone. Else it takes blocks of columns of each product, then
/// cells, and all threads wait for each other after both.
class Split {
 public:
  /// splits: whether what else is made in each step can be made in parts.
  Split(const Steps& steps, const StateMaps& maps, int64_t n, bool splits = true);

  int64_t threads() const { return threads_; }
  bool by_rows() const { return by_rows_; }

  /// What one thread does of a step of so many rows.
  struct Part {
    Range rows, blocks;  ///< of the product
    Range cells;         ///< row * n + component
  };
  Part part(const engine::Team::Member& member, int64_t rows) const;
  /// Those of so many blocks of another product that one thread makes of its rows.
  Range share(const engine::Team::Member& member, int64_t blocks) const {
    return by_rows_ ? Range{0, blocks} : member.share(blocks);
  }
  /// After each product, and after each use of cells.
  void wait(const engine::Team::Member& member) const {
    if (!by_rows_) member.wait();
  }

 private:
  int64_t n_, blocks_, threads_ = 1;
  bool by_rows_ = false;
  std::vector<int64_t> cuts_;  // where each thread's sequences begin
};

/// Calls `each(row, component)` for cells, a unit of which costs about as much as `work` additions.
template <class Each>
void for_each_cell(Range cells, int64_t n, int64_t p, int64_t work, const Each& each) {
  const int64_t grain = std::max<int64_t>(1, at::internal::GRAIN_SIZE / (work * p + 1));
  at::parallel_for(cells.begin, cells.end, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each(i / n, i % n);
  });
}

inline void multiply(const float* a, const float* b, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = a[i] * b[i];
}

}  // namespace quatrain::ops
