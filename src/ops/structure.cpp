#include "ops/structure.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "ops/fit.h"
#include "ops/one_thread.h"
#include "quatrain/ops.h"

namespace quatrain::ops::structure {

namespace {

using Vector = Fit::Vector;

constexpr int64_t kLargest = 8;     // n whose factors are followed
constexpr double kResidual = 1e-6;  // largest relative error of sound factors
constexpr double kGoal = 1e-9;      // where Newton's iterations stop: below float32's rounding
constexpr double kCondition = 1e3;  // largest condition of J
constexpr double kGood = 100;       // a fresh solution this well conditioned is taken at once
constexpr double kFar = 0.5;        // relative distance from which Newton's method does not start
constexpr double kFlat = 3e-2;      // spread of A's slices below which there is nothing to search
constexpr int kStarts = 6;          // fresh solutions a rank
constexpr int kVain = 2;            // of them, unsound ones after which the next rank is tried
constexpr int64_t kProven = 16;  // steps that factors were followed for, to be worth another search at once
constexpr int64_t kShortestWait = 4,
                  kLongestWait = 64;  // steps on H before the next search; doubled each time

/// One learned tensor's factors of A / |A|, where it stands, and what happened.
struct State {
  c10::weak_intrusive_ptr<c10::StorageImpl> alive;
  Vector values;  // of A, for which `factors` hold, or else what `verdict` says
  enum Verdict { met, left_to_H, refused } verdict = met;  // refused: a seeded search would fail again
  std::shared_ptr<const Factors> factors;
  int64_t steps = 0, fresh = 0, on_H = 0;
  int64_t followed = 0;                         // steps since the last search
  int64_t wait = 0, next_wait = kShortestWait;  // steps until the next search

  void wait_longer() {
    wait = next_wait;
    next_wait = std::min(2 * wait, kLongestWait);
  }
  explicit State(const at::Tensor& A) : alive(A.storage().getWeakStorageImpl()) {}
};

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

/// x -> (J J^T)^-1 x.
void solve(const at::Tensor& triangle, Vector& x) {
  const at::Tensor column = at::from_blob(x.data(), {static_cast<int64_t>(x.size()), 1}, at::kDouble);
  column.copy_(at::cholesky_solve(column, triangle));
}

/// Condition of J: power iterations for its largest and smallest singular values.
double condition(const at::Tensor& gram, const at::Tensor& triangle) {
  const int64_t size = gram.size(0);
  at::Tensor large = at::empty({size, 1}, at::kDouble), small = at::empty({size, 1}, at::kDouble);
  for (int64_t i = 0; i < size; ++i) {  // no symmetric start: it might miss the vector
    large.mutable_data_ptr<double>()[i] = 1 + 0.37 * static_cast<double>(i % 7);
    small.mutable_data_ptr<double>()[i] = (i % 2 ? 1.0 : -1.0) + 0.29 * static_cast<double>(i % 5);
  }
  double most = 0, least = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    large = at::mm(gram, large / large.norm());
    most = large.norm().item<double>();
    small = at::cholesky_solve(small / small.norm(), triangle);
    least = 1 / small.norm().item<double>();
  }
  return std::sqrt(most / least);
}

/// sum_r U W V - target.
Vector residual(const Factors& f, const Vector& target) {
  Vector result(target.size());
  const int64_t n = f.n, R = f.rank;
  Vector uw(static_cast<size_t>(R));
  size_t cell = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t r = 0; r < R; ++r)
        uw[static_cast<size_t>(r)] =
            f.U[static_cast<size_t>(i * R + r)] * f.W[static_cast<size_t>(a * R + r)];
      for (int64_t b = 0; b < n; ++b, ++cell) {
        double sum = -target[cell];
        for (int64_t r = 0; r < R; ++r)
          sum += uw[static_cast<size_t>(r)] * f.V[static_cast<size_t>(b * R + r)];
        result[cell] = sum;
      }
    }
  return result;
}

/// J^T y, subtracted from the factors: (U, V, W) -= J^T y.
void move(Factors& f, const Vector& y) {
  const Factors at = f;
  const int64_t n = f.n, R = f.rank;
  size_t cell = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t a = 0; a < n; ++a)
      for (int64_t b = 0; b < n; ++b, ++cell) {
        const double e = y[cell];
        for (int64_t r = 0; r < R; ++r) {
          const auto u = static_cast<size_t>(i * R + r), w = static_cast<size_t>(a * R + r),
                     v = static_cast<size_t>(b * R + r);
          f.U[u] -= e * at.W[w] * at.V[v];
          f.W[w] -= e * at.U[u] * at.V[v];
          f.V[v] -= e * at.U[u] * at.W[w];
        }
      }
}

/// J's factorisation at the present factors, and its condition; infinite where there is none.
double examine(Factors& f) {
  const at::Tensor gram = jacobian_gram(f);
  const auto [triangle, info] = at::linalg_cholesky_ex(gram);
  if (info.item<int>() != 0) return std::numeric_limits<double>::infinity();
  f.triangle = triangle;
  return condition(gram, triangle);
}

/// Newton's method with least movement, from the old factors and their triangle; the triangle is renewed
/// where it has become too old to converge. True where the factors are sound for the target, of norm 1.
bool follow_to(Factors& f, const Vector& target) {
  Vector error = residual(f, target);
  double now = std::sqrt(squared_norm(error));
  if (!(now < kFar)) return false;
  for (int renewal = 0; renewal < 3; ++renewal) {
    for (int iteration = 0; iteration < 8 && now > kGoal; ++iteration) {
      solve(f.triangle, error);
      move(f, error);
      error = residual(f, target);
      const double before = now;
      now = std::sqrt(squared_norm(error));
      if (!(now < 0.3 * before)) break;
    }
    if (!std::isfinite(now) || !(examine(f) < kCondition)) return false;
    if (now <= kGoal) return true;
  }
  return now < kResidual;
}

/// Least ratio of the smallest to the largest singular value of A's three unfoldings. Where slices of A are
/// nearly dependent, so are the rows of any factor, and a change of A along them is out of reach: J's
/// condition is large at any factors of fewer than n^2 products.
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

/// The best conditioned of a few seeded solutions at the lowest rank that has a sound one.
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
      const double condition = examine(*found);
      if (condition < least) least = condition, best = std::move(found);
    }
    if (best) return best;
  }
  return nullptr;
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

using Key = std::pair<const c10::StorageImpl*, int64_t>;
Key key(const at::Tensor& A) {
  return {A.storage().unsafeGetStorageImpl(), A.storage_offset()};
}

std::mutex mutex;
std::map<Key, State>& states() {
  static auto* all = new std::map<Key, State>;  // never destroyed: tensors may outlive static objects
  return *all;
}

State* find_state(const at::Tensor& A) {
  const auto found = states().find(key(A));
  if (found == states().end()) return nullptr;
  if (!found->second.alive.expired()) return &found->second;
  states().erase(found);
  return nullptr;
}

State& add_state(const at::Tensor& A) {
  std::erase_if(states(), [](const auto& item) { return item.second.alive.expired(); });
  return states().emplace(key(A), State(A)).first->second;
}

}  // namespace

std::vector<double> values_of(const at::Tensor& t) {
  if (t.is_contiguous() && t.scalar_type() == at::kFloat) {  // the usual case, without a call into ATen
    const float* data = t.const_data_ptr<float>();
    return Vector(data, data + t.numel());
  }
  const at::Tensor exact = t.detach().to(at::kDouble).contiguous();
  const double* data = exact.const_data_ptr<double>();
  return Vector(data, data + exact.numel());
}

int64_t followed_rank(int64_t n) {
  return n >= 2 && n <= kLargest ? generic_rank(n) : 0;
}

std::shared_ptr<const Factors> find(const at::Tensor& A) {
  const std::lock_guard lock(mutex);
  const State* state = find_state(A);
  return state && state->factors && state->values == values_of(A) ? state->factors : nullptr;
}

std::shared_ptr<const Factors> follow(const at::Tensor& A, bool insist) {
  const std::lock_guard lock(mutex);
  const int64_t n = A.size(0);
  Vector values = values_of(A);
  State* state = find_state(A);
  if (!state) {
    state = &add_state(A);
    if (!insist) {
      state->values = std::move(values);
      return nullptr;
    }
  }
  const bool decided =
      state->factors || state->verdict == State::refused || (state->verdict == State::left_to_H && !insist);
  if (state->values == values && decided) return state->factors;
  if (state->factors && state->factors->n != n) state->factors.reset();  // another tensor in the same storage
  const double scale = std::sqrt(squared_norm(values));
  Vector target = values;
  for (double& value : target) value /= scale;
  const bool usable = std::isfinite(scale) && scale > 0;
  ++state->steps;
  if (usable && state->factors) {
    auto moved = std::make_shared<Factors>(*state->factors);
    bool sound = false;
    on_one_thread([&] { sound = follow_to(*moved, target); });
    if (sound) {
      finish(*moved, scale);
      state->factors = std::move(moved);
      state->values = std::move(values);
      ++state->followed;
      return state->factors;
    }
    // Factors that are lost at once, as at a large rate, cost more than H.
    if (state->followed >= kProven)
      state->next_wait = kShortestWait;
    else
      state->wait_longer();
  }
  state->factors.reset();
  state->values = std::move(values);
  state->verdict = State::left_to_H;
  bool worth_it = usable && (--state->wait <= 0 || insist);
  if (worth_it) on_one_thread([&] { worth_it = spread(target, n) > kFlat; });
  if (worth_it) {
    ++state->fresh;
    std::shared_ptr<Factors> found;
    on_one_thread([&] { found = solve_afresh(target, n); });
    if (found) {
      finish(*found, scale);
      state->factors = std::move(found);
      state->followed = 0;
      return state->factors;
    }
    state->verdict = State::refused;
    state->wait_longer();
  }
  ++state->on_H;
  return nullptr;
}

at::Tensor gradient(const Factors& f, const std::vector<float>& dU, const std::vector<float>& dV,
                    const std::vector<float>& dW) {
  // In terms of A / |A| the factors are those held, and each of their gradients is cbrt(|A|) times that of
  // A's own; dA itself is then the unit tensor's, divided by |A|.
  const double share = std::cbrt(f.scale) / f.scale;
  const int64_t n = f.n, R = f.rank;
  at::Tensor dA = at::empty({n, n, n}, at::kDouble);
  Vector y(static_cast<size_t>(n * n * n));
  size_t cell = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t a = 0; a < n; ++a)
      for (int64_t b = 0; b < n; ++b, ++cell) {
        double sum = 0;
        for (int64_t r = 0; r < R; ++r) {
          const auto u = static_cast<size_t>(i * R + r), w = static_cast<size_t>(a * R + r),
                     v = static_cast<size_t>(b * R + r);
          sum += dU[u] * f.W[w] * f.V[v] + dW[w] * f.U[u] * f.V[v] + dV[v] * f.U[u] * f.W[w];
        }
        y[cell] = sum * share;
      }
  on_one_thread([&] { solve(f.triangle, y); });
  std::copy(y.begin(), y.end(), dA.mutable_data_ptr<double>());
  return dA;
}

}  // namespace quatrain::ops::structure

namespace quatrain::ops {

using structure::Factors;

StructureReport structure_report(const at::Tensor& A) {
  const std::lock_guard lock(structure::mutex);
  const structure::State* state = structure::find_state(A);
  if (!state) return {};
  return {state->factors ? state->factors->rank : 0, state->steps, state->fresh, state->on_H};
}

// The layout: version, n, rank (0 without factors), |A|, the counters, the verdict, A's values, U, V, W.
at::Tensor structure_state(const at::Tensor& A) {
  if (!A.defined() || !A.has_storage() || A.dim() != 3) return {};
  const std::lock_guard lock(structure::mutex);
  const structure::State* state = structure::find_state(A);
  if (!state) return {};
  const Factors* f = state->factors.get();
  std::vector<double> all{1,
                          static_cast<double>(A.size(0)),
                          f ? static_cast<double>(f->rank) : 0,
                          f ? f->scale : 0,
                          static_cast<double>(state->steps),
                          static_cast<double>(state->fresh),
                          static_cast<double>(state->on_H),
                          static_cast<double>(state->wait),
                          static_cast<double>(state->next_wait),
                          static_cast<double>(state->verdict),
                          static_cast<double>(state->followed)};
  all.insert(all.end(), state->values.begin(), state->values.end());
  if (f)
    for (const auto* factor : {&f->U, &f->V, &f->W}) all.insert(all.end(), factor->begin(), factor->end());
  const at::Tensor result = at::empty({static_cast<int64_t>(all.size())}, at::kDouble);
  std::copy(all.begin(), all.end(), result.mutable_data_ptr<double>());
  return result;
}

void set_structure_state(const at::Tensor& A, const at::Tensor& stored) {
  const std::lock_guard lock(structure::mutex);
  structure::states().erase(structure::key(A));
  if (!stored.defined()) return;
  constexpr size_t kHead = 11;
  const std::vector<double> all = structure::values_of(stored);
  const auto n = A.size(0);
  const auto cells = static_cast<size_t>(A.numel());
  const bool whole = all.size() >= kHead + cells && all[0] == 1 && all[1] == static_cast<double>(n);
  const auto rank = whole ? static_cast<size_t>(std::clamp(all[2], 0.0, 1e4)) : 0;
  const size_t size = static_cast<size_t>(n) * rank;
  TORCH_CHECK(whole && all.size() == kHead + cells + 3 * size,
              "set_structure_state: the state of a structure tensor with n = ", n, " was expected, got ",
              all.size(), " values that are none");
  structure::State& state = structure::add_state(A);
  state.steps = static_cast<int64_t>(all[4]), state.fresh = static_cast<int64_t>(all[5]);
  state.on_H = static_cast<int64_t>(all[6]), state.wait = static_cast<int64_t>(all[7]);
  state.next_wait = static_cast<int64_t>(all[8]);
  state.verdict = static_cast<structure::State::Verdict>(std::clamp(all[9], 0.0, 2.0));
  state.followed = static_cast<int64_t>(all[10]);
  auto at = all.begin() + kHead;
  const auto take = [&at](size_t count) {
    const auto begin = at;
    return std::vector<double>(begin, at += static_cast<std::ptrdiff_t>(count));
  };
  state.values = take(cells);
  if (rank == 0) return;
  auto factors = std::make_shared<Factors>();
  factors->n = n, factors->rank = static_cast<int64_t>(rank);
  factors->U = take(size), factors->V = take(size), factors->W = take(size);
  bool sound = false;
  on_one_thread([&] { sound = structure::examine(*factors) < structure::kCondition; });
  if (!sound) return;
  structure::finish(*factors, all[3]);
  state.factors = std::move(factors);
}

}  // namespace quatrain::ops
