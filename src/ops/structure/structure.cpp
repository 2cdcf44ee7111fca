#include "ops/structure/structure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "ops/engine/threads.h"
#include "ops/kept.h"
#include "ops/structure/fit.h"
#include "ops/structure/state.h"

namespace quatrain::ops::structure {

namespace {

using Vector = Factors::Vector;

constexpr double kFlat = 3e-2;   // spread of A's slices below which there is nothing to search
constexpr int64_t kProven = 16;  // steps that factors were followed for, to be worth another search at once

/// Holds a state's lock, and its work while it lives.
class Work {
 public:
  explicit Work(State& state) : state_(state), lock_(state.mutex) {
    state_.idle.wait(lock_, [this] { return !state_.busy; });
    state_.busy = true;
  }
  ~Work() {
    if (!lock_.owns_lock()) lock_.lock();
    state_.busy = false;
    lock_.unlock();
    state_.idle.notify_all();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Runs long work on one thread and without the lock: others may read the state meanwhile.
  template <class Long>
  void unlocked(const Long& work) {
    lock_.unlock();
    on_one_thread(work);
    lock_.lock();
  }

 private:
  State& state_;
  std::unique_lock<std::mutex> lock_;
};

double norm_of(const Vector& values) {
  return std::sqrt(squared_norm(values));
}
/// Whether a tensor of this norm can have factors at all.
bool is_usable(double norm) {
  return std::isfinite(norm) && norm > 0;
}
Vector shares_of(Vector values, double norm) {
  for (double& value : values) value /= norm;
  return values;
}

/// use(data) with a small tensor's values, row-major; in the usual cases, A and its factors, as they lie and
/// without a call into ATen.
template <class Use>
auto with_values(const at::Tensor& t, const Use& use) {
  if (t.is_contiguous()) {
    if (t.scalar_type() == at::kFloat) return use(t.const_data_ptr<float>());
    if (t.scalar_type() == at::kDouble) return use(t.const_data_ptr<double>());
  }
  const at::Tensor exact = t.detach().to(at::kDouble).contiguous();
  return use(exact.const_data_ptr<double>());
}

}  // namespace

std::vector<double> values_of(const at::Tensor& t) {
  return with_values(t, [&](const auto* data) { return Vector(data, data + t.numel()); });
}

bool has_values(const at::Tensor& t, const std::vector<double>& values) {
  return t.numel() == static_cast<int64_t>(values.size()) &&
         with_values(t, [&](const auto* data) { return std::equal(values.begin(), values.end(), data); });
}

int64_t followed_rank(int64_t n) {
  return n >= 2 && n <= kLargest ? generic_rank(n) : 0;
}

std::shared_ptr<const Factors> find(const at::Tensor& A, bool visited) {
  const auto state = kept::find<State>(A);
  if (!state) return nullptr;
  const std::lock_guard lock(state->mutex);
  if (has_values(A, state->values)) return state->factors;
  return visited && has_values(A, state->visit.values) ? state->visit.factors : nullptr;
}

std::optional<int64_t> foreseen_rank(const at::Tensor& A, Search search) {
  const std::optional<int64_t> first_time = search == Search::now ? std::nullopt : std::optional<int64_t>(0);
  const auto state = kept::find<State>(A);
  if (!state) return first_time;
  const std::lock_guard lock(state->mutex);
  if (state->values.empty()) return first_time;
  const int64_t rank = state->factors && state->factors->n == A.size(0) ? state->factors->rank : 0;
  const bool same = has_values(A, state->values);
  if (search != Search::never) return same && state->decided(search) ? std::optional(rank) : std::nullopt;
  if (!same && has_values(A, state->visit.values)) return state->visit.factors ? rank : 0;
  return same || rank == 0 || is_usable(norm_of(values_of(A))) ? rank : 0;
}

void count_on_H(const at::Tensor& A) {
  if (const auto state = kept::find<State>(A)) {
    const std::lock_guard lock(state->mutex);
    state->count_on_H();
  }
}

namespace {

/// Factors moved to other values of A, of norm `scale`; null where they cannot be.
std::shared_ptr<const Factors> move(const Factors& from, const Vector& target, double scale, Work& work) {
  auto moved = std::make_shared<Factors>(from);
  bool sound = false;
  work.unlocked([&] {
    sound = (moved->inverse.defined() || restore(*moved)) && follow_to(*moved, target);
    if (sound) finish(*moved, scale);
  });
  return sound ? moved : nullptr;
}

/// `follow` in eval mode: nothing of what training gets depends on it.
std::shared_ptr<const Factors> visit(const at::Tensor& A) {
  const auto kept_state = kept::find<State>(A);
  if (!kept_state) return nullptr;
  State& state = *kept_state;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.factors) return nullptr;
  }
  Vector values = values_of(A);
  Work work(state);
  if (state.values == values) return state.factors;
  if (state.visit.values == values) return state.visit.factors;
  const double scale = norm_of(values);
  if (!state.factors || state.factors->n != A.size(0) || !is_usable(scale)) return nullptr;
  auto moved = move(*state.factors, shares_of(values, scale), scale, work);
  state.visit = {std::move(values), std::move(moved)};
  return state.visit.factors;
}

}  // namespace

std::shared_ptr<const Factors> follow(const at::Tensor& A, Search search) {
  if (!A.has_storage()) return nullptr;
  if (search == Search::never) return visit(A);
  const int64_t n = A.size(0);
  Vector values = values_of(A);
  const auto kept_state = kept::beside<State>(A);
  State& state = *kept_state;
  Work work(state);
  if (state.values.empty() && search != Search::now) {
    state.values = std::move(values);
    return nullptr;
  }
  if (state.values == values && state.decided(search)) return state.factors;
  const State::Visit visited = std::exchange(state.visit, {});
  if (state.factors && state.factors->n != n) state.factors.reset();  // another tensor in the same storage
  const double scale = norm_of(values);
  const bool usable = is_usable(scale);
  const Vector target = shares_of(values, scale);
  ++state.steps;
  state.counted_on_H = false;
  if (usable && state.factors) {
    if (auto moved = visited.values == values ? visited.factors : move(*state.factors, target, scale, work)) {
      state.factors = std::move(moved);
      state.values = std::move(values);
      ++state.followed;
      return state.factors;
    }
    // Factors that are lost at once, as at a large rate, cost more than H.
    if (state.followed >= kProven)
      state.next_wait = kShortestWait;
    else
      state.wait_longer();
  }
  state.factors.reset();
  state.values = std::move(values);
  state.verdict = State::left_to_H;
  if (usable && (--state.wait <= 0 || search == Search::now)) {
    bool worth_it = false;
    std::shared_ptr<Factors> found;
    work.unlocked([&] {
      worth_it = spread(target, n) > kFlat;
      if (worth_it) found = solve_afresh(target, n);
      if (found) finish(*found, scale);
    });
    if (worth_it) ++state.fresh;
    if (found) {
      state.factors = std::move(found);
      state.followed = 0;
      return state.factors;
    }
    if (worth_it) {
      state.verdict = State::refused;
      state.wait_longer();
    }
  }
  state.count_on_H();
  return nullptr;
}

}  // namespace quatrain::ops::structure
