#include "quatrain/nn/weight.h"

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstring>

#include "nn/check.h"
#include "ops/map/summands.h"
#include "ops/structure/epsilon.h"

namespace quatrain::nn {

namespace {

// The real layer has no structure tensor to learn.
bool learns_structure(const AlgebraSpec& spec) {
  return spec.learned && spec.n > 1;
}

// phm(1) is the real layer, whatever its start.
std::string fixed_name(const AlgebraSpec& spec) {
  return spec.learned ? "real" : spec.name;
}

// In every forward call of a layer with factors, so without a copy: versions do not tell of all writes.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.device() != b.device() || a.sizes() != b.sizes()) return false;
  if (!a.device().is_cpu() || !a.is_contiguous()) return at::equal(a, b);
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Whether A is `before` in another type: rounded.
bool is_rounded(const at::Tensor& A, const at::Tensor& before) {
  const at::Tensor then = before.to(at::kCPU, at::kDouble);
  const at::Tensor moved = (A.to(at::kCPU, at::kDouble) - then).abs().max();
  return moved.item<double>() <= 2 * ops::epsilon(A.scalar_type()) * then.abs().max().item<double>();
}

}  // namespace

void HypercomplexWeight::make(torch::nn::Module& layer, WeightOptions options) {
  made_ = std::move(options);
  const AlgebraSpec& spec = made_.algebra;
  const int64_t n = spec.n;
  // Embeddings, attention, files and conversions take n = 1 for the real numbers.
  require(n > 1 || algebra::get(fixed_name(spec)).table(0, 0, 0) == 1,
          "algebra: a layer with n = 1 is the real one, whose table is 1, got ", spec.name,
          " with another table (take real; its weights take up the factor)");
  const auto parameter = [&](const char* part, at::IntArrayRef sizes) {
    return layer.register_parameter(part + made_.suffix, torch::empty(sizes));
  };
  A = factors = w = at::Tensor();
  if (learns_structure(spec)) {
    if (spec.trained_rank > 0)
      factors = parameter("factors", {3, n, spec.trained_rank});
    else
      A = parameter("A", {n, n, n});
    if (spec.weighted) w = parameter("w", {n});
  }
  std::vector<int64_t> sizes{n, made_.out_features / n, made_.in_features / n};
  if (made_.inputs_first) std::swap(sizes[1], sizes[2]);
  sizes.insert(sizes.end(), made_.kernel.begin(), made_.kernel.end());
  S = parameter(made_.name.c_str(), sizes);
  draw();
}

void HypercomplexWeight::draw() {
  const at::NoGradGuard no_grad;
  if (A.defined()) initialise_structure_(A, spec());
  if (factors.defined()) initialise_factors_(factors, spec());
  if (w.defined()) w.fill_(1);
  const double power = A.defined()         ? structure_power(A)
                       : factors.defined() ? factors_power(factors)
                                           : structure_power(fixed_name(spec()));
  initialise_weight_(outputs_first(), made_.initialiser, power, {}, made_.maps);
}

// S as (n, k/n, d/n, kernel...), a view.
at::Tensor HypercomplexWeight::outputs_first() const {
  return made_.inputs_first ? S.transpose(1, 2) : S;
}

std::vector<HypercomplexWeight::Part> HypercomplexWeight::parts() const {
  std::vector<Part> result;
  const auto add = [&](const char* part, const at::Tensor& value) {
    if (value.defined()) result.push_back({part + made_.suffix, value});
  };
  add("A", A);
  add("factors", factors);
  add("w", w);
  result.push_back({key(), S, made_.decays});
  return result;
}

HypercomplexWeight::Operands HypercomplexWeight::operands(bool training) const {
  if (!A.defined()) return {S, product(), !training};
  Operands result{S, {"learned", A, {}}, !training};
  // w_i scales A_i (x) S_i: taken on S, A itself is what the operator sees, whose factors can follow it.
  if (w.defined()) result.S = ops::weighted_summands(S, w, result.constant);
  if (!training && fits(A)) result.product.factors = held_->factors;
  return result;
}

ops::Product HypercomplexWeight::product() const {
  if (factors.defined()) return {"factored", factors, {}};
  if (!A.defined()) return {fixed_name(spec()), {}, {}};
  return {"learned", w.defined() ? w.view({-1, 1, 1}) * A : A, {}};
}

at::Tensor HypercomplexWeight::matrix() const {
  const at::Tensor blocks = outputs_first();
  return ops::materialise(blocks.dim() > 3 ? blocks.flatten(2) : blocks, product());
}

ops::Decomposition HypercomplexWeight::find_factors(const ops::DecomposeOptions& decompose) {
  TORCH_CHECK_VALUE(A.defined(), "find_factors: A must be learned, got algebra = ", spec().text());
  const at::NoGradGuard no_grad;
  const at::Tensor structure = A.detach().clone(at::MemoryFormat::Contiguous);
  ops::Decomposition found = ops::decompose(structure, decompose);
  held_ = found.sound ? std::make_shared<Held>(Held{structure, found.factors}) : nullptr;
  drop_prepared();
  return found;
}

bool HypercomplexWeight::factorize(const ops::DecomposeOptions& decompose) {
  return !A.defined() || find_factors(decompose).sound;
}

bool HypercomplexWeight::has_factors() const {
  return A.defined() && fits(A);
}

bool HypercomplexWeight::fits(const at::Tensor& structure) const {
  return held_ && same_bits(structure, held_->A);
}

double HypercomplexWeight::set_nearest(const at::Tensor& H) {
  const at::NoGradGuard no_grad;
  const ops::Nearest found = ops::nearest(H, spec().text());
  outputs_first().copy_(found.S.view(outputs_first().sizes()));
  if (A.defined()) A.copy_(found.A);
  if (w.defined()) w.fill_(1);
  drop_prepared();
  return found.error;
}

void HypercomplexWeight::drop_prepared() const {
  ops::drop_prepared(S);
}

void HypercomplexWeight::take_state(const HypercomplexWeight& other) {
  if (A.defined()) ops::set_structure_state(A, ops::structure_state(other.A));
  held_ = other.has_factors() ? other.held_ : nullptr;
  after_move();
}

void HypercomplexWeight::before_move() {
  if (!has_factors()) held_ = nullptr;
}

void HypercomplexWeight::after_move() {
  drop_prepared();
  if (!held_) return;
  const at::NoGradGuard no_grad;
  const at::Tensor structure = A.detach();
  if (same_bits(structure, held_->A)) return;
  // In a finer type an A that was rounded once has digits that its factors do not have.
  const bool finer = ops::epsilon(structure.scalar_type()) < ops::epsilon(held_->A.scalar_type());
  if (!is_rounded(structure, held_->A) || (held_->rounded && finer)) {
    held_ = nullptr;
    return;
  }
  const bool rounded =
      held_->rounded || !structure.to(at::kCPU, at::kDouble).equal(held_->A.to(at::kCPU, at::kDouble));
  std::vector<at::Tensor> moved;
  for (const at::Tensor& factor : held_->factors) moved.push_back(factor.to(structure.device()));
  held_ =
      std::make_shared<Held>(Held{structure.clone(at::MemoryFormat::Contiguous), std::move(moved), rounded});
}

}  // namespace quatrain::nn
