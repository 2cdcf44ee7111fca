// What stands beside a layer's parameters: its real matrix, the factors of a learned structure tensor, what
// is prepared and followed.

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

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

/// {U, V, W} or nothing, the residual, the condition.
std::tuple<std::vector<at::Tensor>, double, double> decompose(const at::Tensor& A, int64_t rank,
                                                              double tolerance, int64_t starts,
                                                              int64_t seed) {
  const ops::Decomposition found = ops::decompose(A, {rank, tolerance, starts, static_cast<uint64_t>(seed)});
  return {found.sound ? found.factors : std::vector<at::Tensor>{}, found.residual, found.condition};
}

/// True where A is, up to rounding in its type, what `made_for` was: the rule of nn::Linear for its factors.
bool structure_fits(const at::Tensor& A, const at::Tensor& made_for) {
  if (A.sizes() != made_for.sizes() || A.device() != made_for.device()) return false;
  const double epsilon = A.scalar_type() == at::kDouble     ? 0x1p-52
                         : A.scalar_type() == at::kHalf     ? 0x1p-10
                         : A.scalar_type() == at::kBFloat16 ? 0x1p-7
                                                            : 0x1p-23;
  const at::Tensor now = A.detach().to(at::kCPU, at::kDouble).contiguous(),
                   then = made_for.detach().to(at::kCPU, at::kDouble).contiguous();
  const double *a = now.const_data_ptr<double>(), *b = then.const_data_ptr<double>();
  double scale = 0;
  for (int64_t i = 0; i < then.numel(); ++i) scale = std::max(scale, std::abs(b[i]));
  for (int64_t i = 0; i < now.numel(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 4 * epsilon * scale)) return false;
  return true;
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
      "decompose(Tensor A, int rank=0, float tolerance=1e-06, int starts=6, int seed=0) -> (Tensor[], float, "
      "float)",
      &decompose);
  m.def("structure_fits(Tensor A, Tensor made_for) -> bool", &structure_fits);
  m.def("structure_report(Tensor A) -> int[]", &structure_report);
  m.def("structure_state(Tensor A) -> Tensor[]", &structure_state);
  m.def("set_structure_state(Tensor A, Tensor? state) -> ()", &set_structure_state);
  m.def("prepared_size() -> int[]", &prepared_size);
  m.def("instruction_sets() -> str[]", &ops::instruction_sets);
}

}  // namespace quatrain::bindings
