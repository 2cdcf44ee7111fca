#include "quatrain/data/feature_stream.h"

#include <malloc.h>
#include <torch/types.h>

#include <vector>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

at::Tensor recording(int64_t samples) {
  torch::manual_seed(samples);
  return torch::randn({samples}) * 0.1;
}

at::Tensor streamed(FeatureStream& stream, const at::Tensor& samples, const std::vector<int64_t>& sizes) {
  std::vector<at::Tensor> frames;
  int64_t at = 0;
  for (size_t i = 0; at < samples.size(0); ++i) {
    const int64_t size = std::min(sizes[i % sizes.size()], samples.size(0) - at);
    frames.push_back(stream.push(samples.narrow(0, at, size)));
    at += size;
  }
  frames.push_back(stream.finish());
  return torch::cat(frames);
}

void expect_whole(const FilterBankOptions& options, int64_t order, int64_t samples,
                  const std::vector<int64_t>& sizes) {
  const auto whole = recording(samples);
  const auto expected = Derivatives(order)(FilterBank(options)(whole));
  FeatureStream stream(options, order);
  // Twice: after the end another recording begins.
  for (int time = 0; time < 2; ++time) {
    const auto found = streamed(stream, whole, sizes);
    ASSERT_EQ(found.sizes(), expected.sizes()) << samples << " samples in pieces of " << sizes[0];
    EXPECT_TRUE(torch::allclose(found, expected, 0, 1e-5)) << samples << " samples in pieces of " << sizes[0];
  }
}

TEST(FeatureStreamTest, GivesTheFramesOfTheWhole) {
  for (const bool snip : {false, true})
    for (const int64_t samples : {0, 1, 79, 80, 279, 280, 281, 440, 1000, 5000, 16037})
      for (const auto& sizes : std::vector<std::vector<int64_t>>{{160}, {1000000}, {97, 0, 800}})
        expect_whole({.snip_edges = snip}, 3, samples, sizes);
  expect_whole({}, 3, 3000, {1});
  expect_whole({}, 0, 5000, {160});
  expect_whole({}, 1, 5000, {160});
  expect_whole({.rate = 8000, .frame_length = 60, .frame_shift = 5}, 3, 3011, {111});
  expect_whole({.frame_length = 5, .frame_shift = 12, .bands = 10}, 2, 3011, {111});
}

TEST(FeatureStreamTest, GivesAFrameAsSoonAsItIsFinal) {
  FeatureStream stream;
  const auto samples = recording(16000);
  // Frame 0 looks ahead to frame 6, which ends at sample 6 * 160 + 280.
  EXPECT_EQ(stream.push(samples.narrow(0, 0, 6 * 160 + 279)).size(0), 0);
  EXPECT_EQ(stream.push(samples.narrow(0, 6 * 160 + 279, 1)).size(0), 1);
  EXPECT_EQ(stream.push(samples.narrow(0, 6 * 160 + 280, 159)).size(0), 0);
  EXPECT_EQ(stream.push(samples.narrow(0, 6 * 160 + 439, 1)).size(0), 1);
  FeatureStream energies({.snip_edges = true}, 0);
  EXPECT_EQ(energies.push(samples.narrow(0, 0, 399)).size(0), 0);
  EXPECT_EQ(energies.push(samples.narrow(0, 399, 1)).size(0), 1);
}

TEST(FeatureStreamTest, KeepsItsMemory) {
  FeatureStream stream;
  const auto piece = recording(1600);
  const auto used = [] {
    const auto heap = mallinfo2();
    return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  };
  for (int i = 0; i < 10; ++i) stream.push(piece);
  const auto before = used();
  for (int i = 0; i < 600; ++i) stream.push(piece);  // a minute, of 4 bytes a sample
  EXPECT_LT(used() - before, 200000);
}

TEST(FeatureStreamTest, SaysWhatIsWrong) {
  FeatureStream stream;
  EXPECT_THAT(error_of([&] {
                stream.push(torch::zeros({1, 160}));
              }),
              HasSubstr("must be (samples), one channel"));
}

}  // namespace
}  // namespace quatrain::data
