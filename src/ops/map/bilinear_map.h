#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "ops/engine/engine.h"
#include "ops/engine/mixed_rows.h"
#include "ops/engine/planner.h"
#include "ops/map/call.h"
#include "ops/map/mixtures.h"
#include "ops/map/prepared.h"
#include "ops/structure/structure.h"

namespace quatrain::ops {

/// One bilinear map y = (sum_i A_i (x) S_i) x: an algebra, or a learned A with its factors, and a weight S,
/// resolved once and applied many times on a CPU. It alone knows which way is taken, with which factors, and
/// what is packed.
///
/// Rows of x hold n p values and rows of y n m, as n components that may lie anywhere (engine::Blocks: any
/// distance between components and between rows), x also in pieces side by side. Applying takes no look-up,
/// no lock, no copy of A and, after the largest call of a thread, no memory but what ATen's products take
/// for themselves; it may be done from inside a parallel region, on one thread then, and
/// by several threads at once. Results are those of `linear`, bit for bit.
///
///     BilinearMap map(S, call, rows, at::kFloat);
///     map.prepare();                                       // worth it from the second application on
///     for (...) map.apply(rows, x, y, {.accumulate = true});
class QUATRAIN_API BilinearMap {
 public:
  enum class Pass { forward, backward };

  /// How a map will be applied: so often that combining its weights costs nothing beside that; on one thread.
  struct Use {
    bool often = false, on_one_thread = false;
  };

  /// For the choice of the way: `rows`, how many the map will mostly be applied to, `pass`, whose call asks,
  /// and `use`. `call` was checked (check_weight). float32 and bfloat16.
  BilinearMap(const at::Tensor& S, Call call, int64_t rows, at::ScalarType type, Pass pass, Use use);
  BilinearMap(const at::Tensor& S, Call call, int64_t rows, at::ScalarType type, Pass pass = Pass::forward)
      : BilinearMap(S, std::move(call), rows, type, pass, Use()) {}

  /// False where nothing below can be called, and the composed form serves: other types, empty tensors,
  /// bfloat16 with H.
  bool on_engine() const { return on_engine_; }
  /// True for a constant real layer, whose S is H, where H is packed for dense products; other real layers
  /// are one product of ATen's already.
  bool packs_H() const { return packs_H_; }
  Way way() const { return call_.way; }
  /// True where a row's result has the same bits whatever the number of rows, as long as the rows to plan for
  /// are fixed (PlannedRowsGuard).
  bool rows_stand_alone() const;
  /// True for a constant weight of the mixed way under a TrafficGuard, and rows from which arithmetic, not
  /// memory, takes the time: prepare it as for many applications. Sums are in another order then.
  bool worth_packing() const { return worth_packing_; }
  /// The call with its way decided.
  const Call& call() const { return call_; }
  int64_t n() const { return n_; }
  int64_t m() const { return m_; }
  int64_t p() const { return p_; }
  /// R of the factors in use; 0 on the other ways.
  int64_t rank() const { return factors_ ? factors_->rank : 0; }

  /// Of the factored way: the mixtures, their number where they are followed beside A (else 0), and the
  /// weight as it is read, contiguous.
  const engine::Mixings& factors() const { return *factors_; }
  uint64_t followed() const { return held_ ? held_->mixings->number : 0; }
  const at::Tensor& weight() const { return S_; }

  /// Combines the weights once for all applications to inputs, or to gradients (`transposed`): packed blocks,
  /// or H, which serves both. The mixed way has one direction: its gradients go through H. Kept beside S
  /// where the call says that S is constant. The factored way does without, and mixes in each application.
  /// `often`: the mixed way too has its weights in another order, for many applications to inputs.
  void prepare(bool transposed = false, bool often = false);

  /// How a result is stored.
  struct Output {
    bool accumulate = false;  ///< added to what is there
    engine::Epilogue epilogue = {};
    float* products = nullptr;     ///< factored way: where the R products are kept, (R, rows, m)
    engine::Columns columns = {};  ///< those of y that are computed
  };
  /// The type in which y may be written: the one computed in, or float32 where sums lie in y on the way.
  at::ScalarType result_type(int64_t rows, const Output& output) const;

  /// True where some columns of a result can be computed alone. The products of H are ATen's, whole.
  bool splits_columns(bool transposed) const {
    return way() == Way::factored || (way() == Way::mixed && !transposed);
  }

  /// y (+)= H x, then the epilogue.
  void apply(int64_t rows, engine::Pieces x, const engine::Blocks& y, const Output& output) const;
  void apply(int64_t rows, engine::Pieces x, const engine::Blocks& y) const { apply(rows, x, y, {}); }

  /// Sums from which the gradient of what A holds follows; the passes below add to them.
  struct StructureSums {
    std::vector<float> U, V, W;  ///< factored: inner products with the factors' products, each (n, R)
    std::vector<float> A;        ///< materialised: dA, (n, n, n)
  };
  /// True where the passes give the gradient of what A holds. Else the factors are the caller's, of any
  /// condition: take it from H.
  bool sums_structure() const;
  StructureSums structure_sums() const;

  /// True where the gradients of x, or of S (`of_S`), may be written in bfloat16: each value is stored once.
  bool stores_once(int64_t rows, bool of_S) const;

  /// dx (+)= H^T g, or some columns of it. dx without data: only the sums, of these x, are wanted.
  void apply_transposed(int64_t rows, const engine::Blocks& g, const engine::Blocks& dx,
                        bool accumulate = false, StructureSums* sums = nullptr, const engine::Blocks& x = {},
                        engine::Columns columns = {}) const;
  /// dS_i (+)= the gradient of S_i from g and x. dS without data: only the sums are wanted.
  void weight_gradient(int64_t rows, const engine::Blocks& g, engine::Pieces x, const engine::Blocks& dS,
                       bool accumulate = false, StructureSums* sums = nullptr) const;
  /// The sums that neither gives, from products that apply() kept, or made again where there are none.
  void sum_products(int64_t rows, const engine::Blocks& g, engine::Pieces x, const float* products,
                    StructureSums& sums) const;
  /// The gradient of the call's A, float32 or float64.
  at::Tensor structure_gradient(const StructureSums& sums) const;

  /// A tensor as (rows, width) in the type computed in, last axis of stride 1.
  at::Tensor matrix(const at::Tensor& t, int64_t rows, int64_t width) const;
  /// Components side by side in the rows of a matrix, `width` values each.
  static engine::Blocks blocks_of_rows(const at::Tensor& matrix, int64_t width);
  /// One component after the other: (n, rows, columns).
  static engine::Blocks blocks_of(const at::Tensor& t);

 private:
  engine::Pass pass(int64_t M, int64_t N, int64_t K) const;
  engine::Pass forward_pass(int64_t rows, engine::Pieces x, const engine::Pieces& S) const;
  engine::Pass transposed_pass(int64_t rows, engine::Pieces g, const engine::Pieces& S) const;
  engine::Pass weight_pass(int64_t rows, engine::Pieces g, engine::Pieces x) const;
  /// The gradient of S sums over rows, along which one of its operands is transposed: g, or where x is much
  /// narrower x, and then the result.
  bool transposes_inputs(int64_t rows, engine::Pieces x, bool accumulate) const;
  void weight_gradient_across(int64_t rows, const engine::Blocks& g, const engine::Piece& x,
                              const engine::Blocks& dS, StructureSums* sums) const;
  engine::Stream stream() const;
  /// y (+)= H x + bias, or H^T x (`transposed`), into plain rows; x is first put side by side where it must
  /// be.
  void apply_dense(int64_t rows, engine::Pieces x, int64_t width, bool transposed, const float* bias,
                   float* y, int64_t y_row, bool accumulate) const;

  Versions versions_;  // before anything is read
  Call call_;
  at::Tensor S_;  // as it is read: (n, m, p), contiguous
  int64_t n_, m_, p_;
  at::ScalarType type_, multiplied_in_ = at::kFloat;
  bool on_engine_ = false;
  bool is_H_ = false;  // S is: the real layer
  bool packs_H_ = false;
  bool worth_packing_ = false;
  int64_t together_ = 0;                            // columns of S that are packed beside each other
  bool keeps_unmixed_ = false;                      // weights of the factored way, for applications to inputs
  std::shared_ptr<const structure::Factors> held_;  // followed beside A
  std::shared_ptr<const Mixtures> mixtures_;
  const engine::Mixings* factors_ = nullptr;
  at::Tensor weight_;  // the S that was given: prepared forms stand beside it
  at::Tensor packed_, packed_transposed_, H_;
};

}  // namespace quatrain::ops
