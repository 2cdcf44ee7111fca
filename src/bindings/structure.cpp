// What stands beside a layer's parameters: its real matrix, the factors of a learned structure tensor, what
// is prepared and followed.

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "quatrain/ops.h"

namespace quatrain::bindings {

namespace {

using Optional = std::optional<at::Tensor>;

ops::Product product_of(std::string_view algebra, const Optional& A, at::TensorList factors = {}) {
  return {std::string(algebra), A.value_or(at::Tensor()), factors.vec()};
}

at::Tensor materialise(const at::Tensor& S, std::string_view algebra, const Optional& A) {
  return ops::materialise(S, product_of(algebra, A));
}

int64_t rank(std::string_view algebra, const Optional& A, at::TensorList factors) {
  return ops::rank(product_of(algebra, A, factors));
}

/// {U, V, W} or nothing, the rank, the residual, the condition.
std::tuple<std::vector<at::Tensor>, int64_t, double, double> decompose(const at::Tensor& A, int64_t rank,
                                                                       double tolerance, int64_t starts,
                                                                       int64_t seed) {
  const ops::Decomposition found = ops::decompose(A, {rank, tolerance, starts, static_cast<uint64_t>(seed)});
  return {found.factors, found.rank, found.residual, found.condition};
}

std::vector<int64_t> structure_report(const at::Tensor& A) {
  const ops::StructureReport report = ops::structure_report(A);
  return {report.rank, report.steps, report.solved, report.on_H};
}

std::vector<at::Tensor> structure_state(const at::Tensor& A) {
  const at::Tensor state = ops::structure_state(A);
  return state.defined() ? std::vector<at::Tensor>{state} : std::vector<at::Tensor>{};
}

void set_structure_state(const at::Tensor& A, const Optional& state) {
  ops::set_structure_state(A, state.value_or(at::Tensor()));
}

std::vector<int64_t> prepared_size() {
  const ops::PreparedSize size = ops::prepared_size();
  return {size.weights, size.bytes};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("materialise(Tensor S, str algebra, Tensor? A=None) -> Tensor", &materialise);
  m.def("rank(str algebra, Tensor? A, Tensor[] factors) -> int", &rank);
  m.def(
      "decompose(Tensor A, int rank=0, float tolerance=1e-06, int starts=6, int seed=0) -> (Tensor[], int, "
      "float, float)",
      &decompose);
  m.def("structure_report(Tensor A) -> int[]", &structure_report);
  m.def("structure_state(Tensor A) -> Tensor[]", &structure_state);
  m.def("set_structure_state(Tensor A, Tensor? state) -> ()", &set_structure_state);
  m.def("prepared_size() -> int[]", &prepared_size);
  m.def("instruction_sets() -> str[]", &ops::instruction_sets);
}

}  // namespace quatrain::bindings
