#include "quatrain/data/feature_stream.h"

#include <torch/types.h>

#include <algorithm>

namespace quatrain::data {
namespace {

/// Lets go of rows before `from`, where rows[0] is number `first`.
void forget(at::Tensor& rows, int64_t& first, int64_t from) {
  const int64_t count = std::clamp<int64_t>(from - first, 0, rows.size(0));
  if (count == 0) return;
  rows = rows.narrow(0, count, rows.size(0) - count).clone();
  first += count;
}

}  // namespace

FeatureStream::FeatureStream(const FilterBankOptions& options, int64_t order)
    : bank_(options), derivatives_(order) {
  restart();
}

void FeatureStream::restart() {
  samples_ = torch::zeros({0});
  energies_ = torch::zeros({0, bank_.options().bands});
  first_sample_ = first_energy_ = received_ = computed_ = given_ = 0;
}

at::Tensor FeatureStream::push(const at::Tensor& samples) {
  TORCH_CHECK(samples.dim() == 1, "FeatureStream: samples must be (samples), one channel, got ",
              samples.sizes(), "; choose_channel and mix_channels make one of several");
  samples_ = torch::cat({samples_, samples.to(torch::kFloat)});
  received_ += samples.size(0);
  return advance(bank_.whole_frames(received_), /*last=*/false);
}

at::Tensor FeatureStream::finish() {
  const auto rest = advance(bank_.frames(received_), /*last=*/true);
  restart();
  return rest;
}

at::Tensor FeatureStream::advance(int64_t frames, bool last) {
  if (frames > computed_) {
    energies_ = torch::cat({energies_, bank_.compute(samples_, first_sample_, received_, computed_, frames)});
    computed_ = frames;
    // The recording may end now, and its last half frame is then reflected.
    forget(samples_, first_sample_, bank_.first_sample(computed_) - bank_.frame_length());
  }
  const int64_t final = last ? computed_ : std::max(given_, computed_ - derivatives_.reach());
  const auto features = derivatives_.compute(energies_, first_energy_, computed_, given_, final);
  given_ = final;
  forget(energies_, first_energy_, given_ - derivatives_.reach());
  return features;
}

}  // namespace quatrain::data
