#include "quatrain/data/augmentation.h"

#include <torch/types.h>

#include <numbers>
#include <set>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

TEST(SpeedTest, ChangesLengthAndPitch) {
  const auto sine = [](double step, int64_t samples) {
    return torch::sin(torch::arange(samples, torch::kDouble) * step).to(torch::kFloat);
  };
  for (const double factor : {0.9, 1.1}) {
    const auto found = change_speed(sine(0.3, 9900), factor);
    const auto samples = static_cast<int64_t>(std::llround(9900 / factor));
    ASSERT_EQ(found.size(0), samples);
    const auto difference = (found - sine(0.3 * factor, samples)).narrow(0, 500, samples - 1000);
    EXPECT_LT(difference.abs().max().item<float>(), 1e-4) << factor;
  }
  EXPECT_TRUE(change_speed(sine(0.3, 50), 1).equal(sine(0.3, 50)));
  EXPECT_THAT(error_of([] { change_speed(torch::zeros(5), 0); }),
              HasSubstr("factor must be .1 to 10, got 0"));
}

TEST(SpeedTest, DrawsEachFactorFromTheSeedAlone) {
  const auto samples = torch::ones({990});
  std::map<int64_t, int> counts;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto size = perturb_speed(samples, seed).size(0);
    EXPECT_EQ(size, perturb_speed(samples, seed).size(0));
    ++counts[size];
  }
  ASSERT_EQ(counts.size(), 3u);
  for (const int64_t size : {1100, 990, 900}) EXPECT_GT(counts[size], 70) << size;
  EXPECT_THAT(error_of([&] { perturb_speed(samples, 0, {}); }), HasSubstr("at least one factor"));
}

class SpecAugmentTest : public testing::Test {
 protected:
  /// Which (frame, band) are masked, after a check that all four components of a quaternion agree.
  at::Tensor masked(const SpecAugmentOptions& options, uint64_t seed, int64_t frames = 200) const {
    const auto features = torch::ones({frames, 160});
    const auto result = spec_augment(features, 40, options, seed);
    EXPECT_TRUE(features.equal(torch::ones({frames, 160})));  // its argument stays as it is
    const auto masks = (result == 0).view({frames, 4, 40});
    for (int64_t component = 1; component < 4; ++component)
      EXPECT_TRUE(masks.select(1, component).equal(masks.select(1, 0)));
    EXPECT_TRUE(((result == 0) | (result == 1)).all().item<bool>());
    return masks.select(1, 0);
  }
};

TEST_F(SpecAugmentTest, MasksBandsOfAllFrames) {
  std::set<int64_t> widths, places;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto mask = masked({.band_masks = 1, .widest = 5, .time_masks = 0}, seed, 3);
    EXPECT_TRUE(mask[1].equal(mask[0]));
    const auto bands = mask[0].nonzero().flatten();
    widths.insert(bands.size(0));
    if (bands.size(0) == 0) continue;
    places.insert(bands[0].item<int64_t>());
    EXPECT_EQ(bands[-1].item<int64_t>() - bands[0].item<int64_t>() + 1, bands.size(0));  // in a row
  }
  EXPECT_EQ(widths, (std::set<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), 39);
}

TEST_F(SpecAugmentTest, MasksFramesUpToTheirShare) {
  int64_t most = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto mask = masked({.band_masks = 0, .time_masks = 1, .longest = 100, .most_share = 0.1}, seed, 50);
    EXPECT_TRUE(mask.all(1).equal(mask.any(1)));
    most = std::max(most, mask.all(1).sum().item<int64_t>());
  }
  EXPECT_EQ(most, 5);
  EXPECT_FALSE(masked({.band_masks = 0}, 0, 4).any().item<bool>());  // a fifth of 4 frames is none
}

TEST_F(SpecAugmentTest, IsAFunctionOfTheSeed) {
  EXPECT_TRUE(masked({}, 5).equal(masked({}, 5)));
  EXPECT_FALSE(masked({}, 5).equal(masked({}, 6)));
  EXPECT_FALSE(masked({}, 5).equal(masked({}, 5 + (uint64_t{1} << 40))));
  EXPECT_EQ(spec_augment(torch::zeros({0, 160}), 40, {}, 1).sizes(), (std::vector<int64_t>{0, 160}));
}

TEST_F(SpecAugmentTest, SaysWhatIsWrong) {
  EXPECT_THAT(error_of([] { spec_augment(torch::zeros({5, 30}), 40, {}, 1); }), HasSubstr("components * 40"));
  EXPECT_THAT(error_of([] {
                spec_augment(torch::zeros({5, 40}), 40, {.most_share = 2}, 1);
              }),
              HasSubstr("most_share = 2"));
}

}  // namespace
}  // namespace quatrain::data
