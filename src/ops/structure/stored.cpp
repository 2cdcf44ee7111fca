// What is known of a learned tensor, as numbers: for reports and for checkpoints.

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "ops/kept.h"
#include "ops/structure/fit.h"
#include "ops/structure/state.h"
#include "quatrain/ops.h"

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
  TORCH_CHECK(rank == 0 || structure::followed_rank(n) > 0,
              "set_structure_state: factors are followed from n = 2 to ", structure::kLargest,
              ", got some of n = ", n, "; take what structure_state gave");
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
  // The bound of sound factors: what fits less was never held.
  std::vector<double> error = structure::product_of(factors->U, factors->V, factors->W, n, factors->rank);
  for (size_t i = 0; i < cells; ++i) error[i] = all[kScale] * error[i] - state.values[i];
  TORCH_CHECK(
      squared_norm(error) <= 1e-12 * squared_norm(state.values),
      "set_structure_state: the factors of a state must be those of the tensor that it is of; take what "
      "structure_state gave");
  structure::finish(*factors, all[kScale]);
  state.factors = std::move(factors);  // without the inverse, which may not be needed
  kept::put(A, fresh);
}

}  // namespace quatrain::ops
