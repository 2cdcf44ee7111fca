#include "ops/structure/fit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace quatrain::ops {

namespace {

using Vector = Fit::Vector;

}  // namespace

int64_t generic_rank(int64_t n) {
  constexpr int64_t kRanks[] = {0, 1, 3, 5, 8, 11, 15, 20, 26, 32, 39};
  return n < static_cast<int64_t>(std::size(kRanks)) ? kRanks[n] : 0;
}

double squared_norm(const Vector& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return sum;
}

Fit::Fit(const Vector& target, int64_t n, int64_t rank, Vector start)
    : n_(n), rank_(rank), size_(3 * n * rank), target_(&target), start_(std::move(start)), x_(start_) {
  residual_ = residual(x_);
  error_ = squared_norm(residual_);
}

double Fit::error() const {
  return std::sqrt(error_);
}

void Fit::run(double tolerance) {
  constexpr int kIterations = 400, kPatience = 30;
  constexpr double kGoal = 1e-13;
  double checked = kInfinity;
  int waited = 0;
  bool kicked = false;
  for (int iteration = 0; iteration < kIterations && error() > kGoal; ++iteration) {
    bool stuck = false;
    if (step()) {
      lower_penalty(0.85);
      // A good start converges quadratically once the penalty is gone.
      if (mu_ == 0 && ++waited == kPatience) {
        stuck = error() > 0.3 * checked;
        checked = error();
        waited = 0;
      }
    } else if (mu_ > 0) {
      lower_penalty(0.3);
      lambda_ = std::max(lambda_ * 1e-3, 1e-12);
    } else {
      stuck = true;
    }
    if (!stuck) continue;
    if (kicked || error() < tolerance) return;
    kick();
    kicked = true;
  }
}

void Fit::balance() {
  for (int64_t r = 0; r < rank_; ++r) {
    double norms[3] = {}, product = 1;
    for (int64_t axis = 0; axis < 3; ++axis) {
      for (int64_t i = 0; i < n_; ++i) norms[axis] += at(x_, axis, i)[r] * at(x_, axis, i)[r];
      norms[axis] = std::sqrt(norms[axis]);
      product *= norms[axis];
    }
    for (int64_t axis = 0; axis < 3; ++axis) {
      for (int64_t i = 0; i < n_; ++i)
        at(x_, axis, i)[r] *= product > 0 ? std::cbrt(product) / norms[axis] : 0;
    }
  }
  residual_ = residual(x_);
  error_ = squared_norm(residual_);
}

double Fit::condition() const {
  const int64_t cells = n_ * n_ * n_;
  if (size_ < cells) return kInfinity;  // J has fewer columns than rows
  at::Tensor J = at::zeros({cells, size_}, at::kDouble);
  double* row = J.data_ptr<double>();
  for (int64_t i = 0; i < n_; ++i) {
    for (int64_t a = 0; a < n_; ++a) {
      for (int64_t b = 0; b < n_; ++b, row += size_) {
        const double *u = at(x_, 0, i), *w = at(x_, 1, a), *v = at(x_, 2, b);
        for (int64_t r = 0; r < rank_; ++r) {
          row[(0 * n_ + i) * rank_ + r] = w[r] * v[r];
          row[(1 * n_ + a) * rank_ + r] = u[r] * v[r];
          row[(2 * n_ + b) * rank_ + r] = u[r] * w[r];
        }
      }
    }
  }
  const at::Tensor eigenvalues = at::linalg_eigvalsh(at::mm(J, J.t()));
  const double* values = eigenvalues.data_ptr<double>();
  const double smallest = values[0], largest = values[cells - 1];
  return smallest > 1e-14 * largest ? std::sqrt(largest / smallest) : kInfinity;
}

// Columns that the penalty drove to zero are a stationary point, though a small direction of the target may
// still need them.
void Fit::kick() {
  constexpr double kShare = 0.03;
  for (size_t k = 0; k < x_.size(); ++k) x_[k] += kShare * start_[k];
  residual_ = residual(x_);
  error_ = squared_norm(residual_);
  lambda_ = 1e-3;
}

void Fit::lower_penalty(double factor) {
  constexpr double kCut = 1e-9;
  mu_ = mu_ > kCut ? mu_ * factor : 0;
}

Fit::Vector Fit::residual(const Vector& x) const {
  Vector result(target_->size());
  Vector uw(rank_);
  double* cell = result.data();
  const double* wanted = target_->data();
  for (int64_t i = 0; i < n_; ++i) {
    for (int64_t a = 0; a < n_; ++a) {
      for (int64_t r = 0; r < rank_; ++r) uw[r] = at(x, 0, i)[r] * at(x, 1, a)[r];
      for (int64_t b = 0; b < n_; ++b) {
        double sum = 0;
        const double* v = at(x, 2, b);
        for (int64_t r = 0; r < rank_; ++r) sum += uw[r] * v[r];
        *cell++ = sum - *wanted++;
      }
    }
  }
  return result;
}

// J^T residual + mu x.
Fit::Vector Fit::gradient() const {
  Vector g = x_;
  for (double& value : g) value *= mu_;
  const double* cell = residual_.data();
  for (int64_t i = 0; i < n_; ++i) {
    for (int64_t a = 0; a < n_; ++a) {
      for (int64_t b = 0; b < n_; ++b) {
        const double e = *cell++;
        const double *u = at(x_, 0, i), *w = at(x_, 1, a), *v = at(x_, 2, b);
        double *gu = at(g, 0, i), *gw = at(g, 1, a), *gv = at(g, 2, b);
        for (int64_t r = 0; r < rank_; ++r) {
          gu[r] += e * w[r] * v[r];
          gw[r] += e * u[r] * v[r];
          gv[r] += e * u[r] * w[r];
        }
      }
    }
  }
  return g;
}

Fit::Vector Fit::gram(int64_t axis) const {
  Vector g(rank_ * rank_);
  for (int64_t i = 0; i < n_; ++i) {
    const double* row = at(x_, axis, i);
    for (int64_t s = 0; s < rank_; ++s) {
      for (int64_t r = 0; r < rank_; ++r) g[s * rank_ + r] += row[s] * row[r];
    }
  }
  return g;
}

// The lower triangle of J^T J. For rows i of axis p and j of axis q > p, block [s, r] is F_p[i, s] F_q[j,
// r] G_other[s, r]; within an axis only i = j is not zero, with the product of the two other Gram matrices.
at::Tensor Fit::normal_matrix() const {
  at::Tensor H = at::zeros({size_, size_}, at::kDouble);
  double* h = H.data_ptr<double>();
  const Vector grams[3] = {gram(0), gram(1), gram(2)};
  for (int64_t q = 0; q < 3; ++q) {
    const Vector &g1 = grams[(q + 1) % 3], &g2 = grams[(q + 2) % 3];
    for (int64_t j = 0; j < n_; ++j) {
      const int64_t block = (q * n_ + j) * rank_;
      for (int64_t s = 0; s < rank_; ++s) {
        double* row = h + (block + s) * size_;
        for (int64_t r = 0; r < rank_; ++r) row[block + r] = g1[s * rank_ + r] * g2[s * rank_ + r];
        for (int64_t p = 0; p < q; ++p) {
          const double* other = grams[3 - p - q].data() + s * rank_;
          const double* f = at(x_, q, j);
          for (int64_t i = 0; i < n_; ++i) {
            const double scale = at(x_, p, i)[s];
            double* out = row + (p * n_ + i) * rank_;
            for (int64_t r = 0; r < rank_; ++r) out[r] = scale * f[r] * other[r];
          }
        }
      }
    }
  }
  return H;
}

// One step that lowers |residual|^2 + mu |x|^2, with as much damping as that takes; false where none does.
bool Fit::step() {
  const at::Tensor H = normal_matrix();
  const at::Tensor diagonal = H.diagonal();
  const at::Tensor undamped = diagonal.clone();
  Vector g = gradient();
  const at::Tensor right = at::from_blob(g.data(), {size_, 1}, at::kDouble);
  const double before = error_ + mu_ * squared_norm(x_);
  constexpr int kTries = 10;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    at::add_out(const_cast<at::Tensor&>(diagonal), undamped, at::scalar_tensor(lambda_ + mu_, at::kDouble));
    const auto [factor, info] = at::linalg_cholesky_ex(H);
    if (info.item<int>() != 0) {
      lambda_ = lambda_ * 4 + 1e-14;
      continue;
    }
    const at::Tensor down = at::cholesky_solve(right, factor).contiguous();
    Vector x = x_;
    for (int64_t k = 0; k < size_; ++k) x[k] -= down.data_ptr<double>()[k];
    Vector e = residual(x);
    const double error = squared_norm(e);
    if (error + mu_ * squared_norm(x) <= before) {
      x_ = std::move(x);
      residual_ = std::move(e);
      error_ = error;
      lambda_ = std::max(lambda_ * 0.33, 1e-14);
      return true;
    }
    lambda_ = lambda_ * 3 + 1e-14;
  }
  return false;
}

Fit::Vector random_start(int64_t n, int64_t rank, at::Generator& generator) {
  const at::Tensor random = at::randn({3 * n * rank}, generator, at::kDouble) / std::pow(rank, 1.0 / 6);
  const double* x = random.const_data_ptr<double>();
  return Vector(x, x + random.numel());
}

}  // namespace quatrain::ops
