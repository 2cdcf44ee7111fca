#include "ops/structure/structure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "ops/engine/threads.h"
#include "ops/kept.h"
#include "ops/structure/fit.h"
#include "quatrain/ops.h"

namespace quatrain::ops::structure {

namespace {

using Vector = Factors::Vector;

constexpr int64_t kLargest = 8;  // n whose factors are followed
constexpr double kFlat = 3e-2;   // spread of A's slices below which there is nothing to search
constexpr int64_t kProven = 16;  // steps that factors were followed for, to be worth another search at once
constexpr int64_t kShortestWait = 4,
                  kLongestWait = 64;  // steps on H before the next search; doubled each time

/// One learned tensor's factors of A / |A|, where it stands, and what happened.
struct State {
  std::mutex mutex;              // of all below; never held while factors are moved or sought
  std::condition_variable idle;  // told when `busy` ends
  bool busy = false;             // a thread is at work on the factors: only it writes

  Vector values;  // of A, for which `factors` hold, or else what `verdict` says; none before A is met
  enum Verdict { met, left_to_H, refused } verdict = met;  // refused: a seeded search would fail again
  std::shared_ptr<const Factors> factors;
  int64_t steps = 0, fresh = 0, on_H = 0;
  bool counted_on_H = false;                    // these values are
  int64_t followed = 0;                         // steps since the last search
  int64_t wait = 0, next_wait = kShortestWait;  // steps until the next search

  void wait_longer() {
    wait = next_wait;
    next_wait = std::min(2 * wait, kLongestWait);
  }
  void count_on_H() {
    if (!counted_on_H) ++on_H;
    counted_on_H = true;
  }
  /// True where it is known what A's present values run on.
  bool decided(bool insist) const {
    return factors || verdict == refused || (verdict == left_to_H && !insist);
  }
};

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

std::shared_ptr<const Factors> find(const at::Tensor& A) {
  const auto state = kept::find<State>(A);
  if (!state) return nullptr;
  const std::lock_guard lock(state->mutex);
  return has_values(A, state->values) ? state->factors : nullptr;
}

std::optional<int64_t> foreseen_rank(const at::Tensor& A, bool insist) {
  const std::optional<int64_t> first_time = insist ? std::nullopt : std::optional<int64_t>(0);
  const auto state = kept::find<State>(A);
  if (!state) return first_time;
  const std::lock_guard lock(state->mutex);
  if (state->values.empty()) return first_time;
  if (!has_values(A, state->values) || !state->decided(insist)) return std::nullopt;
  return state->factors ? state->factors->rank : 0;
}

void count_on_H(const at::Tensor& A) {
  if (const auto state = kept::find<State>(A)) {
    const std::lock_guard lock(state->mutex);
    state->count_on_H();
  }
}

std::shared_ptr<const Factors> follow(const at::Tensor& A, bool insist) {
  if (!A.has_storage()) return nullptr;
  const int64_t n = A.size(0);
  Vector values = values_of(A);
  const auto kept_state = kept::beside<State>(A);
  State& state = *kept_state;
  Work work(state);
  if (state.values.empty() && !insist) {
    state.values = std::move(values);
    return nullptr;
  }
  if (state.values == values && state.decided(insist)) return state.factors;
  if (state.factors && state.factors->n != n) state.factors.reset();  // another tensor in the same storage
  const double scale = std::sqrt(squared_norm(values));
  Vector target = values;
  for (double& value : target) value /= scale;
  const bool usable = std::isfinite(scale) && scale > 0;
  ++state.steps;
  state.counted_on_H = false;
  if (usable && state.factors) {
    auto moved = std::make_shared<Factors>(*state.factors);
    bool sound = false;
    work.unlocked([&] {
      sound = follow_to(*moved, target);
      if (sound) finish(*moved, scale);
    });
    if (sound) {
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
  if (usable && (--state.wait <= 0 || insist)) {
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

namespace quatrain::ops {

using structure::Factors;

StructureReport structure_report(const at::Tensor& A) {
  const auto state = kept::find<structure::State>(A);
  if (!state) return {};
  const std::lock_guard lock(state->mutex);
  return {state->factors ? state->factors->rank : 0, state->steps, state->fresh, state->on_H};
}

namespace {

/// What a state begins with, in the order in which structure_state writes it; all but |A| are whole numbers.
enum Head : size_t {
  kVersion,
  kSize,
  kRank,
  kScale,
  kSteps,
  kFresh,
  kOnH,
  kWait,
  kNextWait,
  kVerdict,
  kFollowed,
  kHead
};

constexpr double kCounted = 1LL << 53;  // whole numbers up to here are exact
struct HeadValue {
  const char* name;
  double least, most;
};
constexpr HeadValue kHeadValues[kHead] = {{"version", 2, 2},
                                          {"n", 1, 64},
                                          {"rank", 0, 1e4},
                                          {"|A|", 0, std::numeric_limits<double>::max()},
                                          {"steps", 0, kCounted},
                                          {"fresh", 0, kCounted},
                                          {"on_H", 0, kCounted},
                                          {"wait", -kCounted, kCounted},
                                          {"next_wait", structure::kShortestWait, structure::kLongestWait},
                                          {"verdict", structure::State::met, structure::State::refused},
                                          {"followed", 0, kCounted}};

void check_head(const std::vector<double>& state) {
  TORCH_CHECK(state.size() >= kHead, "set_structure_state: a state has ", static_cast<size_t>(kHead),
              " numbers or more, got ", state.size(), "; take what structure_state gave");
  for (size_t i = 0; i < kHead; ++i) {
    const auto& [name, least, most] = kHeadValues[i];
    const double value = state[i];
    TORCH_CHECK(value >= least && value <= most && (i == kScale || value == std::floor(value)),
                "set_structure_state: '", name, "' of a state must be a ", i == kScale ? "" : "whole ",
                "number from ", least, " to ", most, ", got ", value, "; take what structure_state gave");
  }
}

}  // namespace

// The layout: version, n, rank (0 without factors), |A|, the counters, the verdict, A's values, U, V, W, and
// those of the base.
at::Tensor structure_state(const at::Tensor& A) {
  if (!A.defined() || !A.has_storage() || A.dim() != 3) return {};
  const auto state = kept::find<structure::State>(A);
  if (!state) return {};
  const std::lock_guard lock(state->mutex);
  if (state->values.empty()) return {};  // another thread has only just begun it
  const Factors* f = state->factors.get();
  std::vector<double> all{2,
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
    for (const auto* factor : {&f->U, &f->V, &f->W, &f->base_U, &f->base_V, &f->base_W})
      all.insert(all.end(), factor->begin(), factor->end());
  const at::Tensor result = at::empty({static_cast<int64_t>(all.size())}, at::kDouble);
  std::copy(all.begin(), all.end(), result.mutable_data_ptr<double>());
  return result;
}

void set_structure_state(const at::Tensor& A, const at::Tensor& stored) {
  if (!stored.defined()) return kept::forget<structure::State>(A);
  TORCH_CHECK(
      A.defined() && A.has_storage() && A.dim() == 3 && A.size(0) == A.size(1) && A.size(1) == A.size(2),
      "set_structure_state: A must have the shape (n, n, n), got ",
      A.defined() ? A.sizes() : at::IntArrayRef());
  const std::vector<double> all = structure::values_of(stored);
  check_head(all);
  const int64_t n = A.size(0);
  const auto cells = static_cast<size_t>(A.numel()), rank = static_cast<size_t>(all[kRank]),
             size = static_cast<size_t>(n) * rank;
  TORCH_CHECK(all[kSize] == static_cast<double>(n) && all.size() == kHead + cells + 6 * size,
              "set_structure_state: the state of a structure tensor with n = ", n,
              " was expected, got one of n = ", all[kSize], " with ", all.size(), " numbers");
  TORCH_CHECK(
      rank == 0 || (all[kScale] > 0 &&
                    std::all_of(all.begin() + kHead, all.end(), [](double v) { return std::isfinite(v); })),
      "set_structure_state: factors and the tensor that they are of must be finite and not zero; take "
      "what structure_state gave");
  const auto fresh = std::make_shared<structure::State>();
  structure::State& state = *fresh;
  const auto count = [&all](Head place) { return static_cast<int64_t>(all[place]); };
  state.steps = count(kSteps), state.fresh = count(kFresh), state.on_H = count(kOnH);
  state.wait = count(kWait), state.next_wait = count(kNextWait);
  state.verdict = static_cast<structure::State::Verdict>(count(kVerdict));
  state.followed = count(kFollowed);
  auto at = all.begin() + kHead;
  const auto take = [&at](size_t count) {
    const auto begin = at;
    return std::vector<double>(begin, at += static_cast<std::ptrdiff_t>(count));
  };
  state.values = take(cells);
  if (rank == 0) return kept::put(A, fresh);
  auto factors = std::make_shared<Factors>();
  factors->n = n, factors->rank = static_cast<int64_t>(rank);
  for (auto* values :
       {&factors->U, &factors->V, &factors->W, &factors->base_U, &factors->base_V, &factors->base_W})
    *values = take(size);
  bool sound = false;
  on_one_thread([&] { sound = structure::restore(*factors); });
  if (sound) {
    structure::finish(*factors, all[kScale]);
    state.factors = std::move(factors);
  }
  kept::put(A, fresh);
}

}  // namespace quatrain::ops
