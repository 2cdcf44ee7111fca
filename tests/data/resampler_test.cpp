#include "quatrain/data/resampler.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "quatrain/data/audio.h"
#include "support.h"

namespace quatrain::data {
namespace {

at::Tensor in_pieces(Resampler& resampler, const at::Tensor& samples, int64_t piece) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : samples.split(piece)) parts.push_back(resampler.push(part));
  parts.push_back(resampler.finish());
  return torch::cat(parts);
}

TEST(Resampler, PiecesAreThoseOfTheWhole) {
  torch::manual_seed(1);
  const at::Tensor samples = torch::rand({20011}) - 0.5;
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{8000, 16000}, {44100, 16000}, {16000, 16000}}) {
    const at::Tensor whole = resample(samples, from, to);
    Resampler resampler(from, to);
    for (const int64_t piece : {160, 7001, 30000}) {
      const at::Tensor joined = in_pieces(resampler, samples, piece);  // the same one again: it begins anew
      ASSERT_EQ(joined.sizes(), whole.sizes()) << from << " " << to << " " << piece;
      EXPECT_LT((joined - whole).abs().max().item<double>(), 1e-5) << from << " " << to << " " << piece;
    }
  }
}

TEST(Resampler, NothingGivesNothing) {
  Resampler resampler(8000, 16000);
  EXPECT_EQ(resampler.finish().size(0), 0);
}

TEST(Resampler, RefusesBadRates) {
  EXPECT_EQ(error_of([] { Resampler(0, 16000); }),
            "Resampler: the rates must be positive and differ by a factor of at most 256, got 0 and 16000");
}

}  // namespace
}  // namespace quatrain::data
