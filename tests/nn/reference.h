#pragma once

#include <cmath>
#include <string>

#include "ops/reference.h"
#include "quatrain/nn.h"

/// Literal references of layers, in float64 and plain loops.
namespace quatrain::test {

/// The structure tensor that a layer multiplies with in this moment.
inline at::Tensor structure_of(const nn::LinearImpl& layer) {
  if (layer.A.defined()) {
    const at::Tensor A = layer.A.detach().to(torch::kDouble);
    return layer.w.defined() ? layer.w.detach().to(torch::kDouble).view({-1, 1, 1}) * A : A;
  }
  if (layer.factors.defined()) {
    const at::Tensor F = layer.factors.detach().to(torch::kDouble);
    return torch::einsum("ir,br,ar->iab", {F[0], F[1], F[2]});
  }
  return table_of(layer.options.algebra().learned ? "real" : layer.options.algebra().name);
}

/// H x + b with H written out.
inline at::Tensor linear_reference(const nn::LinearImpl& layer, const at::Tensor& x) {
  const at::Tensor H = expanded(structure_of(layer), layer.S.detach());
  const at::Tensor y = torch::matmul(x.detach().to(torch::kDouble), H.t());
  return layer.bias.defined() ? y + layer.bias.detach().to(torch::kDouble) : y;
}

/// Attention weights and result for Q, K, V (L or S, width), heads cut inside components; the table is that
/// of the score maps: n of them, or one where `table` is undefined. `keys`: how many of the keys count.
inline std::pair<at::Tensor, at::Tensor> attention_reference(const at::Tensor& Q, const at::Tensor& K,
                                                             const at::Tensor& V, const at::Tensor& table,
                                                             int64_t n, int64_t heads, int64_t keys) {
  const int64_t L = Q.size(0), S = K.size(0), width = Q.size(1), m = width / n / heads;
  const int64_t maps = table.defined() ? n : 1;
  const auto q = Q.accessor<double, 2>(), k = K.accessor<double, 2>(), v = V.accessor<double, 2>();
  at::Tensor weights = torch::zeros({heads, maps, L, S}, torch::kDouble);
  at::Tensor result = torch::zeros({L, width}, torch::kDouble);
  auto w = weights.accessor<double, 4>();
  auto y = result.accessor<double, 2>();
  const auto column = [&](int64_t component, int64_t head, int64_t u) {
    return component * (width / n) + head * m + u;
  };
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t c = 0; c < maps; ++c)
      for (int64_t l = 0; l < L; ++l) {
        double total = 0;
        for (int64_t s = 0; s < keys; ++s) {
          double score = 0;
          for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) {
              const double a = maps == 1 ? (i == j) : table[i][c][j].item<double>();
              if (a == 0) continue;
              for (int64_t u = 0; u < m; ++u) score += a * q[l][column(i, h, u)] * k[s][column(j, h, u)];
            }
          w[h][c][l][s] = std::exp(score / std::sqrt(static_cast<double>(n * m)));
          total += w[h][c][l][s];
        }
        for (int64_t s = 0; s < keys; ++s) w[h][c][l][s] /= total;
      }
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t c = 0; c < n; ++c)
      for (int64_t l = 0; l < L; ++l)
        for (int64_t u = 0; u < m; ++u)
          for (int64_t s = 0; s < keys; ++s)
            y[l][column(c, h, u)] += w[h][maps == 1 ? 0 : c][l][s] * v[s][column(c, h, u)];
  return {weights, result};
}

/// Sets the global default type while it lives.
class DefaultDtype {
 public:
  explicit DefaultDtype(at::ScalarType dtype) : before_(torch::get_default_dtype()) {
    torch::set_default_dtype(torch::scalarTypeToTypeMeta(dtype));
  }
  ~DefaultDtype() { torch::set_default_dtype(before_); }

 private:
  caffe2::TypeMeta before_;
};

}  // namespace quatrain::test
