#include "ops/planner.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <cstdlib>

namespace quatrain::ops {

namespace {

constexpr std::array<std::pair<Way, const char*>, 4> kWays{{{Way::automatic, "auto"},
                                                            {Way::factored, "factored"},
                                                            {Way::mixed, "mixed"},
                                                            {Way::materialised, "materialised"}}};

thread_local Way guarded_way = Way::automatic;

Way environment_way() {
  static const Way way = [] {
    const char* text = std::getenv("QUATRAIN_WAY");
    return text && *text ? parse_way(text) : Way::automatic;
  }();
  return way;
}

}  // namespace

const char* name(Way way) {
  for (const auto& [value, text] : kWays)
    if (value == way) return text;
  TORCH_CHECK(false, "way: no name for the value ", static_cast<int>(way));
}

Way parse_way(std::string_view text) {
  for (const auto& [value, known] : kWays)
    if (text == known) return value;
  TORCH_CHECK(false, "linear: way must be auto, factored, mixed or materialised, got '", text, "'");
}

WayGuard::WayGuard(Way way) : before_(guarded_way) {
  guarded_way = way;
}
WayGuard::~WayGuard() {
  guarded_way = before_;
}

Way requested_way(Way argument) {
  if (argument != Way::automatic) return argument;
  return guarded_way != Way::automatic ? guarded_way : environment_way();
}

Problem make_problem(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  const algebra::Algebra* fixed = call.fixed();
  Problem problem;
  problem.rows = rows_of(x);
  problem.n = S.size(0);
  problem.out_features = problem.n * S.size(1);
  problem.in_features = problem.n * S.size(2);
  problem.rank = fixed ? fixed->factors().rank : call.factors.empty() ? 0 : call.factors[0].size(1);
  problem.element_size = static_cast<int64_t>(at::elementSize(call.compute_dtype(x)));
  problem.prepared = call.constant;
  problem.threads = at::get_num_threads();
  return problem;
}

namespace {

/// The sizes as real numbers, for the two models.
struct Sizes {
  double rows, k, d, n, R, share, bytes, threads;
  explicit Sizes(const Problem& p)
      : rows(static_cast<double>(p.rows)),
        k(static_cast<double>(p.out_features)),
        d(static_cast<double>(p.in_features)),
        n(static_cast<double>(p.n)),
        R(static_cast<double>(p.rank)),
        share(R / (n * n)),
        bytes(static_cast<double>(p.element_size)),
        threads(p.threads) {}
};

// The composed form. Per way: the arithmetic of the products, the values that are moved (weights, mixtures),
// the calls. Weights that are not kept between calls are first combined or expanded.
double composed_cost(const Problem& p, Way way) {
  constexpr double kFlops = 60e3, kBytes = 12e3, kCall = 2.0;  // a microsecond
  const Sizes s(p);
  double flops = 2 * s.rows * s.k * s.d, moved = s.k * s.d, calls = 1;
  if (way == Way::factored) {
    flops *= s.share;
    moved = s.share * s.k * s.d + (s.n + s.R) * s.rows * (s.d + s.k) / s.n;
    calls = 6;
    if (!p.prepared) moved += s.k * s.d / s.n + s.share * s.k * s.d, calls += 1;
  } else if (way == Way::mixed) {
    moved = s.k * s.d / s.n + (1 + s.n) * s.rows * s.d;
    calls = 4;
    if (!p.prepared) moved += 2 * s.k * s.d / s.n;
  } else if (!p.prepared && p.n > 1) {
    moved += s.k * s.d / s.n + 3 * s.k * s.d, calls += 3;  // the product with A, then the blocks put in place
  }
  return flops / kFlops + moved * s.bytes / kBytes + calls * kCall;
}

}  // namespace

double cost(const Problem& p, Way way) {
  return composed_cost(p, way);
}

Way plan(const Problem& problem, Way asked) {
  TORCH_CHECK(
      asked != Way::factored || problem.rank > 0,
      "linear: the way 'factored' needs factors of the learned A (see decompose); pass them or take mixed or "
      "materialised");
  if (asked != Way::automatic) return asked;
  if (problem.n == 1) return Way::materialised;
  Way best = Way::materialised;
  for (const Way way : {Way::mixed, Way::factored}) {
    if (way == Way::factored && problem.rank == 0) continue;
    if (cost(problem, way) < cost(problem, best)) best = way;
  }
  return best;
}

}  // namespace quatrain::ops
