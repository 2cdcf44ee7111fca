// The map that is resolved once and applied many times: every way and pass, onto views with strides, added to
// what is there, of inputs in pieces, with an epilogue, inside a parallel region; against float64.

#include "ops/map/bilinear_map.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/reference.h"

namespace quatrain {
namespace {

using kernels::cpu::Activation;
using ops::BilinearMap;
using ops::Way;
using ops::engine::Blocks;
using ops::engine::Piece;
using test::all_ways;
using test::expanded;
using test::relative_error;
using test::table_of;

constexpr double kAllowed = 2e-6;

ops::Call call_of(const ops::Product& product, Way way, bool constant = false) {
  ops::Call call = ops::make_call(product);
  call.way = way;
  call.constant = constant;
  return call;
}

/// (rows, n width) whose components lie apart from each other and rows apart from each other.
struct Strided {
  at::Tensor whole, view;  // view: (rows, n, width)
  Strided(int64_t rows, int64_t n, int64_t width)
      : whole(torch::randn({rows, 2, n, width + 3})), view(whole.select(1, 1).narrow(2, 1, width)) {}
  Blocks blocks() const {
    return {view.data_ptr(), view.stride(1), view.stride(0), false, view.scalar_type()};
  }
  at::Tensor values() const { return view.reshape({view.size(0), -1}).to(torch::kDouble); }
};

Blocks plain(const at::Tensor& t, int64_t width) {
  return BilinearMap::blocks_of_rows(t, width);
}

at::Tensor activated(const at::Tensor& t, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return t.relu();
    case Activation::tanh:
      return t.tanh();
    case Activation::sigmoid:
      return t.sigmoid();
    default:
      return t;
  }
}

struct Sizes {
  int64_t rows, m, p;
};
const std::vector<Sizes> kSizes{{1, 5, 7}, {33, 40, 9}, {70, 33, 400}};
const std::vector<std::string> kMapAlgebras{"real", "complex", "quaternion", "octonion", "cyclic(5)"};

template <class Check>
void for_each_map(const Check& check) {
  torch::manual_seed(1);
  for (const std::string& algebra : kMapAlgebras)
    for (const Sizes& sizes : kSizes)
      for (const Way way : all_ways()) {
        if (algebra == "real" && way != Way::materialised) continue;
        SCOPED_TRACE(algebra + ", " + std::to_string(sizes.rows) + " rows, " + ops::name(way));
        const int64_t n = algebra::get(algebra).n();
        const at::Tensor S =
            torch::randn({n, sizes.m, sizes.p}) / std::sqrt(static_cast<double>(n * sizes.p));
        check(algebra, S, way, sizes);
      }
}

TEST(Map, AppliesOntoViewsFromPieces) {
  for_each_map([](const std::string& algebra, const at::Tensor& S, Way way, const Sizes& s) {
    const int64_t n = S.size(0), first = s.p / 3;
    for (const bool often : {false, true}) {
      BilinearMap map(S, call_of({algebra, {}, {}}, way), s.rows, at::kFloat);
      map.prepare(false, often);
      const Strided a(s.rows, n, first), b(s.rows, n, s.p - first), y(s.rows, n, s.m);
      const at::Tensor x = torch::cat({a.view, b.view}, 2).reshape({s.rows, -1}).to(torch::kDouble);
      const at::Tensor wanted = x.mm(expanded(table_of(algebra), S).t()), before = y.values(),
                       around = y.whole.clone();
      const Piece pieces[] = {{a.blocks(), first}, {b.blocks(), s.p - first}};
      map.apply(s.rows, pieces, y.blocks());
      EXPECT_LT(relative_error(y.values(), wanted), kAllowed);
      BilinearMap::Output adds;
      adds.accumulate = true;
      map.apply(s.rows, pieces, y.blocks(), adds);
      EXPECT_LT(relative_error(y.values(), 2 * wanted), kAllowed);
      y.view.zero_();
      around.select(1, 1).narrow(2, 1, s.m).zero_();
      EXPECT_TRUE(y.whole.equal(around)) << "nothing is written beside the view";
    }
  });
}

// Some columns have the bits that they have among all, also where the weights of few rows stand in blocks.
TEST(Map, AppliesColumnsAlone) {
  torch::manual_seed(2);
  for (const Way way : {Way::factored, Way::mixed})
    for (const int64_t rows : {1, 3, 70}) {
      BilinearMap map(torch::randn({4, 150, 33}), call_of({"quaternion", {}, {}}, way), rows, at::kFloat);
      map.prepare(false, true);
      const at::Tensor x = torch::randn({rows, 4 * 33}), whole = torch::empty({rows, 4 * 150}),
                       parts = torch::zeros_like(whole);
      const Piece piece{BilinearMap::blocks_of_rows(x, 33), 33};
      map.apply(rows, {&piece, 1}, BilinearMap::blocks_of_rows(whole, 150));
      for (const auto& [begin, end] : {std::pair(0, 64), {64, 128}, {128, 150}}) {
        BilinearMap::Output some;
        some.columns = {begin, end};
        map.apply(rows, {&piece, 1}, BilinearMap::blocks_of_rows(parts, 150), some);
        const at::Tensor others = parts.view({rows, 4, 150}).narrow(2, end, 150 - end);
        EXPECT_EQ(others.count_nonzero().item<int64_t>(), 0) << "columns are not made that come later";
      }
      EXPECT_TRUE(parts.equal(whole)) << ops::name(way) << ", " << rows << " rows";
    }
}

TEST(Map, EndsWithAnEpilogue) {
  for_each_map([](const std::string& algebra, const at::Tensor& S, Way way, const Sizes& s) {
    const int64_t n = S.size(0);
    const BilinearMap map = [&] {
      BilinearMap made(S, call_of({algebra, {}, {}}, way), s.rows, at::kFloat);
      made.prepare();
      return made;
    }();
    const at::Tensor x = torch::randn({s.rows, n * s.p}), scale = torch::randn({n * s.m}),
                     bias = torch::randn({n * s.m});
    const Piece piece{plain(x, s.p), s.p};
    const at::Tensor product = x.to(torch::kDouble).mm(expanded(table_of(algebra), S).t());
    for (const Activation activation :
         {Activation::identity, Activation::relu, Activation::tanh, Activation::sigmoid})
      for (int parts = 0; parts < 8; ++parts) {
        const Strided y(s.rows, n, s.m), rest(s.rows, n, s.m);
        const at::Tensor start = y.values();
        BilinearMap::Output output;
        at::Tensor wanted = product;
        if (parts & 1) output.epilogue.scale = scale.data_ptr<float>(), wanted = wanted * scale;
        if (parts & 2) output.epilogue.bias = bias.data_ptr<float>(), wanted = wanted + bias;
        if (parts & 4) output.epilogue.residual = rest.blocks(), wanted = wanted + rest.values();
        output.epilogue.activation = activation;
        map.apply(s.rows, {&piece, 1}, y.blocks(), output);
        EXPECT_LT(relative_error(y.values(), activated(wanted, activation)), kAllowed)
            << parts << ", activation " << static_cast<int>(activation);
      }
  });
}

TEST(Map, GivesBothGradients) {
  for_each_map([](const std::string& algebra, const at::Tensor& S, Way way, const Sizes& s) {
    const int64_t n = S.size(0), first = s.p / 2;
    BilinearMap map(S, call_of({algebra, {}, {}}, way), s.rows, at::kFloat);
    map.prepare();
    map.prepare(true);
    const Strided g(s.rows, n, s.m), dx(s.rows, n, s.p), a(s.rows, n, first), b(s.rows, n, s.p - first),
        dS(n, s.m, s.p);
    const at::Tensor H = expanded(table_of(algebra), S), wanted = g.values().mm(H), start = dx.values();
    map.apply_transposed(s.rows, g.blocks(), dx.blocks());
    EXPECT_LT(relative_error(dx.values(), wanted), kAllowed);
    map.apply_transposed(s.rows, g.blocks(), dx.blocks(), true);
    EXPECT_LT(relative_error(dx.values(), 2 * wanted), kAllowed);

    const at::Tensor x = torch::cat({a.view, b.view}, 2).reshape({s.rows, -1}).to(torch::kDouble);
    const at::Tensor dH =
        g.values().t().mm(x).view({n, s.m, n, s.p}).permute({0, 2, 1, 3}).reshape({n * n, s.m * s.p});
    const at::Tensor wanted_S = table_of(algebra).view({n, n * n}).mm(dH).view({n, s.m, s.p});
    const Piece pieces[] = {{a.blocks(), first}, {b.blocks(), s.p - first}};
    const Blocks to{dS.view.data_ptr(), dS.view.stride(0), dS.view.stride(1), false, at::kFloat};
    const auto got = [&] { return dS.view.to(torch::kDouble); };
    map.weight_gradient(s.rows, g.blocks(), pieces, to);
    EXPECT_LT(relative_error(got(), wanted_S), 2 * kAllowed);
    map.weight_gradient(s.rows, g.blocks(), pieces, to, true);
    EXPECT_LT(relative_error(got(), 2 * wanted_S), 2 * kAllowed);
  });
}

TEST(Map, IsLinearBitForBitAlsoInsideAParallelRegion) {
  for_each_map([](const std::string& algebra, const at::Tensor& S, Way way, const Sizes& s) {
    if (algebra == "real") return;
    const int64_t n = S.size(0);
    const at::Tensor x = torch::randn({s.rows, n * s.p});
    const torch::NoGradGuard no_grad;
    BilinearMap map(S, call_of({algebra, {}, {}}, way), s.rows, at::kFloat);
    map.prepare();
    const Piece piece{plain(x, s.p), s.p};
    std::vector<at::Tensor> results;
    for (int i = 0; i < 4; ++i) results.push_back(torch::empty({s.rows, n * s.m}));
    at::parallel_for(0, 4, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        map.apply(s.rows, {&piece, 1}, plain(results[static_cast<size_t>(i)], s.m));
    });
    const at::Tensor outside = torch::empty({s.rows, n * s.m});
    map.apply(s.rows, {&piece, 1}, plain(outside, s.m));
    const at::Tensor whole = ops::linear(x, S, {}, {algebra, {}, {}}, way);
    // MKL rounds otherwise on two threads than on one.
    if (way != Way::materialised) {
      EXPECT_TRUE(outside.equal(whole));
      for (const at::Tensor& y : results) EXPECT_TRUE(y.equal(whole));
    } else {
      EXPECT_LT(relative_error(outside, whole), kAllowed);
      for (const at::Tensor& y : results) EXPECT_LT(relative_error(y, whole), kAllowed);
    }
  });
}

TEST(Map, ReadsAndWritesBfloat16) {
  torch::manual_seed(2);
  const int64_t n = 4, rows = 20, m = 24, p = 40;
  const at::Tensor S = torch::randn({n, m, p}).to(torch::kBFloat16);
  const at::Tensor x = torch::randn({rows, n * p}).to(torch::kBFloat16);
  const at::Tensor wanted = x.to(torch::kDouble).mm(expanded(table_of("quaternion"), S).t());
  for (const Way way : {Way::factored, Way::mixed})
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      BilinearMap map(S, call_of({"quaternion", {}, {}}, way), rows, at::kBFloat16);
      ASSERT_TRUE(map.on_engine());
      const at::Tensor y = torch::empty({rows, n * m}, type);
      const Piece piece{plain(x, p), p};
      if (type == at::kBFloat16 && way == Way::factored && map.result_type(rows, {}) != type) continue;
      map.apply(rows, {&piece, 1}, plain(y, m));
      EXPECT_LT(relative_error(y, wanted), 2e-2) << ops::name(way) << " " << type;
    }
}

TEST(Map, SumsTheGradientOfALearnedTensor) {
  torch::manual_seed(3);
  const int64_t n = 4, rows = 50, m = 20, p = 30;
  const at::Tensor A = torch::randn({n, n, n}), S = torch::randn({n, m, p}), x = torch::randn({rows, n * p}),
                   g = torch::randn({rows, n * m});
  const at::Tensor dH = g.to(torch::kDouble)
                            .t()
                            .mm(x.to(torch::kDouble))
                            .view({n, m, n, p})
                            .permute({0, 2, 1, 3})
                            .reshape({n * n, m * p});
  const at::Tensor wanted = S.to(torch::kDouble).reshape({n, m * p}).mm(dH.t()).view({n, n, n});
  for (const Way way : {Way::factored, Way::materialised}) {
    BilinearMap map(S, call_of({"learned", A, {}}, way), rows, at::kFloat);
    map.prepare();
    ASSERT_TRUE(map.sums_structure());
    auto sums = map.structure_sums();
    // In two halves, as steps of a sequence add up.
    for (const int64_t begin : {0, 20}) {
      const int64_t count = begin == 0 ? 20 : rows - 20;
      const at::Tensor part = x.narrow(0, begin, count), grad = g.narrow(0, begin, count);
      const Piece half{plain(part, p), p};
      map.apply_transposed(count, plain(grad, m), {}, false, &sums, plain(part, p));
      map.weight_gradient(count, plain(grad, m), {&half, 1}, {}, false, &sums);
      map.sum_products(count, plain(grad, m), {&half, 1}, nullptr, sums);
    }
    EXPECT_LT(relative_error(map.structure_gradient(sums), wanted), 5e-6) << ops::name(way);
  }
}

}  // namespace
}  // namespace quatrain
