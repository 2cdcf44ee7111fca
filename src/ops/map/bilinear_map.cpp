#include "ops/map/bilinear_map.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "ops/engine/dense.h"
#include "ops/engine/expand.h"
#include "ops/engine/options.h"
#include "ops/map/choice.h"
#include "ops/map/rows.h"
#include "ops/memory/recycled.h"

namespace quatrain::ops {

using engine::Mixing;

namespace {

/// Vectors of mixed inputs, n of a row, from which a product with packed weights beats one that gathers its
/// sums from lanes.
constexpr int64_t kPackedVectors = 8;

Blocks transposed(Blocks blocks) {
  blocks.transposed = !blocks.transposed;
  return blocks;
}

}  // namespace

BilinearMap::BilinearMap(const at::Tensor& S, Call call, int64_t rows, at::ScalarType type, Pass pass,
                         Use use)
    : versions_(S, call),
      call_(std::move(call)),
      n_(S.size(0)),
      m_(S.size(1)),
      p_(S.size(2)),
      type_(type),
      weight_(S) {
  Problem problem = make_cpu_problem(S, call_, rows, type);
  problem.prepared = problem.prepared || use.often;
  if (use.on_one_thread) problem.threads = 1;
  if (may_follow(problem, call_)) {
    problem.rank = structure::followed_rank(n_);
    problem.followed = true;
    if (plan(problem, call_.way) == Way::factored) {
      const structure::Search search = search_of(call_);
      // A backward pass runs on what its forward pass ran on; where A trains, that was never eval mode's.
      const bool in_eval = search == structure::Search::never;
      if (pass == Pass::backward || in_eval)
        held_ = structure::find(*call_.A, in_eval || !call_.A->requires_grad());
      if (!held_ && (pass == Pass::forward || search == structure::Search::now))
        held_ = structure::follow(*call_.A, search);
    }
    problem.rank = held_ ? held_->rank : 0;
  }
  call_.way = plan(problem, call_.way);
  if (held_ && call_.way != Way::factored) {
    if (pass == Pass::forward && !call_.constant) structure::count_on_H(*call_.A);
    held_ = nullptr;
  }
  // The composed form prepares weights in another order.
  if (rows == 0) call_.constant = false;
  on_engine_ = problem.engine && (call_.way != Way::materialised || type == at::kFloat);
  if (!on_engine_) return;
  if (problem.packed) multiplied_in_ = at::kBFloat16;
  // Wider weights stay as they are: autocast gives float32 ones, which the kernels read themselves.
  const bool as_it_is = S.scalar_type() == type || (type == at::kBFloat16 && S.scalar_type() == at::kFloat);
  S_ = (as_it_is ? S : S.to(type)).contiguous();
  is_H_ = n_ == 1 && call_.way == Way::materialised && call_.fixed() && call_.fixed()->table(0, 0, 0) == 1;
  together_ = engine::columns_together(problem.rows * n_);
  worth_packing_ = call_.way == Way::mixed && call_.constant && S_.scalar_type() == at::kFloat &&
                   problem.traffic > 0 && problem.rows * n_ >= kPackedVectors;
  packs_H_ = is_H_ && call_.constant && engine::packs_dense(problem.rows, m_, p_);
  if (!held_ && !is_H_) mixtures_ = mixtures(call_);
  if (call_.way != Way::factored) return;
  factors_ = held_ ? held_->mixings.get() : &mixtures_->factors();
  keeps_unmixed_ = S_.scalar_type() == at::kFloat && ops::keeps_unmixed(problem, rows, requested_traffic());
}

bool BilinearMap::rows_stand_alone() const {
  return on_engine_ && type_ == at::kFloat &&
         (way() == Way::mixed || (way() == Way::factored && engine::rows_stand_alone()));
}

void BilinearMap::prepare(bool transposed, bool often) {
  const uint64_t followed = this->followed();
  if (packs_H_ && !transposed) {
    packed_ = prepared(weight_, call_, versions_, {Form::engine, way(), type_, S_.scalar_type()},
                       [&] { return engine::pack_dense(S_[0]); });
    return;
  }
  if (way() == Way::materialised || (way() == Way::mixed && transposed)) {
    if (H_.defined()) return;
    if (is_H_) {
      H_ = S_[0];
      return;
    }
    H_ = prepared(
        weight_, call_, versions_, {Form::engine, Way::materialised, type_, S_.scalar_type(), followed}, [&] {
          const std::vector<int64_t> sizes{n_ * m_, n_ * p_};
          const at::Tensor H = call_.constant ? at::empty(sizes, S_.options()) : recycled_empty(sizes);
          engine::expand(mixtures_->blocks(), n_, m_, p_, S_.const_data_ptr<float>(),
                         H.mutable_data_ptr<float>());
          return H;
        });
  } else if (way() == Way::mixed) {
    if (!often || S_.scalar_type() != at::kFloat) {
      if (S_.is_alias_of(weight_)) prepare_in_place(weight_, call_);
      return;
    }
    Form form{Form::engine, way(), type_, S_.scalar_type()};
    form.geometry = {together_};
    packed_ = prepared(weight_, call_, versions_, form, [&] {
      const at::Tensor fresh = at::empty({S_.numel()}, S_.options());
      engine::pack(stream(), fresh.mutable_data_ptr<float>());
      return fresh;
    });
  } else {
    const engine::Piece S{transposed ? blocks_of(S_) : ops::transposed(blocks_of(S_)), transposed ? p_ : m_};
    engine::Pass pass = transposed ? transposed_pass(1, {}, {&S, 1}) : forward_pass(1, {}, {&S, 1});
    pass.packed_unmixed = !transposed && keeps_unmixed_;
    const auto reader = transposed       ? Form::engine_transposed
                        : keeps_unmixed_ ? Form::engine_unmixed
                                         : Form::engine;
    (transposed ? packed_transposed_ : packed_) =
        prepared(weight_, call_, versions_, {reader, way(), multiplied_in_, S_.scalar_type(), followed}, [&] {
          const at::Tensor fresh = at::empty({packed_bytes(pass)}, S_.options().dtype(at::kByte));
          pack(pass, fresh.mutable_data_ptr());
          return fresh;
        });
  }
}

engine::Pass BilinearMap::pass(int64_t M, int64_t N, int64_t K) const {
  engine::Pass pass;
  pass.M = M, pass.N = N, pass.K = K, pass.n = n_, pass.rank = factors_->rank;
  pass.multiplied_in = multiplied_in_;
  return pass;
}

engine::Pass BilinearMap::forward_pass(int64_t rows, Pieces x, const Pieces& S) const {
  engine::Pass pass = this->pass(rows, m_, p_);
  pass.A = x, pass.left = &factors_->V_in;
  pass.B = S, pass.right = &factors_->U_in;
  pass.out = &factors_->W_out;
  pass.packed = packed_.defined() ? packed_.const_data_ptr() : nullptr;
  pass.packed_unmixed = packed_.defined() && keeps_unmixed_;
  return pass;
}

engine::Pass BilinearMap::transposed_pass(int64_t rows, Pieces g, const Pieces& S) const {
  engine::Pass pass = this->pass(rows, p_, m_);
  pass.A = g, pass.left = &factors_->W_in;
  pass.B = S, pass.right = &factors_->U_in;
  pass.out = &factors_->V_out;
  pass.packed = packed_transposed_.defined() ? packed_transposed_.const_data_ptr() : nullptr;
  return pass;
}

engine::Pass BilinearMap::weight_pass(int64_t rows, Pieces g, Pieces x) const {
  engine::Pass pass = this->pass(m_, p_, rows);
  pass.A = g, pass.left = &factors_->W_in;
  pass.B = x, pass.right = &factors_->V_in;
  pass.out = &factors_->U_out;
  return pass;
}

bool BilinearMap::stores_once(int64_t rows, bool of_S) const {
  if (way() != Way::factored) return false;
  return one_store(of_S ? weight_pass(rows, {}, {}) : transposed_pass(rows, {}, {}));
}

at::ScalarType BilinearMap::result_type(int64_t rows, const Output& output) const {
  if (type_ == at::kFloat || way() != Way::factored) return at::kFloat;
  engine::Pass pass = forward_pass(rows, {}, {});
  pass.accumulate = output.accumulate, pass.epilogue = output.epilogue;
  return one_store(pass) ? type_ : at::kFloat;
}

engine::Stream BilinearMap::stream() const {
  engine::Stream stream;
  stream.n = n_, stream.m = m_, stream.p = p_;
  stream.S = blocks_of(S_), stream.inputs = &mixtures_->rows();
  stream.packed = engine::values_or_null(packed_);
  stream.together = together_;
  return stream;
}

void BilinearMap::apply_dense(int64_t rows, Pieces x, int64_t width, bool transposed, const float* bias,
                              float* y, int64_t y_row, bool accumulate) const {
  const Rows from = plain_rows<Spare::inputs>(x, n_, rows, width);
  if (packs_H_ && !transposed && packed_.defined())
    return engine::multiply_packed(rows, m_, p_, from.data, from.apart, packed_, bias, accumulate, y, y_row);
  TORCH_INTERNAL_ASSERT(H_.defined(), "prepare() comes before H is applied");
  engine::multiply(rows, transposed ? n_ * p_ : n_ * m_, n_ * width, {from.data, from.apart},
                   {H_.const_data_ptr<float>(), n_ * p_, !transposed}, bias, accumulate, y, y_row);
}

void BilinearMap::apply(int64_t rows, Pieces x, const Blocks& y, const Output& output) const {
  const int64_t first = output.columns.begin, columns = output.columns.end_of(m_) - first;
  if (rows == 0 || columns <= 0) return;
  if (way() == Way::factored) {
    const engine::Piece S{transposed(blocks_of(S_)), m_};
    engine::Pass pass = forward_pass(rows, x, {&S, 1});
    pass.C = y, pass.accumulate = output.accumulate, pass.epilogue = output.epilogue;
    pass.products = output.products, pass.columns = output.columns;
    return engine::run(pass);
  }
  const int64_t width = n_ * m_;
  const bool streams = way() == Way::mixed;
  const bool direct = is_plain(y, m_) && !(streams && (output.accumulate || (y.row != width && rows > 1)));
  float* const to = direct ? static_cast<float*>(y.data) : spare<Spare::result>(rows * width);
  const int64_t to_row = direct ? y.row : width;
  // H's product has all columns, which a bias is added to where they belong.
  const bool takes_bias = output.epilogue.only_bias() && (streams || (direct && columns == m_));
  const float* const bias = takes_bias ? output.epilogue.bias : nullptr;
  if (streams) {
    engine::Stream stream = this->stream();
    stream.rows = rows, stream.x = x, stream.y = to;
    stream.bias = bias;
    stream.columns = output.columns;
    engine::run(stream);
  } else {
    apply_dense(rows, x, p_, false, bias, to, to_row, direct && output.accumulate);
  }
  if (!direct) move({to, m_, to_row, false, at::kFloat}, y, n_, rows, first, columns, output.accumulate);
  if (takes_bias || (output.epilogue.only_bias() && !output.epilogue.bias)) return;
  engine::finish_rows(output.epilogue, n_, m_, rows, first, columns, y);
}

bool BilinearMap::sums_structure() const {
  return call_.learned() && (way() == Way::materialised || held_ || call_.factored());
}

BilinearMap::StructureSums BilinearMap::structure_sums() const {
  StructureSums sums;
  const auto each = static_cast<size_t>(n_ * rank());
  for (auto* part : {&sums.U, &sums.V, &sums.W}) part->resize(each);
  if (way() == Way::materialised) sums.A.resize(static_cast<size_t>(n_ * n_ * n_));
  return sums;
}

void BilinearMap::apply_transposed(int64_t rows, const Blocks& g, const Blocks& dx, bool accumulate,
                                   StructureSums* sums, const Blocks& x, engine::Columns columns) const {
  if (rows == 0) return;
  const engine::Piece gradients{g, m_};
  if (way() == Way::factored) {
    const engine::Piece S{blocks_of(S_), p_};
    engine::Pass pass = transposed_pass(rows, {&gradients, 1}, {&S, 1});
    pass.C = dx, pass.accumulate = accumulate, pass.columns = columns;
    if (sums) pass.probe = x, pass.sums = sums->V.data();
    return engine::run(pass);
  }
  if (!dx.data) return;
  const bool direct = is_plain(dx, p_);
  float* const to = direct ? static_cast<float*>(dx.data) : spare<Spare::result>(rows * n_ * p_);
  const int64_t to_row = direct ? dx.row : n_ * p_;
  apply_dense(rows, {&gradients, 1}, m_, true, nullptr, to, to_row, direct && accumulate);
  if (!direct) move({to, p_, to_row, false, at::kFloat}, dx, n_, rows, 0, p_, accumulate);
}

void BilinearMap::weight_gradient(int64_t rows, const Blocks& g, Pieces x, const Blocks& dS, bool accumulate,
                                  StructureSums* sums) const {
  if (rows == 0) return;
  if (way() == Way::factored) {
    if (transposes_inputs(rows, x, accumulate)) return weight_gradient_across(rows, g, x[0], dS, sums);
    const engine::Piece gradients{transposed(g), rows};
    engine::Pass pass = weight_pass(rows, {&gradients, 1}, x);
    pass.C = dS, pass.accumulate = accumulate;
    if (sums) pass.probe = blocks_of(S_), pass.sums = sums->U.data();
    return engine::run(pass);
  }
  const int64_t in = n_ * p_, out = n_ * m_;
  const engine::Piece gradients{g, m_};
  const Rows from = plain_rows<Spare::inputs>(x, n_, rows, p_),
             upstream = plain_rows<Spare::gradients>({&gradients, 1}, n_, rows, m_);
  const at::Tensor dH = recycled_empty({out, in});
  float* const product = dH.mutable_data_ptr<float>();
  engine::multiply(out, in, rows, {upstream.data, upstream.apart, true}, {from.data, from.apart}, nullptr,
                   false, product, in);
  const bool direct = dS.data && !accumulate && dS.dtype == at::kFloat && dS.row == p_ &&
                      (n_ == 1 || dS.component == m_ * p_);
  float* const to = direct    ? static_cast<float*>(dS.data)
                    : dS.data ? spare<Spare::result>(n_ * m_ * p_)
                              : nullptr;
  if (is_H_) {
    if (to) std::copy(product, product + out * in, to);
  } else {
    std::vector<float> dA(sums ? sums->A.size() : 0);
    engine::contract(mixtures_->components(), n_, m_, p_, product, to, S_.const_data_ptr<float>(),
                     sums ? dA.data() : nullptr);
    for (size_t i = 0; i < dA.size(); ++i) sums->A[i] += dA[i];
  }
  if (dS.data && !direct) move({to, m_ * p_, p_, false, at::kFloat}, dS, n_, m_, 0, p_, accumulate);
}

bool BilinearMap::transposes_inputs(int64_t rows, Pieces x, bool accumulate) const {
  // Both matrices of weights that are transposed after all, against what gradients have more than inputs.
  return !accumulate && x.size() == 1 && rows * (m_ - p_) > 4 * m_ * p_;
}

void BilinearMap::weight_gradient_across(int64_t rows, const Blocks& g, const engine::Piece& x,
                                         const Blocks& dS, StructureSums* sums) const {
  const engine::Piece inputs{transposed(x.blocks), rows}, gradients{g, m_};
  engine::Pass pass = this->pass(p_, m_, rows);
  pass.A = {&inputs, 1}, pass.left = &factors_->V_in;
  pass.B = {&gradients, 1}, pass.right = &factors_->W_in;
  pass.out = &factors_->U_out;
  at::Tensor result, S;
  if (dS.data) result = recycled_empty({n_, p_, m_}), pass.C = blocks_of(result);
  if (sums) {
    S = recycled_empty({n_, p_, m_});
    move_across(blocks_of(S_), blocks_of(S), n_, p_, m_);
    pass.probe = blocks_of(S), pass.sums = sums->U.data();
  }
  engine::run(pass);
  if (dS.data) move_across(pass.C, dS, n_, m_, p_);
}

void BilinearMap::sum_products(int64_t rows, const Blocks& g, Pieces x, const float* products,
                               StructureSums& sums) const {
  if (way() != Way::factored || rows == 0) return;
  if (products) return engine::dots(g, n_, products, rank(), rows, m_, sums.W.data());
  const engine::Piece S{transposed(blocks_of(S_)), m_};
  engine::Pass pass = forward_pass(rows, x, {&S, 1});
  pass.probe = g, pass.sums = sums.W.data();
  engine::run(pass);
}

at::Tensor BilinearMap::structure_gradient(const StructureSums& sums) const {
  if (held_) return structure::gradient(*held_, sums.U, sums.V, sums.W);
  const auto floats = at::TensorOptions(at::kFloat);
  if (way() == Way::materialised) {
    const at::Tensor dA = at::empty({n_, n_, n_}, floats);
    std::copy(sums.A.begin(), sums.A.end(), dA.mutable_data_ptr<float>());
    return call_.structure_gradient(dA);
  }
  const at::Tensor dA = at::empty({3, n_, rank()}, floats);
  float* to = dA.mutable_data_ptr<float>();
  for (const auto* part : {&sums.U, &sums.V, &sums.W}) to = std::copy(part->begin(), part->end(), to);
  return dA;
}

at::Tensor BilinearMap::matrix(const at::Tensor& t, int64_t rows, int64_t width) const {
  if (t.dim() == 2 && t.scalar_type() == type_ && (t.stride(1) == 1 || width <= 1)) return t;
  const at::Tensor flat = t.to(type_).reshape({rows, width});
  return flat.stride(1) == 1 || width <= 1 ? flat : flat.contiguous();
}

Blocks BilinearMap::blocks_of_rows(const at::Tensor& matrix, int64_t width) {
  return {const_cast<void*>(matrix.const_data_ptr()), width, matrix.stride(0), false, matrix.scalar_type()};
}

Blocks BilinearMap::blocks_of(const at::Tensor& t) {
  return {const_cast<void*>(t.const_data_ptr()), t.size(1) * t.size(2), t.size(2), false, t.scalar_type()};
}

}  // namespace quatrain::ops
