#include "quatrain/nn/init.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <numbers>

#include "nn/check.h"
#include "support/enum_names.h"

namespace quatrain::nn {

namespace {

constexpr EnumNames<Initialiser, 7> kInitialisers{{{Initialiser::glorot, "glorot"},
                                                   {Initialiser::he, "he"},
                                                   {Initialiser::lecun, "lecun"},
                                                   {Initialiser::polar, "polar"},
                                                   {Initialiser::polar_he, "polar_he"},
                                                   {Initialiser::polar_paper, "polar_paper"},
                                                   {Initialiser::polar_paper_he, "polar_paper_he"}}};

/// The variance that the entries of H are to have: Glorot's or He's of the real layer.
double wanted_variance(const at::Tensor& S, bool he, int64_t maps) {
  const Fans fans = real_fans(S, maps);
  return he ? 2 / fans.in : 2 / (fans.in + fans.out);
}

void check_structure(const char* function, const at::Tensor& A) {
  require(A.dim() == 3 && A.size(0) >= 1 && A.size(1) == A.size(0) && A.size(2) == A.size(0), function,
          ": A must be (n, n, n), got ", A.sizes());
}

void uniform_with_variance_(const at::Tensor& S, double variance, std::optional<at::Generator> generator) {
  const at::NoGradGuard no_grad;
  const double bound = std::sqrt(3 * variance);
  S.uniform_(-bound, bound, std::move(generator));
}

}  // namespace

const char* name(Initialiser initialiser) {
  return name_of(kInitialisers, initialiser);
}

Initialiser parse_initialiser(std::string_view text) {
  return parse_name(kInitialisers, "initialiser", text);
}

Fans real_fans(const at::Tensor& S, int64_t maps) {
  require(S.dim() >= 3, "init: a weight has the shape (n, out/n, in/n, kernel...), got ", S.sizes());
  require(maps >= 1, "init: maps must be at least 1, got ", maps);
  double field = 1;
  for (int64_t axis = 3; axis < S.dim(); ++axis) field *= static_cast<double>(S.size(axis));
  const double n = static_cast<double>(S.size(0));
  return {n * static_cast<double>(S.size(2)) * field,
          n * static_cast<double>(S.size(1)) * field / static_cast<double>(maps)};
}

void glorot_(const at::Tensor& S, double power, std::optional<at::Generator> generator, int64_t maps) {
  uniform_with_variance_(S, wanted_variance(S, false, maps) / power, std::move(generator));
}

void he_(const at::Tensor& S, double power, std::optional<at::Generator> generator, int64_t maps) {
  uniform_with_variance_(S, wanted_variance(S, true, maps) / power, std::move(generator));
}

void lecun_(const at::Tensor& S, double power, std::optional<at::Generator> generator) {
  const at::NoGradGuard no_grad;
  S.normal_(0, 1 / std::sqrt(real_fans(S).in * power), std::move(generator));
}

void polar_(const at::Tensor& S, bool he, double power, std::optional<at::Generator> generator,
            int64_t maps) {
  const at::NoGradGuard no_grad;
  S.normal_(0, std::sqrt(wanted_variance(S, he, maps) / power), std::move(generator));
}

void polar_paper_(const at::Tensor& S, bool he, std::optional<at::Generator> generator, int64_t maps) {
  const at::NoGradGuard no_grad;
  const Fans fans = real_fans(S, maps);
  const double n = static_cast<double>(S.size(0));
  const double sigma = 1 / std::sqrt(2 * (he ? fans.in : fans.in + fans.out) / n);
  const at::Tensor phi = at::empty_like(S[0]).uniform_(-sigma, sigma, generator);
  if (S.size(0) == 1) {
    S[0].copy_(phi);
    return;
  }
  const at::Tensor t = at::empty_like(S[0]).uniform_(-std::numbers::pi, std::numbers::pi, generator);
  at::Tensor axis = at::empty_like(S.slice(0, 1)).uniform_(0, 1, generator);
  axis = axis / axis.norm(2, at::IntArrayRef{0}, /*keepdim=*/true);
  S[0].copy_(phi * t.cos());
  S.slice(0, 1).copy_(phi * t.sin() * axis);
}

void initialise_weight_(const at::Tensor& S, Initialiser initialiser, double power,
                        std::optional<at::Generator> generator, int64_t maps) {
  switch (initialiser) {
    case Initialiser::glorot:
      return glorot_(S, power, std::move(generator), maps);
    case Initialiser::he:
      return he_(S, power, std::move(generator), maps);
    case Initialiser::lecun:
      return lecun_(S, power, std::move(generator));
    case Initialiser::polar:
      return polar_(S, false, power, std::move(generator), maps);
    case Initialiser::polar_he:
      return polar_(S, true, power, std::move(generator), maps);
    case Initialiser::polar_paper:
      return polar_paper_(S, false, std::move(generator), maps);
    case Initialiser::polar_paper_he:
      return polar_paper_(S, true, std::move(generator), maps);
  }
}

void random_structure_(const at::Tensor& A, std::optional<at::Generator> generator) {
  check_structure("random_structure_", A);
  const at::NoGradGuard no_grad;
  A.normal_(0, 1, std::move(generator));
  A.div_(A.norm(2, at::IntArrayRef{0}, /*keepdim=*/true));
}

void identity_structure_(const at::Tensor& A) {
  check_structure("identity_structure_", A);
  const at::NoGradGuard no_grad;
  A.zero_();
  A[0].fill_diagonal_(1);
}

void table_structure_(const at::Tensor& A, std::string_view algebra) {
  const at::NoGradGuard no_grad;
  const algebra::Algebra& known = algebra::get(algebra);
  require(A.dim() == 3 && A.size(0) == known.n() && A.size(1) == known.n() && A.size(2) == known.n(),
          "table_structure_: A must be (n, n, n) with n = ", known.n(), " for '", known.name(), "', got ",
          A.sizes());
  A.copy_(torch::tensor(known.table(), at::kDouble).view_as(A));
}

void initialise_structure_(const at::Tensor& A, const algebra::Spec& spec,
                           std::optional<at::Generator> generator) {
  check_structure("initialise_structure_", A);
  require(A.size(0) == spec.n, "initialise_structure_: A must be (n, n, n) with n = ", spec.n, " for ",
          spec.text(), ", got ", A.sizes());
  switch (spec.start) {
    case algebra::Spec::Start::random:
      return random_structure_(A, std::move(generator));
    case algebra::Spec::Start::identity:
      return identity_structure_(A);
    case algebra::Spec::Start::table:
      return table_structure_(A, spec.name);
  }
}

void initialise_factors_(const at::Tensor& factors, const algebra::Spec& spec,
                         std::optional<at::Generator> generator) {
  const at::NoGradGuard no_grad;
  const int64_t n = spec.n;
  require(factors.dim() == 3 && factors.size(0) == 3 && factors.size(1) == n,
          "initialise_factors_: factors must be (3, n, R) with n = ", n, ", got ", factors.sizes());
  factors.normal_(0, 1, std::move(generator));
  at::Tensor start;  // (3, n, R), R at most that of the parameter
  switch (spec.start) {
    case algebra::Spec::Start::random:
      factors.mul_(std::pow(factors_power(factors), -1.0 / 6));
      return;
    case algebra::Spec::Start::identity:
      start = at::eye(n, at::kDouble).repeat({3, 1, 1});
      start[0].zero_();
      start[0][0].fill_(1);
      break;
    case algebra::Spec::Start::table: {
      const algebra::Factors& f = algebra::get(spec.name).factors();
      start = at::stack({torch::tensor(f.U, at::kDouble), torch::tensor(f.V, at::kDouble),
                         torch::tensor(f.W, at::kDouble)})
                  .view({3, n, f.rank});
    }
  }
  require(start.size(2) <= factors.size(2), "initialise_factors_: ", spec.text(), " starts at rank ",
          start.size(2), ", more than the factors' R = ", factors.size(2));
  factors[2].zero_();
  factors.slice(2, 0, start.size(2)).copy_(start);
}

void initialise_gate_biases_(const at::Tensor& bias, int64_t n, ops::Cell cell, double forget_bias,
                             int64_t chrono, std::optional<at::Generator> generator) {
  const int64_t gates = ops::gates(cell);
  require(n >= 1 && bias.dim() == 1 && bias.size(0) % (n * gates) == 0,
          "initialise_gate_biases_: bias must have a multiple of n * gates = ", n * gates, " values, got ",
          bias.sizes());
  require(chrono == 0 || (chrono >= 3 && gates > 1),
          "initialise_gate_biases_: chrono is a number of steps from 3 on, for cells with gates, or 0 for "
          "none, got ",
          chrono, " for ", ops::name(cell));
  require(forget_bias == 0 || (ops::has_memory(cell) && chrono == 0),
          "initialise_gate_biases_: forget_bias is of an lstm without chrono, got ", forget_bias, " for ",
          ops::name(cell), " with chrono = ", chrono, " (leave it 0)");
  const at::NoGradGuard no_grad;
  bias.zero_();
  if (gates == 1) return;
  const at::Tensor of_gates = bias.view({n, gates, -1});
  at::Tensor keeps = of_gates.select(1, 1);  // the state: f of an lstm, z of a gru
  if (ops::has_memory(cell)) keeps.fill_(forget_bias);
  if (chrono == 0) return;
  // In float32 also for float16, which does not hold such numbers.
  const at::Tensor u = torch::empty(keeps.sizes(), keeps.options().dtype(torch::kFloat).requires_grad(false));
  keeps.copy_(u.uniform_(1, static_cast<double>(chrono - 1), std::move(generator)).log_());
  if (ops::has_memory(cell)) of_gates.select(1, 0).copy_(keeps.neg());
}

double structure_power(const at::Tensor& A) {
  check_structure("structure_power", A);
  return A.detach().to(at::kDouble).square().sum().item<double>() /
         static_cast<double>(A.size(0) * A.size(0));
}

double factors_power(const at::Tensor& factors) {
  const at::Tensor f = factors.detach().to(at::kDouble);
  // |A|^2 = sum_r,s of the products of the three Gram matrices.
  const double n = static_cast<double>(f.size(1));
  return at::bmm(f.transpose(1, 2), f).prod(0).sum().item<double>() / (n * n);
}

double structure_power(std::string_view algebra) {
  const algebra::Algebra& known = algebra::get(algebra);
  double sum = 0;
  for (const double value : known.table()) sum += value * value;
  return sum / (known.n() * known.n());
}

}  // namespace quatrain::nn
