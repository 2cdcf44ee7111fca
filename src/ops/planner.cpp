#include "ops/planner.h"

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

// The cost model. Three prices, in the units of one thread of a current server: the ratios matter, not the
// scale.
constexpr double kFlopsPerMicrosecond = 60e3;  // dense products
constexpr double kBytesPerMicrosecond = 12e3;  // transforms and weights that are streamed
constexpr double kCallMicroseconds = 2.0;      // one ATen call

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

// Per way: the arithmetic of the products, the bytes of weights read, the bytes that transforms move, the
// calls.
//
//   factored      2 B k d R/n^2    weights R/n^2 k d    inputs (n + R) B d/n, outputs (n + R) B k/n    6
//   calls mixed         2 B k d          weights k d / n      mixed inputs (1 + n) B d 4 calls materialised
//   2 B k d          weights k d          none                                           1 call
//
// Weights that are not kept between calls must first be combined (R k d/n^2 written from k d/n) or expanded
// (k d written).
double cost(const Problem& p, Way way) {
  const double rows = static_cast<double>(p.rows), k = static_cast<double>(p.out_features),
               d = static_cast<double>(p.in_features), n = static_cast<double>(p.n),
               R = static_cast<double>(p.rank), bytes = static_cast<double>(p.element_size);
  double flops = 2 * rows * k * d, moved = 0, calls = 1;
  switch (way) {
    case Way::factored:
      flops *= R / (n * n);
      moved = R / (n * n) * k * d + (n + R) * rows * (d + k) / n;
      calls = 6;
      if (!p.prepared) {
        moved += k * d / n + R / (n * n) * k * d;
        calls += 1;
      }
      break;
    case Way::mixed:
      moved = k * d / n + (1 + n) * rows * d;
      calls = 4;
      if (!p.prepared) moved += 2 * k * d / n;
      break;
    case Way::materialised:
      moved = k * d;
      if (!p.prepared && p.n > 1) {
        moved += k * d / n + 3 * k * d;  // the product with A, then the blocks put in place
        calls += 3;
      }
      break;
    case Way::automatic:
      return 0;
  }
  return flops / kFlopsPerMicrosecond + moved * bytes / kBytesPerMicrosecond + calls * kCallMicroseconds;
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
