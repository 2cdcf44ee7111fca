#include "ops/engine/planner.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ops/engine/dense.h"
#include "ops/engine/engine.h"
#include "ops/engine/options.h"
#include "ops/engine/products.h"
#include "quatrain/conv_ops.h"

namespace quatrain::ops {

bool products_kept(const Problem& problem) {
  const Products asked = requested_products();
  if (asked != Products::automatic) return asked == Products::kept;
  // A product's value costs 2 d/n operations to compute again, and to store and read it as much as some 60.
  return problem.in_features / problem.n >= 32;
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

/// Microseconds to follow a learned n x n x n tensor's factors for a step, and to take its gradient from
/// theirs.
double follow_cost(int64_t n) {
  constexpr double kMicroseconds[] = {0, 0, 50, 60, 75, 115, 195, 330, 560};
  return n < static_cast<int64_t>(std::size(kMicroseconds)) ? kMicroseconds[n] : 1e9;
}

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

// The engine (AVX-512, float32), in microseconds. With kd = out * in, in thousands:
//
//                  call   threads  product       mixtures     weights         product calls
//   inference (weights are prepared)
//     factored     call   1.3      B kd R/n2     R B (k+d)    kd R/n2         each
//     mixed        call   .6       B kd          n B d        kd / n
//     materialised call   1.2      B kd                       kd
//   training (three passes; for a learned A its factors are followed, and R B k/n products kept, at .0005
//   each, or a fourth pass made; where A is learned its mixtures have no zeros and cost more)
//     factored     call   13       B kd R/n2     R B (k+d)    kd R/n2         each
//     mixed        call   7        B kd          n B (k+d)    kd / n
//     materialised call   12       B kd                       (a + .05 n) kd + .6 kd / threads
//
// The coefficients are those of two machines, fitted to `quatrain bench linear`:
//
// kXeon: over complex, quaternion, octonion and phm(4), widths 64 to 2048, batches 1 to 1024, one and two
// threads; materialised training and learned mixtures later, on a Xeon with AMX, one thread. There the choice
// costs more than 1.1 times the best way in one of 80 cases, 1.12 times.
//
// kEpyc: where ATen's products are slow, an EPYC of the fifth generation, one thread, over complex,
// quaternion, octonion, phm(2), phm(4) and phm(8), widths 64 to 1024, batches 1 to 1024. The choice costs
// more than 1.12 times the best way in 18 of 504 cases, at most 1.85 times, where a call takes 4 us. ATen's
// products have 99 GFLOP/s there beside 220 of the engine's. Those that are ATen's even so take kSlow times
// as long: a real layer's, whose materialised way has the bits of torch's, those of few rows, and the two
// that `mixed` has in its backward pass. Taken with AVX2 too, where it was not fitted: on an EPYC of the
// third generation, inference over complex, quaternion and octonion, widths 32 to 512, batches 1 to 8192, the
// choice costs more than 1.12 times the best way in 9 of 195 cases, at most 1.89 times; with kXeon in 10.
struct Fit {
  struct {
    double call, product, mixture, weights, each;
  } factored;
  struct {
    double call, product, mixture, weights;
  } mixed;
  struct {
    double call, product, weights;
  } materialised;
  struct {
    double call, product, mixture, learned_mixture, weights, learned_weights, each;
  } factored_training;
};
constexpr Fit kXeon{{1.35, 0.0113, 0.027, 0.012, 0.068},
                    {1.4, 0.0155, 1.06, 0.040},
                    {2.6, 0.0121, 0.069},
                    {15, 0.0114, 0.039, 0.09, 0.28, 0.43, 0.24}};
constexpr Fit kEpyc{{1.35, 0.0093, 0.0189, 0.010, 0.0247},
                    {1.4, 0.0145, 0.3, 0.020},
                    {2.4, 0.0105, 0.05},
                    {15, 0.0114, 0.025, 0.045, 0.16, 0.33, 0.12}};

double cached_cost(const Problem& p, Way way) {
  constexpr double kSlow = 1.7;
  // Shares of what is taken in training where products are our own and fetch the rows that the next panel
  // mixes; of an EPYC of the fourth generation.
  constexpr double kFetchedMixture = 0.8, kFetchedCall = 0.25;
  constexpr double kVector = 8;  // values that a row of a mixture takes the time of, where it is shorter
  const Fit& fit = p.slow_dense ? kEpyc : kXeon;
  const double atens = p.slow_dense ? kSlow : 1, dense = p.n == 1 || p.rows < engine::kFewRows ? atens : 1;
  const Sizes s(p);
  const double kd = s.k * s.d / 1000, inputs = s.rows * (s.k + s.d) / 1000;
  const double several = p.threads > 1;
  const auto blocks = [](double size, double block) { return std::max(1.0, size / block); };
  const double products = blocks(s.rows, 64) * blocks(s.k / s.n, 32) * blocks(s.d / s.n, 256);
  if (p.prepared) {
    if (way == Way::factored) {
      const auto& [call, product, mixture, weights, each] = fit.factored;
      const double rows =
          s.rows < 8 ? (s.rows + 8) / 2 : s.rows;  // a product of few rows is bound by its loads
      return call + 1.3 * several +
             (product * s.share * rows * kd + mixture * s.R * inputs + weights * s.share * kd +
              each * s.R * products) /
                 s.threads;
    }
    if (way == Way::mixed) {
      const auto& [call, product, mixture, weights] = fit.mixed;
      return call + 0.6 * several + (product * s.rows * kd + weights * kd / s.n) / s.threads +
             mixture * s.n * s.n * s.rows * std::max(s.d / s.n, kVector) / 1000;
    }
    const auto& [call, product, weights] = fit.materialised;
    return call + 1.2 * several + (product * dense * s.rows * kd + weights * kd) / s.threads;
  }
  if (way == Way::factored) {
    const auto& t = fit.factored_training;
    const bool trained = p.followed || p.factors_train;
    const double passes = trained && !products_kept(p) ? 4 : 3,
                 stored = trained && products_kept(p) ? s.R * s.rows * s.k / s.n : 0;
    const double weights = blocks(s.k / s.n, 64) * blocks(s.d / s.n, 32) * blocks(s.rows, 256);
    const bool fetched = !p.learned && s.rows / s.threads > engine::kPanelRows &&
                         engine::takes_own_products() &&
                         engine::stays_in_cache(static_cast<int64_t>(s.share * s.k * s.d));
    const double mixed = (p.learned ? t.learned_mixture : t.mixture) * (fetched ? kFetchedMixture : 1),
                 expanded = p.learned ? t.learned_weights : t.weights,
                 each = t.each * (fetched ? kFetchedCall : 1);
    return t.call + 13 * several + (p.followed ? follow_cost(p.n) : 0) +
           (0.0005 * stored +
            passes * (t.product * s.share * s.rows * kd + mixed * s.R * inputs + expanded * s.share * kd) +
            each * s.R * (2 * products + weights)) /
               s.threads;
  }
  if (way == Way::mixed)
    return 39 + 7 * several + (0.0141 + 0.0230 * atens) * s.rows * kd / s.threads + 0.95 * s.n * inputs +
           0.85 * kd / s.n;
  return 24 + 12 * several + (0.0346 * dense * s.rows * kd + 0.6 * kd) / s.threads + (0.25 + 0.05 * s.n) * kd;
}

/// True for so many bytes that they do not stay in a cache from one call to the next.
bool leave_caches(double bytes, int64_t traffic) {
  constexpr double kCaches = 6 << 20;
  return std::max(bytes, static_cast<double>(traffic)) > kCaches;
}

/// The time to read prepared weights that do not stay in a cache; 0 for others. Measured on one thread: rows
/// of S, four at a time, come at up to 22 GB/s on a Xeon with AMX, packed blocks at 17 on an EPYC of the
/// fourth generation, since products fetch them in their order. Two threads read 1.3 to 1.9 times as fast
/// there, for which the square root of their number stands. More than two were not measured.
double memory_cost(const Problem& p, Way way) {
  constexpr double kRows = 20e3, kBlocks = 17e3;  // bytes a microsecond
  if (!p.prepared) return 0;
  const Sizes s(p);
  const double share = way == Way::factored ? s.share
                       : way == Way::mixed  ? 1 / s.n
                                            : 1,
               bytes = share * s.k * s.d * s.bytes;
  if (!leave_caches(bytes, p.traffic)) return 0;
  return bytes / ((way == Way::mixed ? kRows : kBlocks) * std::sqrt(s.threads));
}

double engine_cost(const Problem& p, Way way) {
  if (way == Way::factored && keeps_unmixed(p, p.rows, static_cast<Traffic>(p.traffic))) {
    constexpr int64_t kMixing = 2;  // rows whose products take as long as the mixtures
    Problem mixing = p;
    mixing.rows += kMixing;
    return std::max(cached_cost(mixing, way), memory_cost(p, Way::mixed));
  }
  return std::max(cached_cost(p, way), memory_cost(p, way));
}

// bfloat16 where real products of it are much faster (AMX), in inference. The model of float32, with real and
// packed products at a sixth of the time, weights of half the bytes and twice its coefficient for mixtures.
// Not fitted, but held against `quatrain bench linear --dtype bfloat16` on a Xeon with AMX, quaternion and
// phm(4), widths 512 to 2048, batches 1 to 1024, one thread: in 28 of 30 cases no other way was more than a
// tenth faster, though small batches take a third to two thirds of the time that it says.
double halves_cost(const Problem& p, Way way) {
  if (way == Way::mixed) return engine_cost(p, way);
  const Sizes s(p);
  const double kd = s.k * s.d / 1000, several = p.threads > 1;
  if (way == Way::materialised)
    return std::max(2.6 + 1.2 * several + (0.0020 * s.rows * kd + 0.035 * kd) / s.threads,
                    memory_cost(p, way));
  const auto blocks = [](double size, double block) { return std::max(1.0, size / block); };
  const double products = blocks(s.rows, 64) * blocks(s.k / s.n, 32) * blocks(s.d / s.n, 256);
  return 1.35 + 1.3 * several +
         (0.0019 * s.share * s.rows * kd + 0.054 * s.R * s.rows * (s.k + s.d) / 1000 + 0.006 * s.share * kd +
          0.068 * s.R * products) /
             s.threads;
}

}  // namespace

double cost(const Problem& p, Way way) {
  if (!p.engine) return composed_cost(p, way);
  return p.halves ? halves_cost(p, way) : engine_cost(p, way);
}

bool keeps_unmixed(const Problem& p, int64_t rows, Traffic traffic) {
  const Sizes s(p);
  return p.prepared && p.engine && p.mixes_cheaply && p.element_size == 4 && p.rank > p.n &&
         rows <= engine::layout().few_rows && engine::takes_own_products() &&
         leave_caches(s.share * s.k * s.d * s.bytes, static_cast<int64_t>(traffic));
}

Way plan(const Problem& problem, Way asked) {
  if (problem.rows == 0 && problem.rank == 0 && asked == Way::factored)
    return Way::materialised;  // of nothing
  TORCH_CHECK(asked != Way::factored || problem.rank > 0,
              "the way 'factored' needs factors of the learned A (see decompose); pass them or take mixed or "
              "materialised");
  if (asked != Way::automatic) return asked;
  // Sums of H stay in float32; those of the other ways are rounded, to twice the error, and overflow earlier.
  if (problem.narrow) return Way::materialised;
  // A few rows that go through H are filled up to as many as are planned for.
  if (problem.alone && problem.rank > 0)
    return problem.n > 1 && cost(problem, Way::mixed) < cost(problem, Way::factored) ? Way::mixed
                                                                                     : Way::factored;
  // One dense product already; what `mixed` has over it is how it reads weights from memory, and `factored`
  // whose products it takes.
  if (problem.n == 1 && (problem.learned || !problem.slow_dense))
    return problem.engine && memory_cost(problem, Way::materialised) > 0 &&
                   cost(problem, Way::mixed) < cost(problem, Way::materialised)
               ? Way::mixed
               : Way::materialised;
  // Where real products of bfloat16 are that fast, what was not measured against them is not chosen: passes
  // of training, and products of widened mixtures.
  if (problem.halves && !problem.prepared) return Way::materialised;
  Way best = Way::materialised;
  for (const Way way : {Way::mixed, Way::factored}) {
    if (way == Way::factored && (problem.rank == 0 || (problem.halves && !problem.packed))) continue;
    if (cost(problem, way) < cost(problem, best)) best = way;
  }
  return best;
}

namespace {

// The coefficients of convolutions are sizes from which a way is the faster one, of `quatrain bench
// convolution` on an EPYC of the fourth and fifth generation and a Xeon with AMX, and of float64 on the first
// of these.

/// Blocks of a few units cost more to mix than their products save, and their products leave half of a vector
/// empty. The gradient of A costs n n products where H needs one.
int64_t fewest_units(const ConvolutionProblem& p) {
  if (!p.engine) return 16;
  if (p.fast_dense) return p.gives_A ? 64 : 32;
  return p.gives_A ? 16 : 9;
}

/// Multiplications of tiles of m x m; those that hang over the edge are whole tiles' work.
int64_t winograd_products(const ConvolutionProblem& p, int64_t m) {
  return (m + 2) * (m + 2) * ((p.height + m - 1) / m) * ((p.width + m - 1) / m);
}

int64_t winograd_tile(const ConvolutionProblem& p, Winograd asked) {
  constexpr int64_t kFewPlanes = 8;  // of the composed form: with fewer it takes as long as R convolutions
  if (asked == Winograd::none || !p.fits_winograd || !(p.engine || p.plain_products)) return 0;
  if (asked != Winograd::automatic) return asked == Winograd::f2 ? 2 : 4;
  if (!p.engine && p.planes < kFewPlanes) return 0;
  // A panel is a row of tiles at least. One that is far from the second level cache gains nothing.
  constexpr int64_t kLargestRow = 8 << 20;  // bytes
  const int64_t row = 16 * ((p.width + 1) / 2) * p.n * std::max(p.units_in, p.units_out) * 4;
  if (p.engine && row > kLargestRow) return 0;
  const bool several = p.height > 4 && p.width > 4;
  if (several && p.less_precision && winograd_products(p, 4) < winograd_products(p, 2)) return 4;
  return winograd_products(p, 2) < 9 * p.height * p.width ? 2 : 0;
}

}  // namespace

ConvolutionPlan plan(const ConvolutionProblem& problem, Way way, Winograd winograd) {
  // R groups of three axes are slow in ATen, and the composed form has no factors' gradients of a learned A.
  const bool composed = problem.plain_products && problem.axes < 3 && !problem.gives_A,
             asked = problem.fits_winograd && (winograd == Winograd::f2 || winograd == Winograd::f4),
             pays = (problem.n > 1 || asked) && (problem.engine || composed) &&
                    std::min(problem.units_in, problem.units_out) >= fewest_units(problem);
  if (way == Way::factored || (way == Way::automatic && pays))
    return {Way::factored, winograd_tile(problem, winograd)};
  return {};
}

}  // namespace quatrain::ops
