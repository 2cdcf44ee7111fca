// The engine below the operators, in float32 against float64: all ways and passes, tails, blocks, panels,
// threads, instruction sets. Errors are held against those of the real layer of the same sizes, H in one
// dense product.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <numeric>

#include "kernels/cpu/kernels.h"
#include "ops/engine/mixing.h"
#include "ops/engine/upcoming.h"
#include "ops/memory/recycled.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Product;
using ops::Way;
using test::all_ways;
using test::expanded;
using test::relative_error;
using test::table_of;

/// One layer's float32 tensors, and what they give in float64.
struct LinearCase {
  at::Tensor A, x, S, bias, grad;
  at::Tensor y, dx, dS, dA;
  /// Relative errors of the real layer in float32: of y, dx and its weight's gradient. dS sums n times as
  /// many terms as that: its rival may be a real product of as many.
  double real_y, real_dx, real_dS;
  /// Where sums have few terms the real layer's error may be zero by luck: then a few roundings are allowed.
  bool few_terms;

  double allowed(double real) const { return std::max(2 * real, few_terms ? 7e-7 : 1e-7); }

  LinearCase(const at::Tensor& A_, int64_t rows, int64_t m, int64_t p)
      : LinearCase(A_, torch::randn({rows, A_.size(0) * p}), torch::randn({A_.size(0), m, p}),
                   torch::randn({rows, A_.size(0) * m})) {}

  LinearCase(const at::Tensor& A_, const at::Tensor& x_, const at::Tensor& S_, const at::Tensor& grad_)
      : A(A_), x(x_), S(S_), bias(torch::randn({grad_.size(1)})), grad(grad_) {
    const int64_t n = S.size(0), m = S.size(1), p = S.size(2);
    const at::Tensor H = expanded(A, S), x64 = x.to(torch::kDouble), g64 = grad.to(torch::kDouble);
    y = torch::linear(x64, H, bias.to(torch::kDouble));
    dx = g64.mm(H);
    const at::Tensor dH = g64.t().mm(x64), blocks = dH.view({n, m, n, p}).permute({0, 2, 1, 3}).contiguous();
    const at::Tensor rows_of_blocks = blocks.view({n * n, m * p});
    dS = A.view({n, n * n}).mm(rows_of_blocks).view({n, m, p});
    dA = S.to(torch::kDouble).reshape({n, m * p}).mm(rows_of_blocks.t()).view({n, n, n});
    few_terms = std::min({x.size(0), n * m, n * p}) < 256;
    const at::Tensor h = H.to(torch::kFloat);
    real_y = relative_error(torch::linear(x, h, bias), y);
    real_dx = relative_error(grad.mm(h), dx);
    const at::Tensor a = torch::randn({m, n * x.size(0)}), b = torch::randn({n * x.size(0), p});
    real_dS = std::max(relative_error(grad.t().mm(x), dH),
                       relative_error(a.mm(b), a.to(torch::kDouble).mm(b.to(torch::kDouble))));
  }
};

/// dA has no rival: n^3 sums of many terms each, with cancellation.
constexpr double kAllowedOfA = 1.5e-6;

/// Puts the instruction set and the number of threads back.
class Machine {
 public:
  ~Machine() {
    force(set_);
    torch::set_num_threads(threads_);
  }
  static void force(const std::string& set) {
    EXPECT_TRUE(kernels::cpu::force(set.c_str()));
    EXPECT_EQ(ops::instruction_sets()[0], set);
  }

 private:
  std::string set_ = ops::instruction_sets()[0];
  int threads_ = torch::get_num_threads();
};

void check(const LinearCase& c, const Product& product, Way way) {
  const at::Tensor y = ops::linear(c.x, c.S, c.bias, product, way);
  ASSERT_EQ(y.sizes(), c.y.sizes());
  EXPECT_LE(relative_error(y, c.y), c.allowed(c.real_y)) << "y";
  {
    const torch::NoGradGuard no_grad;  // constant: from prepared weights, the second time from those kept
    for (int time = 0; time < 2; ++time)
      EXPECT_LE(relative_error(ops::linear(c.x, c.S, c.bias, product, way, {}, true), c.y),
                c.allowed(c.real_y))
          << "y, prepared";
    ops::drop_prepared(c.S);
  }
  const bool learned = product.A.defined();
  const auto [dx, dS, dA] = ops::linear_backward(c.grad, c.x, c.S, product, way, {}, {true, true, learned});
  EXPECT_LE(relative_error(dx, c.dx), c.allowed(c.real_dx)) << "dx";
  EXPECT_LE(relative_error(dS, c.dS), c.allowed(c.real_dS)) << "dS";
  if (learned) {
    EXPECT_LE(relative_error(dA, c.dA), kAllowedOfA) << "dA";
  }
}

const std::vector<std::string> kAlgebras{"complex",       "quaternion", "octonion", "dual",
                                         "clifford(2,1)", "cyclic(5)",  "sedenion"};

/// A learned copy of an algebra's table, with its factors.
Product learned_float(const std::string& name) {
  const auto& f = algebra::get(name).factors();
  const auto factor = [&](const std::vector<double>& values) {
    return torch::from_blob(const_cast<double*>(values.data()), {f.n, f.rank}, torch::kDouble).clone();
  };
  return {"learned", table_of(name).to(torch::kFloat), {factor(f.U), factor(f.V), factor(f.W)}};
}

struct EngineCase {
  const char* algebra;
  int64_t rows, m, p;
};

// A transform of Hadamard's is a part of each of their factors.
TEST(Engine, MixturesOfQuaternionsArePaired) {
  const auto& factors = algebra::get("quaternion").factors();
  const ops::engine::Mixings mixings(factors.U.data(), factors.V.data(), factors.W.data(), 4, factors.rank);
  for (const auto* mixing :
       {&mixings.U_in, &mixings.V_in, &mixings.W_in, &mixings.U_out, &mixings.V_out, &mixings.W_out})
    EXPECT_TRUE(mixing->view().group[0].paired);
}

TEST(Engine, WhatAMixtureNeedNotMake) {
  const auto& f = algebra::get("quaternion").factors();
  const auto mixing = ops::engine::Mixing::into_products(f.V.data(), 4, f.rank);
  std::vector<int32_t> plain;
  for (int64_t r = 0; r < f.rank; ++r) {
    plain.push_back(mixing.plain(r));
    for (int64_t j = 0; j < 4; ++j)
      if (plain.back() >= 0) {
        EXPECT_EQ(f.V[static_cast<size_t>(j * f.rank + r)], j == plain.back());
      }
  }
  EXPECT_EQ(std::count(plain.begin(), plain.end(), -1), 4);
  EXPECT_EQ(mixing.made().view().outputs, 4);
  EXPECT_TRUE(mixing.made().view().group[0].paired);
  // Those of products are never read in place.
  EXPECT_EQ(ops::engine::Mixing::copies(3).plain(1), -1);
  EXPECT_EQ(ops::engine::Mixing::copies(3).made().view().outputs, 3);
}

// Products share what they fetch: one stretch, then the other, each value at most once and nearly all.
TEST(Engine, UpcomingMemoryIsSharedOut) {
  const std::vector<float> memory(5000);
  for (const auto& [first, second, products] : {std::array<int64_t, 3>{1000, 2000, 16},
                                                {0, 700, 3},
                                                {700, 0, 5},
                                                {10, 20, 100},
                                                {0, 0, 4},
                                                {100, 50, 0}}) {
    const float* const later = memory.data() + 2500;
    ops::engine::Upcoming upcoming({memory.data(), first}, {later, second}, products);
    const float* expected = first > 0 ? memory.data() : later;
    int64_t fetched = 0;
    for (int64_t i = 0; i < std::max<int64_t>(products, 1); ++i) {
      const auto share = upcoming.next();
      if (share.count == 0) continue;
      EXPECT_EQ(share.from, expected);
      expected = share.from + share.count;
      if (expected == memory.data() + first) expected = later;
      fetched += share.count;
    }
    const int64_t all = first + second;
    EXPECT_LE(fetched, all);
    if (products > 0) {
      EXPECT_GT(fetched, all - products - all / products - 1);
    }
  }
}

TEST(Engine, RowsThatAreNoOneStretchAreNotFetched) {
  std::vector<float> memory(100);
  const auto stretch = [&](int64_t row, at::ScalarType dtype, int64_t first, int64_t last) {
    return ops::engine::stretch_of({memory.data(), 3, row, false, dtype}, 6, first, last);
  };
  EXPECT_EQ(stretch(7, torch::kFloat, 0, 4).count, 0);
  EXPECT_EQ(stretch(6, torch::kFloat, 4, 4).count, 0);
  EXPECT_EQ(stretch(6, torch::kFloat, 2, 5).from, memory.data() + 12);
  EXPECT_EQ(stretch(6, torch::kFloat, 2, 5).count, 18);
  EXPECT_EQ(stretch(6, torch::kBFloat16, 2, 5).from, memory.data() + 6);
  EXPECT_EQ(stretch(6, torch::kBFloat16, 2, 5).count, 9);
  EXPECT_EQ(ops::engine::stretch_of({}, 0, 0, 4).count, 0);
}

// Inputs of short rows are multiplied where they lie where a mixture is one of them as it is.
TEST(Engine, BitsDoNotDependOnHowFarRowsAreApart) {
  const Machine machine;
  torch::set_num_threads(1);
  torch::manual_seed(8);
  const torch::NoGradGuard no_grad;
  for (const std::string name : {"quaternion", "octonion", "clifford(2,1)", "tessarine", "real"})
    for (const int64_t rows : {1, 30, 600})
      for (const bool prepared : {false, true}) {
        const int64_t n = algebra::get(name).n();
        const at::Tensor S = torch::randn({n, 17, 9}), wide = torch::randn({rows, 300 + n * 9}),
                         x = wide.slice(1, 0, n * 9), wide_grad = torch::randn({rows, 300 + n * 17}),
                         grad = wide_grad.slice(1, 0, n * 17);
        const Product product{name, {}, {}};
        const auto y = [&](const at::Tensor& t) {
          return ops::linear(t, S, {}, product, Way::factored, {}, prepared);
        };
        const auto dx = [&](const at::Tensor& t) {
          return std::get<0>(ops::linear_backward(t, x, S, product, Way::factored, {}, {true, false, false}));
        };
        SCOPED_TRACE(name + ", " + std::to_string(rows) + " rows" + (prepared ? ", prepared" : ""));
        EXPECT_TRUE(torch::equal(y(x), y(x.contiguous())));
        EXPECT_TRUE(torch::equal(dx(grad), dx(grad.contiguous())));
      }
}

// Each number of rows meets other block sizes in each algebra, and each instruction set every number of rows.
TEST(Engine, EveryTailOfRowsAndBlocks) {
  const Machine machine;
  torch::manual_seed(1);
  std::vector<int64_t> all_rows(34);
  std::iota(all_rows.begin(), all_rows.end(), 0);
  all_rows.insert(all_rows.end(), {63, 65, 200});
  constexpr int64_t kSizes[] = {1, 3, 15, 17, 31, 33, 70};
  const auto sets = ops::instruction_sets();
  size_t step = 0;
  for (const std::string& name : kAlgebras)
    for (const int64_t rows : all_rows) {
      ++step;
      const int64_t m = kSizes[step % 7], p = kSizes[(step / 7 + 3 * step) % 7];
      const LinearCase c(table_of(name), rows, m, p);
      for (size_t i = 0; i < sets.size(); ++i) {
        Machine::force(sets[i]);
        const int threads = 1 + static_cast<int>((step + i) % 3);
        torch::set_num_threads(threads);
        for (const Way way : all_ways()) {
          SCOPED_TRACE(name + ", " + ops::name(way) + ", " + std::to_string(rows) + " rows, blocks of " +
                       std::to_string(m) + " x " + std::to_string(p) + ", " + sets[i] + ", " +
                       std::to_string(threads) + " threads");
          check(c, {name, {}, {}}, way);
        }
      }
    }
}

TEST(Engine, SeveralBlocksOfDepthPanelsAndStrips) {
  const Machine machine;
  torch::manual_seed(2);
  for (const auto& [name, rows, m, p] :
       {EngineCase{"quaternion", 700, 70, 700}, EngineCase{"quaternion", 700, 700, 70},
        EngineCase{"octonion", 530, 130, 150}, EngineCase{"complex", 1100, 333, 340},
        // Few weights, whose products fetch the next panel's rows, and inputs that are multiplied in place.
        EngineCase{"quaternion", 701, 17, 16}, EngineCase{"octonion", 600, 9, 33},
        EngineCase{"complex", 530, 64, 64}, EngineCase{"cyclic(5)", 517, 20, 7},
        EngineCase{"quaternion", 600, 9, 660}}) {
    const LinearCase c(table_of(name), rows, m, p);
    for (const int threads : {1, 2, 3})
      for (const Way way : all_ways()) {
        SCOPED_TRACE(std::string(name) + ", " + ops::name(way) + ", " + std::to_string(rows) + " rows, " +
                     std::to_string(threads) + " threads");
        torch::set_num_threads(threads);
        check(c, {name, {}, {}}, way);
      }
  }
}

TEST(Engine, LearnedTensorsWithFactorsOfTheirOwn) {
  const Machine machine;
  torch::manual_seed(3);
  for (const std::string name : {"complex", "quaternion", "cyclic(5)", "octonion"})
    for (const auto& [rows, m, p] : {std::array<int64_t, 3>{1, 17, 33}, {31, 33, 15}, {200, 70, 70}}) {
      const LinearCase c(table_of(name), rows, m, p);
      for (const std::string& set : ops::instruction_sets()) {
        Machine::force(set);
        for (const Way way : all_ways()) {
          SCOPED_TRACE(name + ", " + ops::name(way) + ", " + std::to_string(rows) + " rows, " + set);
          Product product = learned_float(name);
          check(c, product, way);
          // Products in another order, so that inputs as they are come before the mixtures that are made.
          for (at::Tensor& factor : product.factors) factor = factor.flip({1});
          check(c, product, way);
        }
      }
    }
}

TEST(Engine, AnyStrides) {
  torch::manual_seed(4);
  const at::Tensor A = table_of("quaternion");
  constexpr int64_t kM = 18, kP = 20, kIn = 4 * kP, kOut = 4 * kM;
  for (const int64_t rows : {45, 601}) {  // one panel, and several for each of two threads
    const at::Tensor x = torch::randn({rows, kIn}), S = torch::randn({4, kM, kP}),
                     grad = torch::randn({rows, kOut});
    const auto run = [&](const char* what, const at::Tensor& x_, const at::Tensor& S_,
                         const at::Tensor& grad_) {
      const LinearCase c(A, x_, S_, grad_);
      for (const Way way : all_ways()) {
        SCOPED_TRACE(std::string(what) + ", " + std::to_string(rows) + " rows, " + ops::name(way));
        check(c, {"quaternion", {}, {}}, way);
      }
    };
    run("x by columns", torch::randn({kIn, rows}).t(), S, grad);
    run("every second value of x", torch::randn({rows, 2 * kIn}).slice(1, 0, 2 * kIn, 2), S, grad);
    run("x a part of longer rows", torch::randn({rows, kIn + 7}).slice(1, 3, kIn + 3), S, grad);
    run("one row of x for all", torch::randn({1, kIn}).expand({rows, kIn}), S, grad);
    run("one value of x for all", torch::randn({1, 1}).expand({rows, kIn}), S, grad);
    run("S with its last axes changed", x, torch::randn({4, kP, kM}).transpose(1, 2), grad);
    run("S a part of a longer tensor", x, torch::randn({4, kM, kP + 5}).slice(2, 2, kP + 2), grad);
    run("grad of a sum", x, S, torch::randn({}).expand({rows, kOut}));
    run("grad by columns", x, S, torch::randn({kOut, rows}).t());
    run("grad a part of longer rows", x, S, torch::randn({rows, kOut + 9}).slice(1, 4, kOut + 4));
  }
}

// Whatever products this machine has for bfloat16; bfloat16_test.cpp forces them.
TEST(Engine, HalvesAndHalvesFromFloatWeights) {
  const Machine machine;
  torch::manual_seed(7);
  const auto half = [](const at::Tensor& t) { return t.to(torch::kBFloat16); };
  for (const auto& [name, rows, m, p] :
       {EngineCase{"octonion", 1, 17, 33}, EngineCase{"dual", 9, 33, 15},
        EngineCase{"quaternion", 33, 31, 70}, EngineCase{"quaternion", 330, 9, 330}}) {
    const int64_t n = algebra::get(name).n();
    const at::Tensor x = half(torch::randn({rows, n * p})), S = half(torch::randn({n, m, p})),
                     grad = half(torch::randn({rows, n * m})), bias = half(torch::randn({n * m}));
    const LinearCase c(table_of(name), x.to(torch::kFloat), S.to(torch::kFloat), grad.to(torch::kFloat));
    const at::Tensor y = c.y - c.bias + bias.to(torch::kDouble), h = half(expanded(c.A, c.S));
    const double real = relative_error(torch::linear(x, h, bias), y),
                 real_x = relative_error(grad.mm(h), c.dx);
    for (const std::string& set : ops::instruction_sets())
      for (const at::Tensor& weight : {S, c.S})
        for (const Way way : all_ways()) {
          SCOPED_TRACE(std::string(name) + ", " + ops::name(way) + ", " + std::to_string(rows) + " rows, " +
                       set + ", weights in " + c10::toString(weight.scalar_type()));
          Machine::force(set);
          const Product product{name, {}, {}};
          const at::Tensor got = ops::linear(x, weight, bias, product, way, torch::kBFloat16);
          EXPECT_EQ(got.scalar_type(), torch::kBFloat16);
          EXPECT_LE(relative_error(got, y), 2 * real);
          const auto [dx, dS, dA] =
              ops::linear_backward(grad, x, weight, product, way, torch::kBFloat16, {true, true, false});
          EXPECT_EQ(dx.scalar_type(), torch::kBFloat16);
          EXPECT_EQ(dS.scalar_type(), weight.scalar_type());
          EXPECT_LE(relative_error(dx, c.dx), 2 * real_x);
          EXPECT_LE(relative_error(dS, c.dS), 2 * std::max(real_x, 2e-3));
        }
  }
}

TEST(Engine, ASecondCallGivesTheSameBits) {
  const Machine machine;
  torch::manual_seed(5);
  const Product product = learned_float("quaternion");
  for (const int threads : {1, 2, 3})
    for (const auto& [rows, m, p] : {std::array<int64_t, 3>{5, 70, 33}, {200, 70, 33}, {400, 33, 350}}) {
      torch::set_num_threads(threads);
      const at::Tensor x = torch::randn({rows, 4 * p}), S = torch::randn({4, m, p}),
                       bias = torch::randn({4 * m}), grad = torch::randn({rows, 4 * m});
      for (const Way way : all_ways()) {
        SCOPED_TRACE(std::string(ops::name(way)) + ", " + std::to_string(rows) + " rows, " +
                     std::to_string(threads) + " threads");
        const auto all = [&] {
          const auto [dx, dS, dA] = ops::linear_backward(grad, x, S, product, way, {}, {true, true, true});
          return std::vector<at::Tensor>{ops::linear(x, S, bias, product, way), dx, dS, dA};
        };
        const auto first = all(), second = all();
        for (size_t i = 0; i < first.size(); ++i)
          EXPECT_TRUE(torch::equal(first[i], second[i])) << "result " << i;
        // Prepared weights are the same numbers in the same order.
        const torch::NoGradGuard no_grad;
        ops::drop_prepared(S);
        EXPECT_TRUE(torch::equal(ops::linear(x, S, bias, product, way, {}, true), first[0]));
        EXPECT_TRUE(torch::equal(ops::linear(x, S, bias, product, way, {}, true), first[0]));
        ops::drop_prepared(S);
      }
    }
}

// Scratch memory is kept between calls: what a larger call left there must not be seen by a smaller one.
TEST(Engine, NothingIsLeftOfEarlierCalls) {
  torch::manual_seed(6);
  const Product product{"quaternion", {}, {}};
  const at::Tensor S = torch::randn({4, 37, 41}), x = torch::randn({13, 164});
  for (const Way way : all_ways()) {
    const at::Tensor before = ops::linear(x, S, {}, product, way);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    ops::linear(torch::full({300, 4 * 256}, nan), torch::full({4, 128, 256}, nan), {}, product, way);
    EXPECT_TRUE(torch::equal(ops::linear(x, S, {}, product, way), before)) << ops::name(way);
  }
}

/// Bytes of this process's own memory.
int64_t resident() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  return -1;
}

TEST(Engine, MemoryIsFlatOverAThousandBatchesOfAnySize) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer holds back what is freed";
#endif
  torch::manual_seed(7);
  const Product learned{"learned", torch::randn({4, 4, 4}), {}}, fixed{"octonion", {}, {}};
  for (const Product& product : {fixed, learned}) {
    const int64_t n = product.A.defined() ? 4 : 8;
    const at::Tensor S = torch::randn({n, 128 / n, 256 / n}, torch::requires_grad());
    if (product.A.defined()) product.A.requires_grad_();
    const auto call = [&](int64_t rows) {
      const at::Tensor x = torch::randn({rows, 256});
      for (const Way way : all_ways()) {
        if (way != Way::factored || !product.A.defined())
          ops::linear(x, S.detach(), {}, product, way, {}, true);
        ops::linear(x, S, {}, product, way).sum().backward();
      }
    };
    // Every size once: ATen compiles and keeps a kernel for each shape of its products.
    for (int64_t rows = 1; rows <= 120; ++rows) call(rows);
    const auto grown = [&] {
      const int64_t before = resident();
      for (int64_t i = 0; i < 1000; ++i) call(1 + (i * 7919) % 120);
      return resident() - before;
    };
    // Some megabytes of room for the allocator; an output alone that stayed in each call would be thirty.
    // What stays grows every time; what a busy system maps once does not.
    constexpr int64_t kRoom = 4 << 20;
    int64_t least = grown();
    for (int round = 1; round < 3 && least >= kRoom; ++round) least = std::min(least, grown());
    EXPECT_LT(least, kRoom) << product.algebra;
  }
}

// Memory that lies idle serves the next of its size: one that may not lie idle takes none with it.
TEST(Recycled, ABlockAboveTheLimitLeavesTheOthers) {
  for (const int64_t count : {int64_t{1} << 18, int64_t{1} << 19})
    ops::recycled_empty({count}), ops::recycled_empty({count});
  size_t idle = 0;
  {
    const at::Tensor large = ops::recycled_empty({ops::kRecycledBytes / 4 + 1024});
    idle = ops::recycled_idle();
    ASSERT_GT(idle, 0U);
  }
  EXPECT_EQ(ops::recycled_idle(), idle);
}

TEST(Recycled, ASmallBlockDoesNotDropALargeOne) {
  ops::recycled_empty({int64_t{1} << 22});
  const size_t idle = ops::recycled_idle();
  ops::recycled_empty({16});
  EXPECT_GE(ops::recycled_idle(), idle);
}

}  // namespace
}  // namespace quatrain
