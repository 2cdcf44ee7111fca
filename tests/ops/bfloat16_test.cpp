// The factored way in bfloat16, with its mixtures widened and with packed products: errors against those of
// the real layer in the same type, H in one dense product. A machine without fast products of this type
// packs them all the same when it is told to.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/engine/mixing.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Bfloat16;
using ops::Product;
using ops::Way;
using test::expanded;
using test::relative_error;
using test::table_of;

at::Tensor half(const at::Tensor& t) {
  return t.to(torch::kBFloat16);
}
/// Rounded to bfloat16, in float64.
at::Tensor rounded(const at::Tensor& t) {
  return half(t).to(torch::kDouble);
}

/// Factors {U, V, W} of a fixed algebra, each (n, R), float64.
std::vector<at::Tensor> factors_of(const std::string& algebra) {
  const auto& f = algebra::get(algebra).factors();
  std::vector<at::Tensor> tensors;
  for (const auto* values : {&f.U, &f.V, &f.W})
    tensors.push_back(
        torch::from_blob(const_cast<double*>(values->data()), {f.n, f.rank}, torch::kDouble).clone());
  return tensors;
}

double growth(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  return ops::engine::rounding_growth(out.const_data_ptr<double>(), left.const_data_ptr<double>(),
                                      right.const_data_ptr<double>(), out.size(0), out.size(1));
}

/// The same by rounding random operands.
double simulated_growth(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  const int64_t n = out.size(0);
  const at::Tensor x = rounded(torch::randn({80, n, 40})), S = rounded(torch::randn({n, 40, 40}));
  const auto product = [&](const at::Tensor& a, const at::Tensor& b) {  // (R, rows, width)
    return torch::einsum("cr,rzo->zco", {out, torch::bmm(a, b)});
  };
  const at::Tensor a = torch::einsum("jr,zjm->rzm", {left, x}), b = torch::einsum("ir,imo->rmo", {right, S});
  const at::Tensor exact = product(a, b);
  return relative_error(rounded(product(rounded(a), rounded(b))), exact) /
         relative_error(rounded(exact), exact);
}

TEST(Bfloat16, GrowthOfErrorsIsForetold) {
  torch::manual_seed(1);
  const auto check = [](const std::vector<at::Tensor>& f) {
    const int64_t passes[3][3] = {{2, 1, 0}, {1, 2, 0}, {0, 2, 1}};  // out, left, right of y, dx, dS
    for (const auto& [out, left, right] : passes) {
      const auto at = [&f](int64_t i) { return f[static_cast<size_t>(i)]; };
      const double estimate = growth(at(out), at(left), at(right)),
                   seen = simulated_growth(at(out), at(left), at(right));
      EXPECT_LT(estimate, 1.04 * seen);
      EXPECT_GT(1.1 * estimate, seen);  // a sum of two values is rounded a little worse
    }
  };
  for (const std::string& name : algebra::names()) {
    if (algebra::get(name).n() > 16) continue;
    SCOPED_TRACE(name);
    check(factors_of(name));
  }
  for (const int64_t n : {2, 3, 4, 6}) {
    SCOPED_TRACE("learned, n = " + std::to_string(n));
    const auto found = ops::decompose(torch::randn({n, n, n}, torch::kDouble));
    ASSERT_TRUE(found.sound);
    check(found.factors);
  }
}

/// One layer and what it gives in float64; and the squares of errors over many of them, against those of the
/// real layer: of small ones alone either may be anything by luck.
class Errors {
 public:
  struct Case {
    at::Tensor A, x, S, bias, grad, H;

    Case(const at::Tensor& A_, int64_t rows, int64_t m, int64_t p)
        : Case(A_, torch::randn({rows, A_.size(0) * p}), torch::randn({A_.size(0), m, p}),
               torch::randn({rows, A_.size(0) * m})) {}
    Case(const at::Tensor& A_, const at::Tensor& x_, const at::Tensor& S_, const at::Tensor& grad_)
        : A(A_), x(half(x_)), S(half(S_)), bias(half(torch::randn({grad_.size(1)}))), grad(half(grad_)) {
      H = expanded(A, S);
    }
  };

  void forward(const Case& c, const Product& product, bool constant = true) {
    const at::Tensor y = torch::linear(c.x.to(torch::kDouble), c.H, c.bias.to(torch::kDouble));
    const torch::NoGradGuard no_grad;
    const at::Tensor got = ops::linear(c.x, c.S, c.bias, product, Way::factored, {}, constant);
    EXPECT_EQ(got.scalar_type(), torch::kBFloat16);
    add(got, torch::linear(c.x, half(c.H), c.bias), y);
    if (constant) {  // from what is kept
      EXPECT_TRUE(torch::equal(ops::linear(c.x, c.S, c.bias, product, Way::factored, {}, true), got));
    }
  }
  void backward(const Case& c, const Product& product) {
    const auto [dx, dS, dA] =
        ops::linear_backward(c.grad, c.x, c.S, product, Way::factored, {}, {true, true, c.A.requires_grad()});
    add(dx, c.grad.mm(half(c.H)), c.grad.to(torch::kDouble).mm(c.H));
    const int64_t n = c.S.size(0), m = c.S.size(1), p = c.S.size(2);
    const at::Tensor dH = c.grad.to(torch::kDouble).t().mm(c.x.to(torch::kDouble));
    const at::Tensor exact = c.A.view({n, n * n})
                                 .mm(dH.view({n, m, n, p}).permute({0, 2, 1, 3}).reshape({n * n, m * p}))
                                 .view({n, m, p});
    add(dS, half(exact), exact);  // a real layer's gradient of its weight rounds its result, too
  }

  /// Twice the real layer's.
  void expect_within_the_rule() const {
    EXPECT_LE(ours_, 2 * 2 * real_) << "growth " << std::sqrt(ours_ / real_);
  }

 private:
  void add(const at::Tensor& ours, const at::Tensor& real, const at::Tensor& exact) {
    ASSERT_EQ(ours.sizes(), exact.sizes());
    if (exact.numel() == 0) return;
    const double error = relative_error(ours, exact);
    EXPECT_LT(error, 0.04);
    ours_ += error * error * static_cast<double>(exact.numel());
    real_ += std::pow(relative_error(real, exact), 2) * static_cast<double>(exact.numel());
  }

  double ours_ = 0, real_ = 0;
};

/// False on a processor without products of bfloat16.
bool packs() {
  static const bool works = [] {
    const ops::Bfloat16Guard guard(Bfloat16::packed);
    try {
      ops::planned_way(half(torch::empty({1, 8})), half(torch::empty({4, 2, 2})), {"quaternion", {}, {}});
    } catch (const c10::Error&) {
      return false;
    }
    return true;
  }();
  return works;
}

const std::vector<Bfloat16>& all_products() {
  static const std::vector<Bfloat16> all =
      packs() ? std::vector{Bfloat16::widened, Bfloat16::packed} : std::vector{Bfloat16::widened};
  return all;
}

class PackedBfloat16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!packs()) GTEST_SKIP() << "this processor has no products of bfloat16";
  }
};

/// The bytes of a prepared weight, packed or not.
int64_t bytes(int64_t rank, int64_t m, int64_t p, bool packed) {
  return packed ? rank * ((p + 1) / 2 * 2) * ((m + 15) / 16 * 16) * 2 : rank * m * p * 4;
}

TEST(Bfloat16, EveryAlgebraKeepsTheRule) {
  torch::manual_seed(2);
  int packed_algebras = 0;
  for (const std::string& name : algebra::names()) {
    const auto& algebra = algebra::get(name);
    if (algebra.n() == 1) continue;
    const int64_t m = 8 * std::max<int64_t>(1, 16 / algebra.n()) + 3, p = m + 2;
    const Errors::Case c(table_of(name), 70, m, p);
    const bool may_pack = growth(factors_of(name)[2], factors_of(name)[1], factors_of(name)[0]) < 1.9;
    packed_algebras += may_pack;
    for (const Bfloat16 products : all_products()) {
      SCOPED_TRACE(name + ", " + ops::name(products));
      const ops::Bfloat16Guard guard(products);
      Errors forward, backward;
      forward.forward(c, {name, {}, {}});
      EXPECT_EQ(ops::prepared_size().bytes,
                bytes(algebra.factors().rank, m, p, may_pack && products == Bfloat16::packed));
      forward.expect_within_the_rule();
      ops::drop_prepared(c.S);
      backward.backward(c, {name, {}, {}});
      backward.expect_within_the_rule();
      ops::drop_prepared(c.S);
    }
  }
  EXPECT_GE(packed_algebras, 8);  // complex, dual, quaternion, group_z2(3), ...
}

TEST(Bfloat16, LearnedTensorsWithFactors) {
  torch::manual_seed(3);
  for (const int64_t n : {2, 4}) {
    const at::Tensor A = torch::randn({n, n, n});
    const auto found = ops::decompose(A);
    const Errors::Case c(A.to(torch::kDouble), 40, 35, 37);
    for (const Bfloat16 products : all_products()) {
      SCOPED_TRACE(std::to_string(n) + ", " + ops::name(products));
      const ops::Bfloat16Guard guard(products);
      Errors errors;
      errors.forward(c, {"learned", A, found.factors});
      EXPECT_EQ(ops::prepared_size().bytes,
                bytes(found.rank, 35, 37,
                      products == Bfloat16::packed &&
                          growth(found.factors[2], found.factors[1], found.factors[0]) < 1.85));
      errors.expect_within_the_rule();
      ops::drop_prepared(c.S);
    }
  }
}

TEST(Bfloat16, EveryTailOfRowsAndBlocks) {
  const int threads_before = torch::get_num_threads();
  torch::manual_seed(4);
  constexpr int64_t kSizes[] = {1, 2, 3, 15, 17, 31, 32, 33, 70};
  std::vector<int64_t> all_rows(34);
  std::iota(all_rows.begin(), all_rows.end(), 0);
  all_rows.insert(all_rows.end(), {63, 65, 300});
  size_t step = 0;
  for (const std::string name : {"complex", "quaternion", "group_z2(3)"})
    for (const Bfloat16 products : all_products()) {
      const ops::Bfloat16Guard guard(products);
      Errors forward, backward;
      for (const int64_t rows : all_rows) {
        ++step;
        const int64_t m = kSizes[step % 9], p = kSizes[(step / 9 + 4 * step) % 9];
        SCOPED_TRACE(name + ", " + ops::name(products) + ", " + std::to_string(rows) + " rows, blocks of " +
                     std::to_string(m) + " x " + std::to_string(p));
        torch::set_num_threads(1 + static_cast<int>(step % 3));
        const Errors::Case c(table_of(name), rows, m, p);
        forward.forward(c, {name, {}, {}});
        forward.forward(c, {name, {}, {}}, false);
        ops::drop_prepared(c.S);
        backward.backward(c, {name, {}, {}});
      }
      SCOPED_TRACE(name + ", " + ops::name(products));
      forward.expect_within_the_rule();
      backward.expect_within_the_rule();
    }
  torch::set_num_threads(threads_before);
}

TEST_F(PackedBfloat16, SeveralBlocksOfDepthPanelsAndStrips) {
  torch::manual_seed(5);
  const ops::Bfloat16Guard guard(Bfloat16::packed);
  for (const auto& [rows, m, p] : {std::array<int64_t, 3>{700, 70, 701}, {600, 701, 70}, {5, 333, 999}}) {
    SCOPED_TRACE(std::to_string(rows) + " rows, blocks of " + std::to_string(m) + " x " + std::to_string(p));
    const Errors::Case c(table_of("quaternion"), rows, m, p);
    Errors forward, backward;
    forward.forward(c, {"quaternion", {}, {}});
    forward.expect_within_the_rule();
    ops::drop_prepared(c.S);
    backward.backward(c, {"quaternion", {}, {}});
    backward.expect_within_the_rule();
  }
}

TEST_F(PackedBfloat16, AnyStrides) {
  torch::manual_seed(6);
  constexpr int64_t kRows = 45, kM = 18, kP = 21, kIn = 4 * kP, kOut = 4 * kM;
  const at::Tensor A = table_of("quaternion"), x = torch::randn({kRows, kIn}), S = torch::randn({4, kM, kP}),
                   grad = torch::randn({kRows, kOut});
  const ops::Bfloat16Guard guard(Bfloat16::packed);
  const auto run = [&](const char* what, const at::Tensor& x_, const at::Tensor& S_,
                       const at::Tensor& grad_) {
    SCOPED_TRACE(what);
    Errors errors;
    const Errors::Case c(A, x_, S_, grad_);
    errors.forward(c, {"quaternion", {}, {}});
    ops::drop_prepared(c.S);
    errors.backward(c, {"quaternion", {}, {}});
    errors.expect_within_the_rule();
  };
  run("x by columns", half(torch::randn({kIn, kRows})).t(), S, grad);
  run("every second value of x", half(torch::randn({kRows, 2 * kIn})).slice(1, 0, 2 * kIn, 2), S, grad);
  run("x a part of longer rows", half(torch::randn({kRows, kIn + 7})).slice(1, 3, kIn + 3), S, grad);
  run("one row of x for all", half(torch::randn({1, kIn})).expand({kRows, kIn}), S, grad);
  run("S with its last axes changed", x, half(torch::randn({4, kP, kM})).transpose(1, 2), grad);
  run("grad by columns", x, S, half(torch::randn({kOut, kRows})).t());
}

TEST_F(PackedBfloat16, FloatWeightsAreRoundedOnce) {
  torch::manual_seed(7);
  const ops::Bfloat16Guard guard(Bfloat16::packed);
  const at::Tensor S = torch::randn({4, 35, 67}), x = half(torch::randn({50, 268})),
                   H = expanded(table_of("quaternion"), S);
  const at::Tensor exact = x.to(torch::kDouble).mm(H.t());
  const double real = relative_error(torch::linear(x, half(H)), exact);
  for (const bool constant : {false, true})
    EXPECT_LE(
        relative_error(
            ops::linear(x, S, {}, {"quaternion", {}, {}}, Way::factored, torch::kBFloat16, constant), exact),
        2 * real);
  ops::drop_prepared(S);
}

// Packed products hold a state of the processor: ATen's own must not meet it, nor ours theirs.
TEST_F(PackedBfloat16, TakesTurnsWithATen) {
  torch::manual_seed(8);
  const ops::Bfloat16Guard guard(Bfloat16::packed);
  const at::Tensor S = half(torch::randn({4, 64, 64})), weight = half(torch::randn({256, 256}));
  for (const int64_t rows : {1, 7, 64, 300}) {
    const at::Tensor x = half(torch::randn({rows, 256}));
    const auto ours = [&] { return ops::linear(x, S, {}, {"quaternion", {}, {}}, Way::factored, {}, true); };
    const at::Tensor first = ours(), first_real = torch::linear(x, weight);
    for (int time = 0; time < 20; ++time) {
      EXPECT_TRUE(torch::equal(torch::linear(x, weight), first_real));
      EXPECT_TRUE(torch::equal(ours(), first));
    }
  }
  ops::drop_prepared(S);
}

// Odd sums are filled up to even ones: with zeros, not with what an earlier call left.
TEST_F(PackedBfloat16, NothingIsLeftOfEarlierCalls) {
  torch::manual_seed(9);
  const ops::Bfloat16Guard guard(Bfloat16::packed);
  const Product product{"quaternion", {}, {}};
  const at::Tensor S = half(torch::randn({4, 37, 41})), x = half(torch::randn({13, 164}));
  const at::Tensor before = ops::linear(x, S, {}, product, Way::factored);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto of_nan = [&](at::IntArrayRef sizes) { return half(torch::full(sizes, nan)); };
  for (int time = 0; time < 3; ++time) {
    ops::linear(of_nan({300, 4 * 256}), of_nan({4, 128, 256}), {}, product, Way::factored);
    EXPECT_TRUE(torch::equal(ops::linear(x, S, {}, product, Way::factored), before));
  }
}

// What was prepared for one kind of products does not serve the other.
TEST_F(PackedBfloat16, PreparedFormsAreToldApart) {
  torch::manual_seed(10);
  const at::Tensor S = half(torch::randn({4, 16, 16})), x = half(torch::randn({8, 64}));
  const auto run = [&](Bfloat16 products) {
    const ops::Bfloat16Guard guard(products);
    return ops::linear(x, S, {}, {"quaternion", {}, {}}, Way::factored, {}, true);
  };
  const at::Tensor widened = run(Bfloat16::widened), packed = run(Bfloat16::packed);
  EXPECT_FALSE(torch::equal(widened, packed));
  EXPECT_LT(relative_error(packed, widened), 0.01);
  EXPECT_TRUE(torch::equal(run(Bfloat16::widened), widened));
  EXPECT_TRUE(torch::equal(run(Bfloat16::packed), packed));
  ops::drop_prepared(S);
}

TEST_F(PackedBfloat16, WhereRealProductsAreFastThePlannerIsCareful) {
  const ops::Bfloat16Guard guard(Bfloat16::packed);
  const auto planned = [](const std::string& name, int64_t rows, int64_t width, bool constant) {
    const int64_t n = algebra::get(name).n();
    return ops::planned_way(half(torch::empty({rows, width})), half(torch::empty({n, width / n, width / n})),
                            {name, {}, {}}, constant);
  };
  EXPECT_EQ(planned("quaternion", 32, 1024, true), Way::factored);
  EXPECT_EQ(planned("quaternion", 1024, 256, true),
            Way::materialised);  // its mixtures cost more than they save
  for (const int64_t rows : {32, 1024}) {
    EXPECT_EQ(planned("octonion", rows, 1024, true), Way::materialised);  // its errors would grow too much
    EXPECT_EQ(planned("quaternion", rows, 1024, false), Way::materialised);
  }
}

TEST(Bfloat16, NamesAreChecked) {
  for (const Bfloat16 value : {Bfloat16::automatic, Bfloat16::widened, Bfloat16::packed})
    EXPECT_EQ(ops::parse_bfloat16(ops::name(value)), value);
  EXPECT_THROW(ops::parse_bfloat16("half"), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
