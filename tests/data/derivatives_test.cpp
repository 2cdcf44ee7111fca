#include "quatrain/data/derivatives.h"

#include <torch/types.h>

#include <algorithm>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

/// Each derivative as the sum over the shifts that it is composed of.
double composed(const std::vector<double>& x, int64_t t, int64_t order, int64_t shift = 0) {
  if (order == 0) return x[static_cast<size_t>(std::clamp<int64_t>(t + shift, 0, std::ssize(x) - 1))];
  double sum = 0;
  for (int64_t s = -2; s <= 2; ++s) sum += static_cast<double>(s) / 10 * composed(x, t, order - 1, shift + s);
  return sum;
}

TEST(DerivativesTest, FollowTheDefinitionUpToTheEnds) {
  for (const int64_t frames : {1, 2, 5, 30}) {
    torch::manual_seed(frames);
    const auto features = torch::randn({frames, 3}) * 10;
    const auto found = Derivatives()(features);
    ASSERT_EQ(found.sizes(), (std::vector<int64_t>{frames, 12}));
    EXPECT_EQ(found.scalar_type(), torch::kFloat);
    for (int64_t band = 0; band < 3; ++band) {
      std::vector<double> x;
      for (int64_t t = 0; t < frames; ++t) x.push_back(features[t][band].item<float>());
      for (int64_t order = 0; order <= 3; ++order)
        for (int64_t t = 0; t < frames; ++t)
          EXPECT_NEAR(found[t][order * 3 + band].item<float>(), composed(x, t, order), 1e-5)
              << "order " << order << ", frame " << t << " of " << frames;
    }
  }
}

TEST(DerivativesTest, AreThoseOfACubic) {
  const auto t = torch::arange(20, torch::kFloat) - 10;
  const auto found = Derivatives()((t.pow(2)).unsqueeze(1)).narrow(0, 6, 8);
  const auto inner = t.narrow(0, 6, 8);
  EXPECT_TRUE(torch::allclose(found.select(1, 1), 2 * inner, 0, 1e-4));
  EXPECT_TRUE(torch::allclose(found.select(1, 2), torch::full({8}, 2.0F), 0, 1e-4));
  const auto third = Derivatives()((t.pow(3)).unsqueeze(1)).narrow(0, 6, 8).select(1, 3);
  EXPECT_TRUE(torch::allclose(third, torch::full({8}, 6.0F), 0, 1e-3));
}

TEST(DerivativesTest, StopAtTheOrder) {
  const auto features = torch::randn({9, 4});
  const auto all = Derivatives()(features);
  for (int64_t order = 0; order <= 3; ++order) {
    const Derivatives some(order);
    EXPECT_EQ(some.components(), order + 1);
    EXPECT_EQ(some.reach(), 2 * order);
    EXPECT_TRUE(torch::allclose(some(features), all.narrow(1, 0, 4 * (order + 1)), 0, 1e-6));
  }
  EXPECT_EQ(Derivatives()(torch::zeros({0, 4})).sizes(), (std::vector<int64_t>{0, 16}));
}

TEST(DerivativesTest, SayWhatIsWrong) {
  EXPECT_THAT(error_of([] { Derivatives derivatives(4); }), HasSubstr("order must be 0 to 3, got 4"));
  EXPECT_THAT(error_of([] { Derivatives derivatives(3, 0); }),
              HasSubstr("window must be 1 to 100 frames, got 0"));
  EXPECT_THAT(error_of([] { Derivatives()(torch::zeros(4)); }), HasSubstr("must be (frames, bands)"));
}

}  // namespace
}  // namespace quatrain::data
