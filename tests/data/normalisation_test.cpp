#include "quatrain/data/normalisation.h"

#include <torch/types.h>

#include <cmath>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

/// (frames, 4 * 3) with means and deviations that differ from column to column.
at::Tensor features(int64_t frames) {
  torch::manual_seed(frames);
  return torch::randn({frames, 12}) * torch::arange(1, 13) + 10 * torch::arange(12);
}

TEST(NormalisationTest, GivesEachComponentVarianceOne) {
  Normalisation normalisation(3, 4, NormalisationScale::component);
  const auto x = features(500);
  normalisation.add(x);
  const auto y = normalisation.apply(x);
  EXPECT_EQ(y.scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::allclose(y.mean(0), torch::zeros(12), 0, 1e-4));
  EXPECT_TRUE(torch::allclose(y.var(0, /*unbiased=*/false), torch::ones(12), 0, 1e-4));
}

TEST(NormalisationTest, KeepsTheProportionsOfAQuaternion) {
  Normalisation normalisation(3, 4, NormalisationScale::quaternion);
  const auto x = features(500);
  normalisation.add(x);
  const auto y = normalisation.apply(x);
  EXPECT_TRUE(torch::allclose(y.mean(0), torch::zeros(12), 0, 1e-4));
  const auto variance = y.var(0, /*unbiased=*/false).view({4, 3});
  EXPECT_TRUE(torch::allclose(variance.mean(0), torch::ones(3), 0, 1e-4));
  const auto proportion = variance / x.var(0, /*unbiased=*/false).view({4, 3});
  for (int64_t component = 1; component < 4; ++component)
    EXPECT_TRUE(torch::allclose(proportion[component], proportion[0], 1e-4));
}

TEST(NormalisationTest, AddsUpUtterances) {
  const auto x = features(1000) + 1000;  // a large mean costs nothing
  Normalisation once(3, 4), pieces(3, 4);
  once.add(x);
  for (const int64_t size : {1, 0, 99, 900}) pieces.add(x.narrow(0, pieces.frames(), size));
  EXPECT_EQ(pieces.frames(), 1000);
  EXPECT_TRUE(torch::allclose(pieces.mean(), once.mean(), 1e-12));
  EXPECT_TRUE(torch::allclose(pieces.scale(), once.scale(), 1e-10));
  EXPECT_TRUE(torch::allclose(once.mean(), x.to(torch::kDouble).mean(0), 1e-12));
}

TEST(NormalisationTest, IsSafeWhereNothingVaries) {
  for (const auto scale : {NormalisationScale::component, NormalisationScale::quaternion}) {
    Normalisation normalisation(3, 4, scale);
    normalisation.add(torch::full({1}, -15.94F).expand({77, 12}));
    normalisation.add(torch::full({1}, -15.94F).expand({5, 12}));
    const auto y = normalisation.apply(torch::full({2, 12}, -15.94F));
    EXPECT_LT(y.abs().max().item<float>(), 1e-4);
    EXPECT_TRUE(normalisation.scale().equal(torch::ones(12, torch::kDouble)));
    normalisation.add(torch::full({50, 12}, std::nextafter(-15.94F, 0.0F)));  // rounding is no variance
    EXPECT_TRUE(normalisation.scale().equal(torch::ones(12, torch::kDouble)));
  }
  // One silent component does not hide the others.
  auto x = features(100);
  x.narrow(1, 3, 3).zero_();
  Normalisation normalisation(3, 4, NormalisationScale::component);
  normalisation.add(x);
  EXPECT_TRUE(normalisation.apply(x).isfinite().all().item<bool>());
  EXPECT_NEAR(normalisation.apply(x).select(1, 6).var(0, false).item<float>(), 1, 1e-3);
}

TEST(NormalisationTest, IsKept) {
  Normalisation first(3, 4), second(3, 4);
  first.add(features(50));
  second.load(first.state());
  EXPECT_TRUE(second.apply(features(20)).equal(first.apply(features(20))));
  second.add(features(30));  // and goes on
  EXPECT_EQ(second.frames(), 80);
  EXPECT_EQ(first.frames(), 50);
  EXPECT_TRUE(first.state().at("mean").equal(first.mean().view({4, 3})));
}

TEST(NormalisationTest, SaysWhatIsWrong) {
  Normalisation normalisation(3, 4);
  EXPECT_THAT(error_of([&] { normalisation.apply(features(5)); }), HasSubstr("no frames were added"));
  EXPECT_THAT(error_of([&] {
                normalisation.add(torch::zeros({5, 3}));
              }),
              HasSubstr("must be (frames, 12), 4 components of 3 bands, got [5, 3]"));
  auto state = normalisation.state();
  EXPECT_THAT(error_of([&] { Normalisation(4, 3).load(state); }),
              HasSubstr("of [3, 4], got Double of [4, 3]"));
  state["squares"] = torch::full({4, 3}, -1.0, torch::kDouble);
  EXPECT_THAT(error_of([&] { normalisation.load(state); }), HasSubstr("a sum of squares is negative"));
  state.erase("mean");
  EXPECT_THAT(error_of([&] { normalisation.load(state); }), HasSubstr("no tensor 'mean'"));
  EXPECT_THAT(error_of([] { parse_normalisation_scale("band"); }),
              HasSubstr("component, quaternion; got 'band'"));
  EXPECT_THAT(error_of([] { Normalisation none(0, 4); }), HasSubstr("at least 1, got 0 and 4"));
}

}  // namespace
}  // namespace quatrain::data
