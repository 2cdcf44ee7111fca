#include "quatrain/data/filter_bank.h"

#include <torch/types.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "support.h"

// tests/python/test_features.py compares with kaldi-native-fbank.
namespace quatrain::data {
namespace {

using testing::HasSubstr;

at::Tensor white_noise(int64_t samples) {
  torch::manual_seed(0);
  return torch::randn({samples}) * 0.1;
}

double mel(double frequency) {
  return 1127 * std::log1p(frequency / 700);
}

/// The definition in loops, with the transform of a frame as a sum: (frames, bands).
std::vector<std::vector<double>> reference(const at::Tensor& samples, const FilterBankOptions& options) {
  const double pi = std::numbers::pi;
  const int64_t count = samples.size(0), length = options.rate / 40, shift = options.rate / 100;
  int64_t padded = 1;
  while (padded < length) padded *= 2;
  const int64_t frames = options.snip_edges ? (count - length) / shift + 1 : (count + shift / 2) / shift;
  const double high = options.high > 0 ? options.high : static_cast<double>(options.rate) / 2 + options.high;
  std::vector<std::vector<double>> result;
  for (int64_t frame = 0; frame < frames; ++frame) {
    const int64_t start = frame * shift + (options.snip_edges ? 0 : shift / 2 - length / 2);
    std::vector<double> x;
    double mean = 0;
    for (int64_t i = start; i < start + length; ++i) {
      int64_t at = i;
      while (at < 0 || at >= count) at = at < 0 ? -1 - at : 2 * count - 1 - at;
      x.push_back(32768.0 * samples[at].item<float>());
      mean += x.back() / static_cast<double>(length);
    }
    if (options.remove_dc_offset)
      for (double& value : x) value -= mean;
    for (size_t i = x.size(); i-- > 0;) x[i] -= options.preemphasis * x[i > 0 ? i - 1 : 0];
    for (size_t i = 0; i < x.size(); ++i) {
      const double c = std::cos(2 * pi * static_cast<double>(i) / static_cast<double>(length - 1));
      x[i] *= options.window == WindowShape::hamming   ? 0.54 - 0.46 * c
              : options.window == WindowShape::hanning ? 0.5 - 0.5 * c
                                                       : std::pow(0.5 - 0.5 * c, 0.85);
    }
    std::vector<double> bands(static_cast<size_t>(options.bands), 0.0);
    const double step = (mel(high) - mel(options.low)) / static_cast<double>(options.bands + 1);
    for (int64_t bin = 0; bin < padded / 2; ++bin) {
      std::complex<double> sum = 0;
      for (size_t i = 0; i < x.size(); ++i)
        sum += x[i] * std::polar(1.0, -2 * pi * static_cast<double>(bin * static_cast<int64_t>(i) % padded) /
                                          static_cast<double>(padded));
      const double frequency = static_cast<double>(bin * options.rate) / static_cast<double>(padded);
      for (size_t band = 0; band < bands.size(); ++band) {
        const double center = mel(options.low) + static_cast<double>(band + 1) * step;
        bands[band] += std::norm(sum) * std::max(0.0, 1 - std::abs(mel(frequency) - center) / step);
      }
    }
    for (double& energy : bands) energy = std::log(std::max(energy, 0x1p-23));
    result.push_back(bands);
  }
  return result;
}

void expect_reference(const at::Tensor& samples, const FilterBankOptions& options, const std::string& what) {
  const auto found = FilterBank(options)(samples);
  const auto expected = reference(samples, options);
  ASSERT_EQ(found.sizes(), (std::vector<int64_t>{static_cast<int64_t>(expected.size()), options.bands}))
      << what;
  EXPECT_EQ(found.scalar_type(), torch::kFloat);
  for (int64_t t = 0; t < found.size(0); ++t)
    for (int64_t band = 0; band < options.bands; ++band)
      ASSERT_NEAR(found[t][band].item<float>(), expected[static_cast<size_t>(t)][static_cast<size_t>(band)],
                  1e-5)
          << what << ", frame " << t << ", band " << band;
}

TEST(FilterBankTest, FollowsTheDefinition) {
  expect_reference(white_noise(1000), {}, "defaults");
  expect_reference(white_noise(1000), {.snip_edges = true}, "snipped edges");
  expect_reference(white_noise(1000) + 0.5, {.remove_dc_offset = false}, "with the offset");
  expect_reference(white_noise(1000), {.window = WindowShape::hamming}, "hamming");
  expect_reference(white_noise(1000), {.window = WindowShape::hanning}, "hanning");
  expect_reference(white_noise(1000), {.preemphasis = 0}, "no preemphasis");
  expect_reference(white_noise(500), {.rate = 8000, .bands = 23, .low = 100, .high = 3500}, "8 kHz");
  expect_reference(white_noise(1000), {.high = -400}, "below the Nyquist frequency");
}

TEST(FilterBankTest, ReflectsWhatIsShorterThanAFrame) {
  for (const int64_t samples : {80, 100, 239, 240})
    expect_reference(white_noise(samples), {}, std::to_string(samples) + " samples");
}

TEST(FilterBankTest, IsTheSameInBlocks) {
  const auto samples = white_noise(16000 * 8);
  const FilterBank bank;
  const auto all = bank(samples);
  ASSERT_EQ(all.size(0), 800);
  const auto some = bank.compute(samples.narrow(0, 80000, 16000), 80000, samples.size(0), 510, 520);
  EXPECT_TRUE(torch::allclose(all.narrow(0, 510, 10), some, 0, 1e-6));
}

TEST(FilterBankTest, CountsFrames) {
  const FilterBank reflected, snipped({.snip_edges = true});
  for (const auto& [samples, expected] :
       {std::pair<int64_t, int64_t>{0, 0}, {1, 0}, {79, 0}, {80, 1}, {16000, 100}})
    EXPECT_EQ(reflected.frames(samples), expected) << samples;
  for (const auto& [samples, expected] :
       {std::pair<int64_t, int64_t>{0, 0}, {399, 0}, {400, 1}, {559, 1}, {560, 2}})
    EXPECT_EQ(snipped.frames(samples), expected) << samples;
  for (const int64_t samples : {0, 1})
    EXPECT_EQ(reflected(torch::zeros({samples})).sizes(), (std::vector<int64_t>{0, 40}));
  EXPECT_EQ(reflected.whole_frames(279), 0);
  EXPECT_EQ(reflected.whole_frames(280), 1);
}

TEST(FilterBankTest, SilenceIsTheFloor) {
  EXPECT_TRUE(torch::allclose(FilterBank()(torch::zeros({1600})), torch::full({10, 40}, std::log(0x1p-23))));
}

TEST(FilterBankTest, SaysWhatIsWrong) {
  const auto error = [](const FilterBankOptions& options) {
    return error_of([&] { FilterBank bank(options); });
  };
  EXPECT_THAT(error({.frame_length = 0}), HasSubstr("frame_length must be at least 2"));
  EXPECT_THAT(error({.frame_shift = -1}), HasSubstr("frame_shift must be at least 1"));
  EXPECT_THAT(error({.frame_length = NAN}), HasSubstr("frame_length must be at least 2"));
  EXPECT_THAT(error({.rate = 0}), HasSubstr("0 samples a second"));
  EXPECT_THAT(error({.bands = 0}), HasSubstr("bands must be 1 to 512"));
  EXPECT_THAT(error({.low = 5000, .high = 4000}), HasSubstr("low below high, got low = 5000"));
  EXPECT_THAT(error({.high = 9000}), HasSubstr("between 0 Hz and 8000 Hz"));
  EXPECT_THAT(error({.rate = 8000, .bands = 120}), HasSubstr("120 bands are too many: band "));
  EXPECT_THAT(error_of([] {
                FilterBank()(torch::zeros({2, 800}));
              }),
              HasSubstr("must be (samples), one channel"));
  EXPECT_THAT(error_of([] { parse_window_shape("hann"); }),
              HasSubstr("must be one of povey, hamming, hanning; got 'hann'"));
  EXPECT_EQ(parse_window_shape(name(WindowShape::hamming)), WindowShape::hamming);
}

}  // namespace
}  // namespace quatrain::data
