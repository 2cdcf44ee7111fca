// Algebras as operators: names in, numbers out.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "quatrain/algebra.h"

namespace quatrain::bindings {

namespace {

at::Tensor tensor_of(const std::vector<double>& values, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor t = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  return {t.const_data_ptr<double>(), t.const_data_ptr<double>() + t.numel()};
}

at::Tensor table(std::string_view name) {
  const algebra::Algebra& known = algebra::get(name);
  return tensor_of(known.table(), {known.n(), known.n(), known.n()});
}

std::vector<at::Tensor> factors(std::string_view name) {
  const algebra::Factors& known = algebra::get(name).factors();
  const std::array<int64_t, 2> sizes{known.n, known.rank};
  return {tensor_of(known.U, sizes), tensor_of(known.V, sizes), tensor_of(known.W, sizes)};
}

/// name, n, whether the factors are fast, the hash.
std::tuple<std::string, int64_t, bool, std::string> describe(std::string_view name) {
  const algebra::Algebra& known = algebra::get(name);
  return {known.name(), known.n(), known.has_fast_factors(), known.hash()};
}

/// In the order of algebra::Properties.
std::tuple<bool, bool, bool, bool, bool, bool> properties(std::string_view name) {
  const algebra::Properties& p = algebra::get(name).properties();
  return {p.unital, p.commutative, p.associative, p.alternative, p.division, p.norm_multiplicative};
}

std::vector<double> conjugation(std::string_view name) {
  return algebra::get(name).conjugation();
}

void add(std::string_view name, const at::Tensor& table, at::TensorList factors,
         c10::ArrayRef<double> conjugation) {
  TORCH_CHECK_VALUE(table.dim() == 3 && table.size(1) == table.size(0) && table.size(2) == table.size(0) &&
                        table.size(0) <= 64,
                    "algebra.add: the table must have the shape (n, n, n) with n up to 64, got ",
                    table.sizes());
  const int n = static_cast<int>(table.size(0));
  std::optional<algebra::Factors> given;
  if (!factors.empty()) {
    TORCH_CHECK_VALUE(factors.size() == 3, "algebra.add: factors are U, V and W, got ", factors.size(),
                      " tensors");
    for (const at::Tensor& factor : factors)
      TORCH_CHECK_VALUE(factor.dim() == 2 && factor.size(0) == n && factor.size(1) == factors[0].size(1),
                        "algebra.add: each factor must have the shape (n, R) with n = ", n,
                        ", one R for all, got ", factor.sizes());
    given = algebra::Factors{n, static_cast<int>(factors[0].size(1)), values_of(factors[0]),
                             values_of(factors[1]), values_of(factors[2])};
  }
  algebra::add(std::string(name), n, values_of(table), std::move(given), conjugation.vec());
}

std::string add_from_file(std::string_view path) {
  return algebra::add_from_file(std::string(path)).name();
}

/// n, learned, weighted, start, name, the notation in its usual form, and the rank of trained factors.
std::tuple<int64_t, bool, bool, std::string, std::string, std::string, int64_t> parse(std::string_view text) {
  const algebra::Spec spec = algebra::Spec::parse(text);
  const char* start = spec.start == algebra::Spec::Start::random     ? "random"
                      : spec.start == algebra::Spec::Start::identity ? "identity"
                                                                     : "table";
  return {spec.n, spec.learned, spec.weighted, start, spec.name, spec.text(), spec.trained_rank};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("algebra_names() -> str[]", [] { return algebra::names(); });
  m.def("algebra_describe(str name) -> (str, int, bool, str)", &describe);
  m.def("algebra_properties(str name) -> (bool, bool, bool, bool, bool, bool)", &properties);
  m.def("algebra_conjugation(str name) -> float[]", &conjugation);
  m.def("algebra_table(str name) -> Tensor", &table);
  m.def("algebra_factors(str name) -> Tensor[]", &factors);
  m.def("algebra_add(str name, Tensor table, Tensor[] factors, float[] conjugation) -> ()", &add);
  m.def("algebra_add_from_file(str path) -> str", &add_from_file);
  m.def("algebra_parse(str text) -> (int, bool, bool, str, str, str, int)", &parse);
}

}  // namespace quatrain::bindings
