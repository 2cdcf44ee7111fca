#include "quatrain/nn/linear.h"

#include <torch/torch.h>

#include "nn/check.h"

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

}  // namespace

LinearImpl::LinearImpl(LinearOptions options) : options(std::move(options)) {
  const int64_t n = this->options.algebra().n;
  require_divisible("linear", "in_features", this->options.in_features(), n, "n");
  require_divisible("linear", "out_features", this->options.out_features(), n, "n");
  LinearImpl::reset();
}

void LinearImpl::reset() {
  const AlgebraSpec& spec = options.algebra();
  const int64_t n = spec.n;
  if (learns_structure(spec)) {
    if (spec.trained_rank > 0)
      factors = register_parameter("factors", torch::empty({3, n, spec.trained_rank}));
    else
      A = register_parameter("A", torch::empty({n, n, n}));
    if (spec.weighted) w = register_parameter("w", torch::empty({n}));
  }
  S = register_parameter("S", torch::empty({n, options.out_features() / n, options.in_features() / n}));
  if (options.bias()) bias = register_parameter("bias", torch::empty({options.out_features()}));
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  if (A.defined()) initialise_structure_(A, options.algebra());
  if (factors.defined()) initialise_factors_(factors, options.algebra());
  if (w.defined()) w.fill_(1);
  const double power = A.defined()         ? structure_power(A)
                       : factors.defined() ? factors_power(factors)
                                           : structure_power(fixed_name(options.algebra()));
  initialise_weight_(S, options.initialiser(), power);
  if (bias.defined()) bias.zero_();
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Linear(" << options.in_features() << " -> " << options.out_features()
         << ", algebra=" << options.algebra().text() << ", bias=" << (options.bias() ? "true" : "false")
         << ")";
}

std::shared_ptr<torch::nn::Module> LinearImpl::clone(const std::optional<torch::Device>& device) const {
  auto copy = torch::nn::Cloneable<LinearImpl>::clone(device);
  auto& layer = static_cast<LinearImpl&>(*copy);
  if (A.defined()) ops::set_structure_state(layer.A, ops::structure_state(A));
  Factored& held = layer.factored_;
  const auto deep = [&](const at::Tensor& t) {
    return device ? t.to(*device, t.scalar_type(), false, true) : t.clone();
  };
  if (held.A.defined()) held.A = deep(held.A);
  for (at::Tensor& factor : held.factors) factor = deep(factor);
  return copy;
}

at::Tensor LinearImpl::forward(const at::Tensor& x) {
  ops::Product map = product();
  if (is_training() && w.defined()) {
    // w_i scales A_i (x) S_i: taken on S, A itself is what the operator sees, and can follow from step to
    // step.
    map.A = A;
    return ops::linear(x, w.view({-1, 1, 1}) * S, bias, map, options.way());
  }
  // WKP's product w A is a new tensor in every call: nothing that was prepared from it could be found again.
  const bool constant = !is_training() && (!w.defined() || map.A.is_same(factored_.A));
  return ops::linear(x, S, bias, map, options.way(), std::nullopt, constant);
}

at::Tensor LinearImpl::matrix() const {
  return ops::materialise(S, product());
}

at::Tensor LinearImpl::effective_structure() const {
  return w.defined() ? w.view({-1, 1, 1}) * A : A;
}

ops::Product LinearImpl::product() const {
  ops::Product map;
  if (factors.defined()) {
    map.algebra = "factored";
    map.A = factors;
    return map;
  }
  if (!A.defined()) {
    map.algebra = fixed_name(options.algebra());
    return map;
  }
  map.algebra = "learned";
  map.A = effective_structure();
  if (!is_training() && fits(map.A)) {
    map.factors = factored_.factors;
    if (w.defined() && !map.A.requires_grad()) map.A = factored_.A;
  }
  return map;
}

ops::Decomposition LinearImpl::find_factors(const ops::DecomposeOptions& decompose) {
  TORCH_CHECK(A.defined(),
              "linear: factors are found of a learned A, got algebra = ", options.algebra().text());
  const at::NoGradGuard no_grad;
  const at::Tensor structure = effective_structure().to(at::kDouble).clone();
  ops::Decomposition found = ops::decompose(structure, decompose);
  factored_ = found.sound ? Factored{structure, found.factors} : Factored{};
  ops::drop_prepared(S);
  return found;
}

bool LinearImpl::factorize(const ops::DecomposeOptions& decompose) {
  return !A.defined() || find_factors(decompose).sound;
}

bool LinearImpl::has_factors() const {
  return A.defined() && fits(effective_structure());
}

bool LinearImpl::fits(const at::Tensor& structure) const {
  // Compared where the values are at hand, in every call: versions do not tell of all writes.
  return !factored_.factors.empty() && ops::structure_fits(structure, factored_.A);
}

void LinearImpl::train(bool on) {
  Module::train(on);
  ops::drop_prepared(S);
}

void LinearImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  to(device, non_blocking);
  to(dtype, non_blocking);
}

void LinearImpl::to(torch::Dtype dtype, bool non_blocking) {
  Module::to(dtype, non_blocking);
  ops::drop_prepared(S);
}

void LinearImpl::to(torch::Device device, bool non_blocking) {
  Module::to(device, non_blocking);
  if (factored_.A.defined()) factored_.A = factored_.A.to(device);
  for (at::Tensor& factor : factored_.factors) factor = factor.to(device);
  ops::drop_prepared(S);
}

void LinearImpl::load(torch::serialize::InputArchive& archive) {
  Module::load(archive);
  ops::drop_prepared(S);
}

}  // namespace quatrain::nn
