// The cache of prepared weights: it is used, and no change of a weight goes unseen.

#include <gtest/gtest.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <c10/core/InferenceMode.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/engine/engine.h"
#include "ops/engine/products.h"
#include "ops/map/prepared.h"
#include "ops/memory/huge_pages.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Product;
using ops::Way;
using test::all_ways;
using test::expanded;
using test::relative_error;
using test::table_of;

class Prepared : public testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(5);
    S_ = torch::randn({4, 8, 8});
    x_ = torch::randn({3, 32});
    before_ = ops::prepared_size();
  }
  void TearDown() override { ops::drop_prepared(S_); }

  at::Tensor run(Way way = Way::materialised) {
    torch::NoGradGuard no_grad;
    return ops::linear(x_, S_, {}, {"quaternion", {}, {}}, way, {}, true);
  }
  at::Tensor expected() const {
    return x_.to(torch::kDouble).matmul(expanded(table_of("quaternion"), S_.detach()).t());
  }
  /// The form kept last is the materialised one: it is asked for first, and kept again at the end.
  void expect_fresh(const char* road) {
    for (const Way way : {Way::materialised, Way::factored, Way::factored, Way::mixed, Way::materialised})
      EXPECT_LT(relative_error(run(way), expected()), 1e-5) << road << ", " << ops::name(way);
  }
  int64_t kept() const { return ops::prepared_size().weights - before_.weights; }

  at::Tensor S_, x_;
  ops::PreparedSize before_;
};

// From 8 vectors on, n of a row, the mixed way of a decoder reads a packed copy; what it computes for a row
// does not hang on the others where it shall not.
TEST_F(Prepared, OfTheMixedWay) {
  const torch::NoGradGuard no_grad;
  at::Tensor S = torch::randn({4, 70, 33});
  const at::Tensor x = torch::randn({40, 132});
  const auto run = [&](int64_t rows) {
    return ops::linear(x.narrow(0, 0, rows), S, {}, {"quaternion", {}, {}}, Way::mixed, {}, true);
  };
  const auto expect_right = [&](int64_t rows) {
    const at::Tensor H = expanded(table_of("quaternion"), S);
    EXPECT_LT(relative_error(run(rows), x.narrow(0, 0, rows).to(torch::kDouble).matmul(H.t())), 1e-5) << rows;
  };
  expect_right(40);
  const ops::TrafficGuard decoder(ops::Traffic{1 << 25});
  expect_right(1);
  EXPECT_EQ(ops::prepared_size().bytes - before_.bytes, 0);
  expect_right(2);
  EXPECT_EQ(ops::prepared_size().bytes - before_.bytes, S.nbytes());
  S.mul_(2);
  expect_right(40);
  EXPECT_EQ(ops::prepared_size().bytes - before_.bytes, S.nbytes());
  const ops::PlannedRowsGuard planned(ops::PlannedRows{32});
  for (const int64_t rows : {1, 2, 3, 7, 33})
    EXPECT_TRUE(run(rows).equal(run(40).narrow(0, 0, rows))) << rows;
  ops::drop_prepared(S);
}

// A few rows of the factored way read weights from memory as they are, n parts in place of R, with the same
// bits, where mixing them costs little.
TEST_F(Prepared, UnmixedForAFewRows) {
  const torch::NoGradGuard no_grad;
  const int64_t few = ops::engine::layout().few_rows;
  const bool own = ops::engine::takes_own_products();
  for (const std::string algebra : {"quaternion", "dual_quaternion", "complex", "octonion", "cyclic(5)"})
    for (const auto& [m, p] : {std::pair<int64_t, int64_t>{70, 33}, {16, 700}, {3, 1}}) {
      const int64_t n = algebra::get(algebra).n();
      const at::Tensor S = torch::randn({n, m, p}), x = torch::randn({few + 1, n * p}),
                       bias = torch::randn({n * m});
      const auto run = [&](int64_t rows) {
        return ops::linear(x.narrow(0, 0, rows), S, bias, {algebra, {}, {}}, Way::factored, {}, true);
      };
      std::vector<at::Tensor> expected(1);
      for (int64_t rows = 1; rows <= few + 1; ++rows) expected.push_back(run(rows));
      ops::drop_prepared(S);
      const ops::TrafficGuard from_memory(ops::Traffic{1 << 25});
      for (int64_t rows = 1; rows <= few + 1; ++rows) {
        EXPECT_TRUE(run(rows).equal(expected[static_cast<size_t>(rows)])) << algebra << ", " << rows;
        const bool unmixed = ops::prepared_size().bytes - before_.bytes == static_cast<int64_t>(S.nbytes());
        EXPECT_EQ(unmixed, own && rows <= few && algebra.ends_with("quaternion")) << algebra << ", " << rows;
      }
      ops::drop_prepared(S);
    }
}

/// Bytes of huge pages in the mapping that holds an address.
int64_t huge_bytes_at(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto place = reinterpret_cast<uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    long kilobytes = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin <= place && place < end;
    else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %ld kB", &kilobytes) == 1)
      return int64_t{kilobytes} << 10;
  }
  return 0;
}

// Weights that are read from memory lie in huge pages afterwards, and have the values they had, as has what
// lies beside them.
TEST_F(Prepared, InHugePages) {
  const torch::NoGradGuard no_grad;
  const auto large = [] { return torch::randn({3, 4, 520, 600}); };  // 15 MB
  const at::Tensor probe = large();
  ops::use_huge_pages(probe);
  if (huge_bytes_at(probe.const_data_ptr()) == 0) GTEST_SKIP() << "this system has no huge pages on request";
  const at::Tensor all = large(), before = all.clone(), S = all[1], x = torch::randn({1, 2400});
  const auto in_huge_pages = [&] { return huge_bytes_at(S.const_data_ptr()); };
  const int64_t at_first = in_huge_pages();
  const at::Tensor expected = x.to(torch::kDouble).matmul(expanded(table_of("quaternion"), S).t());
  for (int time = 0; time < 2; ++time)
    EXPECT_LT(relative_error(ops::linear(x, S, {}, {"quaternion", {}, {}}, Way::mixed, {}, true), expected),
              1e-5);
  EXPECT_TRUE(in_huge_pages() >= at_first + 4 * (1 << 20) ||
              2 * in_huge_pages() >= static_cast<int64_t>(all.nbytes()))
      << at_first;
  EXPECT_TRUE(all.equal(before));
  ops::drop_prepared(S);
}

// A constant real layer of some rows multiplies with weights that were packed once, where ATen brings MKL.
TEST_F(Prepared, OfARealLayer) {
  const torch::NoGradGuard no_grad;
  for (const auto& [out, in] : {std::pair{40, 24}, std::pair{513, 300}}) {
    at::Tensor S = torch::randn({1, out, in});
    const at::Tensor bias = torch::randn({out});
    for (const int64_t rows : {1, 2, 33, 128, 256, 257}) {
      const at::Tensor x = torch::randn({rows, in + 5}).narrow(1, 3, in);  // rows that lie apart
      const auto run = [&] { return ops::linear(x, S, bias, {"real", {}, {}}, Way::materialised, {}, true); };
      const auto expected = [&] {
        return torch::linear(x.to(torch::kDouble), S[0].to(torch::kDouble), bias.to(torch::kDouble));
      };
      EXPECT_LT(relative_error(run(), expected()), 1e-6) << rows;
      const bool packed = kept() > 0;
      if (rows == 1 || rows > 256) {
        EXPECT_FALSE(packed) << rows;
      } else if (at::hasMKL()) {
        EXPECT_TRUE(packed) << rows;
      }
      S.mul_(-2);  // what was packed is out of date
      EXPECT_LT(relative_error(run(), expected()), 1e-6) << rows;
      ops::drop_prepared(S);
    }
  }
}

TEST_F(Prepared, IsKeptOnceALayer) {
  for (const Way way : all_ways()) {
    run(way);
    run(way);
    EXPECT_EQ(kept(), 1);
  }
  EXPECT_GT(ops::prepared_size().bytes, before_.bytes);
  ops::drop_prepared(S_);
  EXPECT_EQ(kept(), 0);
}

TEST_F(Prepared, IsUsed) {
  run();
  S_.data().view({-1})[3] = 1e3;  // one value, unseen by version and sample: the documented exception
  EXPECT_GT(relative_error(run(), expected()), 0.1);
  ops::drop_prepared(S_);
  EXPECT_LT(relative_error(run(), expected()), 1e-5);
}

TEST_F(Prepared, SeesWritesThatHaveNoVersion) {
  run();
  S_.data().mul_(2);  // as collectives write
  expect_fresh("data");
}

TEST_F(Prepared, IsNotKeptUnlessConstant) {
  torch::NoGradGuard no_grad;
  ops::linear(x_, S_, {}, {"quaternion", {}, {}}, Way::materialised, {}, false);
  EXPECT_EQ(kept(), 0);
}

TEST_F(Prepared, GoesWithItsWeight) {
  run();
  EXPECT_EQ(kept(), 1);
  S_ = torch::randn({4, 8, 8});
  EXPECT_EQ(kept(), 0);
}

TEST_F(Prepared, SeesWritesInPlace) {
  run();
  S_.mul_(2);
  expect_fresh("mul_");
  S_[1].zero_();
  expect_fresh("a view's zero_");
  S_.copy_(torch::randn({4, 8, 8}));
  expect_fresh("copy_");
}

TEST_F(Prepared, SeesAnotherStorage) {
  run();
  S_.set_data(torch::randn({4, 8, 8}));
  expect_fresh("set_data");
  S_.set_data(S_.detach().mul(3));
  expect_fresh("set_data again");
  at::Tensor moved = S_.to(torch::kDouble);
  x_ = x_.to(torch::kDouble);
  S_.set_data(moved);
  expect_fresh("to(double)");
}

// As torch.nn.utils.vector_to_parameters makes them: S's own version stays.
TEST_F(Prepared, SeesWritesOfAnotherTensorOverItsMemory) {
  const torch::NoGradGuard no_grad;
  at::Tensor vector = torch::randn({256});
  S_.set_data(vector.view({4, 8, 8}));
  expect_fresh("a view of it");
  vector.mul_(2);
  S_.set_data(vector.view({4, 8, 8}));
  expect_fresh("mul_ of what it is a view of");
  std::fill_n(vector.mutable_data_ptr<float>(), 256, 0.5f);  // as another process does
  expect_fresh("its memory");
  vector.mul_(3);
  vector.reset();
  expect_fresh("mul_ of what is gone");
}

// Another thread writes between reading and keeping.
TEST_F(Prepared, KeepsNothingThatWasReadBeforeAWrite) {
  const torch::NoGradGuard no_grad;
  const auto constant = [](const Product& product) {
    ops::Call call = ops::make_call(product);
    call.constant = true;
    return call;
  };
  const ops::Call call = constant({"quaternion", {}, {}});
  const auto keep = [&](const ops::Versions& read) {
    ops::prepared(S_, call, read, {ops::Form::composed, Way::materialised}, [&] { return S_.clone(); });
    return kept();
  };
  const ops::Versions before(S_, call);
  S_.mul_(2);
  EXPECT_EQ(keep(before), 0);
  EXPECT_EQ(keep(ops::Versions(S_, call)), 1);
  const ops::Call learned = constant({"learned", torch::randn({4, 4, 4}), {}});
  const ops::Versions of_learned(S_, learned);
  learned.A->mul_(2);
  EXPECT_NE(of_learned, ops::Versions(S_, learned));
}

// They are no ints, as MKL's distances are.
TEST_F(Prepared, OfRowsThatAreFarApart) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kApart = (int64_t{1} << 31) + 64, kWidth = 64, kBytes = 4 * (kApart + kWidth);
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "there is no address space for rows that far apart";
  const at::Tensor x = torch::from_blob(memory, {2, kWidth}, {kApart, 1},
                                        [](void*p) { ::munmap(p, kBytes); }),
                   S = torch::randn({1, kWidth, kWidth});
  x.copy_(torch::randn({2, kWidth}));
  const at::Tensor y = ops::linear(x, S, {}, {"real", {}, {}}, Way::materialised, {}, true);
  EXPECT_LT(relative_error(y, x.to(torch::kDouble).matmul(S[0].t().to(torch::kDouble))), 1e-5);
  ops::drop_prepared(S);
}

TEST_F(Prepared, SeesAnAddressUsedAgain) {
  for (int trial = 0; trial < 20; ++trial) {
    S_ = torch::randn({4, 8, 8});
    EXPECT_LT(relative_error(run(), expected()), 1e-5);
  }
}

TEST_F(Prepared, SeesASliceOfOneStorage) {
  const at::Tensor flat = torch::randn({2, 4, 8, 8});
  for (const int64_t part : {0, 1, 0, 1}) {
    S_ = flat[part];
    EXPECT_LT(relative_error(run(), expected()), 1e-5);
  }
  flat.add_(1);
  expect_fresh("a write to the whole");
}

TEST_F(Prepared, SeesEveryOptimizer) {
  const auto trial = [&](auto make) {
    at::Tensor S = torch::randn({4, 8, 8}).requires_grad_();
    S_ = S;
    auto optimizer = make(std::vector<at::Tensor>{S});
    for (int step = 0; step < 3; ++step) {
      run();
      optimizer->zero_grad();
      ops::linear(x_, S, {}, {"quaternion", {}, {}}, Way::automatic, {}, true).pow(2).sum().backward();
      run();  // between backward and step
      optimizer->step();
      expect_fresh("an optimizer's step");
    }
  };
  trial([](auto p) { return std::make_unique<torch::optim::Adam>(p); });
  trial([](auto p) { return std::make_unique<torch::optim::SGD>(p, 0.1); });
}

// A fused optimizer writes through the data pointer and leaves the version alone.
TEST_F(Prepared, KeepsNothingForAWeightInTraining) {
  at::Tensor S = torch::randn({4, 8, 8}).requires_grad_();
  S_ = S;
  run();
  ops::linear(x_, S, {}, {"quaternion", {}, {}}, Way::automatic, {}, true).pow(2).sum().backward();
  run();
  EXPECT_EQ(kept(), 0);
  for (int64_t i = 0; i < S.numel(); ++i) S.data_ptr<float>()[i] += 1;
  expect_fresh("a write behind the version's back");
  ops::drop_prepared(S_);  // what eval() does
  run();
  EXPECT_EQ(kept(), 1);
}

TEST_F(Prepared, SeesTheTypeAndTheAlgebra) {
  torch::NoGradGuard no_grad;
  run();
  const at::Tensor low =
      ops::linear(x_, S_, {}, {"quaternion", {}, {}}, Way::materialised, torch::kBFloat16, true);
  EXPECT_EQ(low.scalar_type(), torch::kBFloat16);
  const at::Tensor other = ops::linear(x_, S_, {}, {"split_quaternion", {}, {}}, Way::materialised, {}, true);
  EXPECT_LT(
      relative_error(other, x_.to(torch::kDouble).matmul(expanded(table_of("split_quaternion"), S_).t())),
      1e-5);
  expect_fresh("back again");
}

TEST_F(Prepared, SeesALearnedTensorAndItsFactors) {
  torch::NoGradGuard no_grad;
  at::Tensor A = table_of("quaternion").to(torch::kFloat);
  const auto check = [&](const Product& product, Way way) {
    const at::Tensor got = ops::linear(x_, S_, {}, product, way, {}, true);
    EXPECT_LT(relative_error(got, x_.to(torch::kDouble).matmul(expanded(product.A, S_).t())), 1e-5);
  };
  check({"learned", A, {}}, Way::materialised);
  A.mul_(2);
  check({"learned", A, {}}, Way::materialised);
  A.set_data(torch::randn({4, 4, 4}));
  check({"learned", A, {}}, Way::materialised);
  A = table_of("quaternion").to(torch::kFloat);
  const auto& f = algebra::get("quaternion").factors();
  const auto factor = [&](const std::vector<double>& v) {
    return torch::from_blob(const_cast<double*>(v.data()), {f.n, f.rank}, torch::kDouble).clone();
  };
  check({"learned", A, {factor(f.U), factor(f.V), factor(f.W)}}, Way::factored);
  check({"learned", A, {factor(f.U) * 2, factor(f.V), factor(f.W) / 2}}, Way::factored);
}

TEST_F(Prepared, InferenceTensorsAreNotKept) {
  c10::InferenceMode guard;
  S_ = torch::randn({4, 8, 8});
  run();
  EXPECT_EQ(kept(), 0);
  S_.mul_(2);
  expect_fresh("a write in inference mode");
}

TEST_F(Prepared, ServesConcurrentCallers) {
  const at::Tensor y = run().clone();
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 50; ++i) {
        if (!torch::allclose(run(all_ways()[static_cast<size_t>((caller + i) % 3)]), y, 1e-4, 1e-4)) ++wrong;
        if (i % 10 == caller) ops::drop_prepared(S_);
      }
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// bfloat16 that is widened and float32 are multiplied alike, but read S in types of their own.
TEST_F(Prepared, SeesTheTypeThatSIsReadIn) {
  const torch::NoGradGuard no_grad;
  const ops::Bfloat16Guard widened(ops::Bfloat16::widened);
  S_ = torch::randn({8, 8, 8}).to(torch::kHalf);
  x_ = torch::randn({3, 64});
  const at::Tensor wanted = x_.to(torch::kDouble).matmul(expanded(table_of("octonion"), S_).t());
  for (const Way way : all_ways())
    for (const auto& [type, allowed] : {std::pair{torch::kBFloat16, 2e-2}, {torch::kFloat, 1e-6}})
      EXPECT_LT(relative_error(ops::linear(x_, S_, {}, {"octonion", {}, {}}, way, type, true), wanted),
                allowed)
          << ops::name(way) << ", " << type;
}

TEST_F(Prepared, SeesAViewInAnotherType) {
  const torch::NoGradGuard no_grad;
  const at::Tensor half = torch::randn({4, 8, 8}).to(torch::kHalf);
  for (const Way way : all_ways())
    for (const at::Tensor& S : {half, half.view(torch::kBFloat16), half})
      EXPECT_LT(relative_error(ops::linear(x_, S, {}, {"quaternion", {}, {}}, way, torch::kFloat, true),
                               x_.to(torch::kDouble).matmul(expanded(table_of("quaternion"), S).t())),
                1e-5)
          << ops::name(way) << ", " << S.scalar_type();
}

}  // namespace
}  // namespace quatrain
