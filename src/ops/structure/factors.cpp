#include "ops/structure/factors.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/engine/threads.h"
#include "ops/structure/fit.h"

namespace quatrain::ops::structure {

namespace {

using Vector = Factors::Vector;

constexpr double kResidual = 1e-6;  // largest relative error of sound factors
constexpr double kGoal = 1e-9;      // where Newton's iterations stop: below float32's rounding
constexpr double kCondition = 1e3;  // largest condition of J
constexpr double kGood = 100;       // a fresh solution this well conditioned is taken at once
constexpr double kFar = 0.5;        // relative distance from which Newton's method does not start
constexpr int kStarts = 6;          // fresh solutions a rank
constexpr int kVain = 2;            // of them, unsound ones after which the next rank is tried
constexpr int kLeastChange = 2;  // of J's weakest singular value, squared: more, and the inverse is renewed
constexpr int kIterations = 12;  // of conjugate gradients: more, and the inverse is renewed

/// J J^T of factors: the sum over the three axes of "equal index on that axis times the Gram matrix of the
/// other two factors' products". Row-major n^3 x n^3.
at::Tensor jacobian_gram(const Factors& f) {
  const int64_t n = f.n, R = f.rank, n2 = n * n, n3 = n2 * n;
  const at::Tensor whole = at::zeros({n3, n3}, at::kDouble);
  double* const result = whole.mutable_data_ptr<double>();
  const Vector* factors[3] = {&f.U, &f.W, &f.V};  // in the order of A's axes
  const int64_t stride[3] = {n2, n, 1};
  Vector products(static_cast<size_t>(n2 * R)), gram(static_cast<size_t>(n2 * n2));
  for (int axis = 0; axis < 3; ++axis) {
    const int p = axis == 0 ? 1 : 0, q = axis == 2 ? 1 : 2;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t r = 0; r < R; ++r)
          products[static_cast<size_t>((i * n + j) * R + r)] =
              (*factors[p])[static_cast<size_t>(i * R + r)] * (*factors[q])[static_cast<size_t>(j * R + r)];
    for (int64_t i = 0; i < n2; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < R; ++r)
          sum += products[static_cast<size_t>(i * R + r)] * products[static_cast<size_t>(j * R + r)];
        gram[static_cast<size_t>(i * n2 + j)] = gram[static_cast<size_t>(j * n2 + i)] = sum;
      }
    for (int64_t c = 0; c < n; ++c)
      for (int64_t i = 0; i < n2; ++i) {
        const int64_t row = c * stride[axis] + i / n * stride[p] + i % n * stride[q];
        for (int64_t j = 0; j < n2; ++j) {
          const int64_t col = c * stride[axis] + j / n * stride[p] + j % n * stride[q];
          result[row * n3 + col] += gram[static_cast<size_t>(i * n2 + j)];
        }
      }
  }
  return whole;
}

/// Condition of J: power iterations for its largest and smallest singular values; the direction of the
/// latter.
double condition(const at::Tensor& gram, const at::Tensor& inverse, Factors& f) {
  const int64_t size = gram.size(0);
  at::Tensor large = at::empty({size}, at::kDouble), small = at::empty({size}, at::kDouble);
  for (int64_t i = 0; i < size; ++i) {  // no symmetric start: it might miss the vector
    large.mutable_data_ptr<double>()[i] = 1 + 0.37 * static_cast<double>(i % 7);
    small.mutable_data_ptr<double>()[i] = (i % 2 ? 1.0 : -1.0) + 0.29 * static_cast<double>(i % 5);
  }
  double most = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    large = at::mv(gram, large / large.norm());
    most = large.norm().item<double>();
    small = at::mv(inverse, small / small.norm());
    f.least = 1 / small.norm().item<double>();
  }
  f.weakest = small / small.norm();
  return std::sqrt(most / f.least);
}

/// Makes the inverse at the present factors; J's condition, infinite where there is no inverse.
double renew(Factors& f) {
  const at::Tensor gram = jacobian_gram(f);
  const auto [triangle, info] = at::linalg_cholesky_ex(gram);
  if (info.item<int>() != 0) return std::numeric_limits<double>::infinity();
  const at::Tensor inverse = at::cholesky_inverse(triangle);
  f.inverse = inverse.to(at::kFloat);
  f.base_U = f.U, f.base_V = f.V, f.base_W = f.W;
  return condition(gram, inverse, f);
}

/// The old inverse times x.
Vector precondition(const Factors& f, const Vector& x) {
  const auto size = static_cast<int64_t>(x.size());
  const at::Tensor column = at::from_blob(const_cast<double*>(x.data()), {size}, at::kDouble);
  const at::Tensor y = at::mv(f.inverse, column.to(at::kFloat)).to(at::kDouble);
  return Vector(y.const_data_ptr<double>(), y.const_data_ptr<double>() + size);
}

/// A change of the factors.
struct Change {
  Vector U, V, W;
};

/// J^T y.
Change transposed(const Factors& f, const Vector& y) {
  const int64_t n = f.n, R = f.rank;
  Change change{Vector(f.U.size()), Vector(f.V.size()), Vector(f.W.size())};
  Vector sum(static_cast<size_t>(R));
  const double* cell = y.data();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t a = 0; a < n; ++a) {
      // sum_b y V, then what it means for U and W; V takes y U W.
      std::fill(sum.begin(), sum.end(), 0.0);
      const double *u = f.U.data() + i * R, *w = f.W.data() + a * R;
      for (int64_t b = 0; b < n; ++b, ++cell) {
        const double* v = f.V.data() + b * R;
        double* dv = change.V.data() + b * R;
        for (int64_t r = 0; r < R; ++r) {
          sum[static_cast<size_t>(r)] += *cell * v[r];
          dv[r] += *cell * u[r] * w[r];
        }
      }
      double *du = change.U.data() + i * R, *dw = change.W.data() + a * R;
      for (int64_t r = 0; r < R; ++r) {
        du[r] += sum[static_cast<size_t>(r)] * w[r];
        dw[r] += sum[static_cast<size_t>(r)] * u[r];
      }
    }
  return change;
}

/// J of a change.
Vector applied(const Factors& f, const Change& change) {
  const int64_t n = f.n, R = f.rank;
  Vector result(static_cast<size_t>(n * n * n)), uw(static_cast<size_t>(R)), moved(static_cast<size_t>(R));
  double* cell = result.data();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t r = 0; r < R; ++r) {
        const auto at = static_cast<size_t>(r), u = static_cast<size_t>(i * R + r),
                   w = static_cast<size_t>(a * R + r);
        uw[at] = f.U[u] * f.W[w];
        moved[at] = change.U[u] * f.W[w] + f.U[u] * change.W[w];
      }
      for (int64_t b = 0; b < n; ++b, ++cell) {
        const double *v = f.V.data() + b * R, *dv = change.V.data() + b * R;
        double sum = 0;
        for (int64_t r = 0; r < R; ++r)
          sum += moved[static_cast<size_t>(r)] * v[r] + uw[static_cast<size_t>(r)] * dv[r];
        *cell = sum;
      }
    }
  return result;
}

double inner(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// (J J^T)^-1 x at the present factors: conjugate gradients, preconditioned by the old inverse. False where
/// that is too old.
bool solve(const Factors& f, const Vector& x, Vector& y) {
  y.assign(x.size(), 0.0);
  Vector rest = x, z = precondition(f, rest), direction = z;
  double strength = inner(rest, z);
  const double enough = 1e-18 * squared_norm(x);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    if (!(squared_norm(rest) > enough)) return std::isfinite(strength);
    const Vector image = applied(f, transposed(f, direction));
    const double length = strength / inner(direction, image);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += length * direction[i];
      rest[i] -= length * image[i];
    }
    z = precondition(f, rest);
    const double before = strength;
    strength = inner(rest, z);
    for (size_t i = 0; i < y.size(); ++i) direction[i] = z[i] + strength / before * direction[i];
  }
  return false;
}

/// sum_r U W V - target.
Vector residual(const Factors& f, const Vector& target) {
  Vector result = product_of(f.U, f.V, f.W, f.n, f.rank);
  for (size_t cell = 0; cell < result.size(); ++cell) result[cell] -= target[cell];
  return result;
}

/// True where the old inverse still serves: J's weakest singular value has not changed much, and the
/// equations are solved in few iterations, so that no other one has become as weak.
bool steady(const Factors& f) {
  const auto size = static_cast<size_t>(f.weakest.numel());
  const double* weakest = f.weakest.const_data_ptr<double>();
  const Vector direction(weakest, weakest + size);
  const Change change = transposed(f, direction);
  const double now = squared_norm(change.U) + squared_norm(change.V) + squared_norm(change.W);
  if (!(now < kLeastChange * f.least && kLeastChange * now > f.least)) return false;
  Vector probe(size), solution;
  for (size_t i = 0; i < size; ++i) probe[i] = i % 3 == 1 ? -1.0 : 1.0 - 0.21 * static_cast<double>(i % 5);
  return solve(f, probe, solution);
}

}  // namespace

/// Newton's method with least movement, by the old inverse; that is renewed where it has become too old.
bool follow_to(Factors& f, const Vector& target) {
  Vector error = residual(f, target);
  double now = std::sqrt(squared_norm(error));
  if (!(now < kFar)) return false;
  for (int renewal = 0; renewal < 3; ++renewal) {
    for (int iteration = 0; iteration < 8 && now > kGoal; ++iteration) {
      const Change change = transposed(f, precondition(f, error));
      for (size_t i = 0; i < f.U.size(); ++i) {
        f.U[i] -= change.U[i];
        f.V[i] -= change.V[i];
        f.W[i] -= change.W[i];
      }
      error = residual(f, target);
      const double before = now;
      now = std::sqrt(squared_norm(error));
      if (!(now < 0.3 * before)) break;
    }
    if (!std::isfinite(now)) return false;
    if (now <= kGoal && steady(f)) return true;
    if (!(renew(f) < kCondition)) return false;
    if (now <= kGoal) return true;
  }
  return now < kResidual;
}

// Where slices of A are nearly dependent, so are the rows of any factor, and a change of A along them is out
// of reach: J's condition is large at any factors of fewer than n^2 products.
double spread(const Vector& A, int64_t n) {
  const at::Tensor whole = at::from_blob(const_cast<double*>(A.data()), {n, n, n}, at::kDouble);
  double least = 1;
  for (int64_t axis = 0; axis < 3; ++axis) {
    const at::Tensor slices = whole.transpose(0, axis).reshape({n, n * n});
    const at::Tensor values = at::linalg_eigvalsh(at::mm(slices, slices.t()));  // squares, rising
    const double small = values[0].item<double>(), large = values[n - 1].item<double>();
    least = std::min(least, std::sqrt(std::max(small, 0.0) / large));
  }
  return least;
}

std::shared_ptr<Factors> solve_afresh(const Vector& target, int64_t n) {
  const int64_t generic = generic_rank(n);
  for (int64_t rank = generic; rank <= generic + 2; ++rank) {
    auto generator = at::detail::createCPUGenerator(0);
    std::shared_ptr<Factors> best;
    double least = kCondition;
    for (int start = 0; start < (best ? kStarts : kVain) && least > kGood; ++start) {
      Fit fit(target, n, rank, random_start(n, rank, generator));
      fit.run(kResidual);
      fit.balance();
      if (!(fit.error() < kResidual)) continue;
      auto found = std::make_shared<Factors>();
      found->n = n, found->rank = rank;
      const auto axis = fit.factors().begin();
      found->U.assign(axis, axis + n * rank);
      found->W.assign(axis + n * rank, axis + 2 * n * rank);
      found->V.assign(axis + 2 * n * rank, axis + 3 * n * rank);
      const double condition = renew(*found);
      if (condition < least) least = condition, best = std::move(found);
    }
    if (best) return best;
  }
  return nullptr;
}

bool restore(Factors& f) {
  Factors base;
  base.n = f.n, base.rank = f.rank;
  base.U = f.base_U, base.V = f.base_V, base.W = f.base_W;
  if (!(renew(base) < kCondition)) return false;
  f.inverse = base.inverse, f.weakest = base.weakest, f.least = base.least;
  return true;
}

void finish(Factors& f, double scale) {
  f.scale = scale;
  const double share = std::cbrt(scale);
  const auto scaled = [&](Vector values) {
    for (double& value : values) value *= share;
    return values;
  };
  f.mixings = std::make_shared<engine::Mixings>(scaled(f.U).data(), scaled(f.V).data(), scaled(f.W).data(),
                                                f.n, f.rank);
}

std::vector<double> product_of(const Vector& U, const Vector& V, const Vector& W, int64_t n, int64_t rank) {
  Vector result(static_cast<size_t>(n * n * n)), uw(static_cast<size_t>(rank));
  size_t cell = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t r = 0; r < rank; ++r)
        uw[static_cast<size_t>(r)] =
            U[static_cast<size_t>(i * rank + r)] * W[static_cast<size_t>(a * rank + r)];
      for (int64_t b = 0; b < n; ++b, ++cell) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r)
          sum += uw[static_cast<size_t>(r)] * V[static_cast<size_t>(b * rank + r)];
        result[cell] = sum;
      }
    }
  return result;
}

at::Tensor gradient(const Factors& f, const std::vector<float>& dU, const std::vector<float>& dV,
                    const std::vector<float>& dW) {
  // In terms of A / |A| the factors are those held, and each of their gradients is cbrt(|A|) times that of
  // A's own; dA itself is then the unit tensor's, divided by |A|.
  const double share = std::cbrt(f.scale) / f.scale;
  const auto scaled = [share](const std::vector<float>& from) {
    Vector to(from.begin(), from.end());
    for (double& value : to) value *= share;
    return to;
  };
  const Vector image = applied(f, {scaled(dU), scaled(dV), scaled(dW)});
  at::Tensor dA;
  on_one_thread([&] {
    Vector y;
    Factors fresh = f;
    const bool whole = f.inverse.defined() || restore(fresh);
    if (!whole || !solve(fresh, image, y))
      if (!(renew(fresh) < kCondition) || !solve(fresh, image, y)) return;
    dA = at::empty({f.n, f.n, f.n}, at::kDouble);
    std::copy(y.begin(), y.end(), dA.mutable_data_ptr<double>());
  });
  return dA;
}

}  // namespace quatrain::ops::structure
