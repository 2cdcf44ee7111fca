#include "ops/map/call.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include "ops/engine/engine.h"
#include "ops/engine/options.h"
#include "ops/find_algebra.h"

namespace quatrain::ops {

namespace {

constexpr std::string_view kLearned = "learned", kFactored = "factored";

}  // namespace

const algebra::Algebra* Call::fixed(const char* function) const {
  if (learned()) return nullptr;
  if (!known) known = &find_algebra(function, algebra);
  return known;
}

namespace {

/// Each row of a times each row of b: (n n, R).
at::Tensor pairs(const at::Tensor& a, const at::Tensor& b) {
  return (a.unsqueeze(1) * b.unsqueeze(0)).reshape_symint({-1, a.sym_size(1)});
}

}  // namespace

at::Tensor Call::structure() const {
  if (!factored()) return *A;
  const at::Tensor U = factor(0);
  return at::matmul(pairs(U, factor(2)), factor(1).t())
      .reshape_symint({U.sym_size(0), U.sym_size(0), U.sym_size(0)});
}

at::Tensor Call::structure_gradient(const at::Tensor& gradient) const {
  if (!factored()) return gradient;
  const at::Tensor U = factor(0).to(gradient.scalar_type()), V = factor(1).to(gradient.scalar_type()),
                   W = factor(2).to(gradient.scalar_type());
  const auto along = [&](std::initializer_list<int64_t> axes) {
    return gradient.permute(axes).reshape_symint({gradient.sym_size(0), -1});
  };
  return at::stack({at::matmul(along({0, 1, 2}), pairs(W, V)), at::matmul(along({2, 0, 1}), pairs(U, W)),
                    at::matmul(along({1, 0, 2}), pairs(U, V))});
}

int64_t Call::rank() const {
  if (const algebra::Algebra* known = fixed()) return known->factors().rank;
  return factored() ? A->size(2) : factors.empty() ? 0 : factors[0].size(1);
}

at::Tensor Call::factor(int64_t which) const {
  return factored() ? A->select(0, which) : factors[static_cast<size_t>(which)];
}

Call make_call(std::string_view algebra, const std::optional<at::Tensor>& A, at::TensorList factors,
               std::string_view way, std::optional<at::ScalarType> dtype, bool constant) {
  TORCH_CHECK(factors.empty() || factors.size() == 3, "factors must be U, V and W, or none, got ",
              factors.size(), " tensors");
  Call call;
  call.algebra = std::string(algebra);
  if (A && A->defined()) call.A = A;
  call.factors = factors.vec();
  call.way = requested_way(parse_way(way));
  call.dtype = dtype;
  call.constant = constant;
  return call;
}

Call make_call(const Product& product) {
  return make_call(product.algebra, product.A.defined() ? std::optional(product.A) : std::nullopt,
                   product.factors);
}

void check_values(const char* function, const char* argument, const at::Tensor& t) {
  TORCH_CHECK(at::isFloatingType(t.scalar_type()), function, ": ", argument, " must be floating point, got ",
              t.scalar_type());
  TORCH_CHECK(t.layout() == at::kStrided, function, ": ", argument, " must be a dense tensor, got layout ",
              t.layout(), "; to_dense() makes one");
}

void check_blocks(const char* function, const char* argument, const at::Tensor& S, const Call& call) {
  TORCH_CHECK(call.learned() == (call.algebra == kLearned || call.algebra == kFactored), function,
              ": A goes with algebra = 'learned' or 'factored', got algebra = '", call.algebra, "' ",
              call.learned() ? "with" : "without", " A");
  check_values(function, argument, S);
  TORCH_CHECK(S.dim() >= 1, function, ": ", argument,
              " must have n blocks along its first axis, got no axis");
  TORCH_CHECK(S.sym_size(0) >= 1 && S.sym_size(0) <= engine::kMaxComponents, function, ": ", argument,
              " must have 1 to ", engine::kMaxComponents, " blocks, got ", S.sym_size(0));
  TORCH_CHECK(!call.dtype || at::isFloatingType(*call.dtype), function,
              ": dtype must be floating point, got ", *call.dtype);
  if (!call.learned()) {
    TORCH_CHECK(call.factors.empty(), function, ": factors go with a learned A; '", call.algebra,
                "' has its own");
    const int64_t n = call.fixed(function)->n();
    TORCH_CHECK(S.sym_size(0) == n, function, ": ", argument, " must have ", n, " blocks for the algebra '",
                call.algebra, "', got ", S.sym_size(0));
    return;
  }
  const at::Tensor& A = *call.A;
  check_values(function, "A", A);
  if (call.factored()) {
    TORCH_CHECK(A.dim() == 3 && A.sym_size(0) == 3 && A.sym_size(1) == S.sym_size(0) && A.sym_size(2) >= 1,
                function,
                ": with algebra = 'factored' A holds U, V and W and must have the shape (3, n, R) with n = ",
                argument, ".size(0) = ", S.sym_size(0), ", got ", A.sym_sizes());
    TORCH_CHECK(call.factors.empty(), function,
                ": with algebra = 'factored' the factors are A itself; U, V and W are not given beside it");
  } else {
    TORCH_CHECK(A.dim() == 3 && A.sym_size(0) == S.sym_size(0) && A.sym_size(1) == A.sym_size(0) &&
                    A.sym_size(2) == A.sym_size(0),
                function, ": A must have the shape (n, n, n) with n = ", argument,
                ".size(0) = ", S.sym_size(0), ", got ", A.sym_sizes());
  }
  TORCH_CHECK(A.device() == S.device(), function, ": A is on ", A.device(), ", ", argument, " on ",
              S.device(), "; move one");
  for (const at::Tensor& factor : call.factors) {
    check_values(function, "factors", factor);
    TORCH_CHECK(factor.dim() == 2 && factor.sym_size(0) == A.sym_size(0) &&
                    factor.sym_size(1) == call.factors[0].sym_size(1) && factor.sym_size(1) >= 1,
                function, ": each factor must have the shape (n, R), one R for all, got ",
                factor.sym_sizes());
    TORCH_CHECK(factor.device() == S.device(), function, ": the factors are on ", factor.device(), ", ",
                argument, " on ", S.device(), "; move them");
  }
}

void check_weight(const char* function, const at::Tensor& S, const Call& call) {
  TORCH_CHECK(S.dim() == 3, function, ": S must have the shape (n, out_features / n, in_features / n), got ",
              S.sym_sizes());
  check_blocks(function, "S", S, call);
}

}  // namespace quatrain::ops
