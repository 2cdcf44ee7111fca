#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "quatrain/algebra.h"
#include "quatrain/ops.h"

/// The one reference of all products: the table expanded to the real matrix by plain loops, in float64.
namespace quatrain::test {

inline at::Tensor table_of(const std::string& algebra) {
  const auto& a = algebra::get(algebra);
  const int64_t n = a.n();
  return torch::from_blob(const_cast<double*>(a.table().data()), {n, n, n}, torch::kDouble).clone();
}

/// H[a m + p, b q + c] = sum_i A[i, a, b] S[i, p, c].
inline at::Tensor expanded(const at::Tensor& A, const at::Tensor& S) {
  const at::Tensor a = A.to(torch::kDouble).contiguous(), s = S.to(torch::kDouble).contiguous();
  const int64_t n = s.size(0), m = s.size(1), q = s.size(2);
  at::Tensor H = torch::zeros({n * m, n * q}, torch::kDouble);
  const auto A_ = a.accessor<double, 3>();
  const auto S_ = s.accessor<double, 3>();
  auto H_ = H.accessor<double, 2>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < n; ++c) {
        const double value = A_[i][r][c];
        if (value == 0) continue;
        for (int64_t p = 0; p < m; ++p)
          for (int64_t t = 0; t < q; ++t) H_[r * m + p][c * q + t] += value * S_[i][p][t];
      }
  return H;
}

inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const double scale = expected.to(torch::kDouble).norm().item<double>();
  const double difference = (actual.to(torch::kDouble) - expected.to(torch::kDouble)).norm().item<double>();
  return scale > 0 ? difference / scale : difference;
}

inline const std::vector<ops::Way>& all_ways() {
  static const std::vector<ops::Way> ways{ops::Way::factored, ops::Way::mixed, ops::Way::materialised};
  return ways;
}

}  // namespace quatrain::test
