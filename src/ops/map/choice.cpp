// What the planner is asked about a map.

#include "ops/map/choice.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "ops/engine/dense.h"
#include "ops/engine/options.h"
#include "ops/map/bilinear_map.h"

namespace quatrain::ops {

namespace {

/// Of rounding errors by packed products. The estimate is up to 7% low, where a mixture has but two terms; so
/// this keeps errors below twice the real layer's.
constexpr double kLargestGrowth = 1.85;

}  // namespace

Problem make_cpu_problem(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type) {
  Problem problem = make_problem(S, call, rows, type);
  problem.engine = (type == at::kFloat || type == at::kBFloat16) && rows * S.numel() > 0;
  problem.halves = type == at::kBFloat16 && has_fast_halves();
  problem.slow_dense = type == at::kFloat && engine::dense_is_slow();
  problem.alone = type == at::kFloat && problem.engine && requested_rows() != PlannedRows::automatic &&
                  engine::rows_stand_alone();
  problem.mixes_cheaply = problem.engine && problem.rank > 0 && rows <= engine::layout().few_rows &&
                          call.fixed() &&
                          kernels::cpu::has_cheap_outputs(mixtures(call)->factors().U_in.view());
  // The gradient of a learned tensor comes from the products themselves: those stay exact.
  if (problem.engine && problem.halves && problem.rank > 0 && (problem.prepared || !call.learned())) {
    const auto& growth = mixtures(call)->factors().growth();
    problem.packed =
        (problem.prepared ? growth.y : std::max({growth.y, growth.dx, growth.dS})) <= kLargestGrowth;
  }
  return problem;
}

structure::Search search_of(const Call& call) {
  if (call.way == Way::factored) return structure::Search::now;
  return call.constant ? structure::Search::never : structure::Search::at_times;
}

bool may_follow(const Problem& problem, const Call& call) {
  return problem.engine && call.learned() && problem.rank == 0 && structure::followed_rank(problem.n) > 0;
}

bool has_fast_halves() {
  const Bfloat16 asked = requested_bfloat16();
  TORCH_CHECK(
      asked != Bfloat16::packed || engine::multiplies_halves(),
      "bfloat16 = packed needs a processor with AVX512_BF16 or AMX, which this one has not; take auto "
      "or widened");
  return asked == Bfloat16::packed || (asked == Bfloat16::automatic && engine::prefers_halves());
}

Problem make_problem(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type) {
  Problem problem;
  const PlannedRows planned = requested_rows();
  const bool fixed = planned != PlannedRows::automatic;
  problem.rows = fixed ? static_cast<int64_t>(planned) : rows;
  problem.n = S.size(0);
  problem.out_features = problem.n * S.size(1);
  problem.in_features = problem.n * S.size(2);
  problem.rank = call.rank();
  problem.learned = call.learned();
  problem.factors_train = call.factored();
  problem.element_size = static_cast<int64_t>(at::elementSize(type));
  problem.narrow = type == at::kHalf;
  problem.prepared = call.constant;
  problem.traffic = fixed ? 0 : static_cast<int64_t>(requested_traffic());
  problem.threads = fixed ? 1 : at::get_num_threads();
  return problem;
}

Way foreseen_way(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type) {
  Problem problem = make_cpu_problem(S, call, rows, type);
  if (may_follow(problem, call)) {
    problem.rank = structure::followed_rank(problem.n);
    problem.followed = true;
    if (plan(problem, call.way) == Way::factored) {
      problem.rank = structure::foreseen_rank(*call.A, search_of(call)).value_or(problem.rank);
    } else {
      problem.rank = 0;
    }
  }
  return plan(problem, call.way);
}

}  // namespace quatrain::ops
