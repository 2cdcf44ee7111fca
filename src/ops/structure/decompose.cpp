#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "ops/engine/threads.h"
#include "ops/structure/fit.h"
#include "quatrain/ops.h"

namespace quatrain::ops {
namespace {

using Vector = Fit::Vector;

// Tries the ranks first .. last, each from options.starts random starts, and writes the best error to
// `result`. The target has norm 1.
std::optional<Fit> search(const Vector& target, int64_t n, int64_t first, int64_t last,
                          const DecomposeOptions& options, Decomposition& result) {
  auto generator = at::detail::createCPUGenerator(options.seed);
  std::optional<Fit> best;
  for (int64_t rank = first; rank <= last; ++rank) {
    for (int64_t start = 0; start < options.starts; ++start) {
      Fit fit(target, n, rank, random_start(n, rank, generator));
      fit.run(options.tolerance);
      fit.balance();
      if (!(fit.error() < result.residual)) continue;
      result.rank = rank;
      result.residual = fit.error();
      result.sound = result.residual < options.tolerance;
      best = std::move(fit);
      if (result.sound) {
        result.condition = best->condition();
        return best;
      }
    }
  }
  return best;
}

}  // namespace

Decomposition decompose(const at::Tensor& A, const DecomposeOptions& options) {
  TORCH_CHECK(
      A.defined() && A.dim() == 3 && A.size(0) > 0 && A.size(0) == A.size(1) && A.size(1) == A.size(2),
      "decompose: A must have the shape (n, n, n) with n > 0, got ",
      A.defined() ? A.sizes() : at::IntArrayRef());
  TORCH_CHECK(A.is_floating_point(), "decompose: A must be a real floating-point tensor, got ",
              A.scalar_type());
  constexpr int64_t kMaxRank = 4096;  // that of trained factors
  TORCH_CHECK(options.rank >= 0 && options.rank <= kMaxRank, "decompose: rank must be from 1 to ", kMaxRank,
              ", or 0 to choose it, got ", options.rank);
  TORCH_CHECK(options.starts > 0, "decompose: starts must be positive, got ", options.starts);
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;

  Decomposition result;
  result.residual = result.condition = kInfinity;
  const at::Tensor values = A.detach().to(at::kCPU, at::kDouble).contiguous();
  const int64_t n = values.size(0);
  Vector target(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  double largest = 0;
  for (double value : target) {
    if (!std::isfinite(value)) return result;
    largest = std::max(largest, std::abs(value));
  }
  if (largest == 0 || (options.rank == 0 && generic_rank(n) == 0)) return result;
  for (double& value : target) value /= largest;  // before the norm: squares of 1e-200 are zero
  const double norm = std::sqrt(squared_norm(target));
  for (double& value : target) value /= norm;

  const int64_t first = options.rank > 0 ? options.rank : generic_rank(n);
  const int64_t last = options.rank > 0 || n == 1 ? first : first + 2;
  std::optional<Fit> best;
  on_one_thread([&] { best = search(target, n, first, last, options, result); });
  if (!result.sound) return result;

  const double scale = std::cbrt(norm) * std::cbrt(largest);
  at::Tensor factors = at::empty({3, n, result.rank}, at::kDouble);
  for (int64_t k = 0; k < factors.numel(); ++k) factors.data_ptr<double>()[k] = best->factors()[k] * scale;
  result.factors = {factors[0].clone(), factors[2].clone(), factors[1].clone()};  // U, V, W
  return result;
}

}  // namespace quatrain::ops
