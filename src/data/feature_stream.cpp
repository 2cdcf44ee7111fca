#include "quatrain/data/feature_stream.h"

#include <torch/types.h>

#include <algorithm>

namespace quatrain::data {

FeatureStream::FeatureStream(const FilterBankOptions& options, int64_t order)
    : bank_(options), derivatives_(order) {
  restart();
}

void FeatureStream::restart() {
  samples_ = RecentRows();
  energies_ = RecentRows(bank_.options().bands);
  given_ = 0;
}

at::Tensor FeatureStream::push(const at::Tensor& samples) {
  TORCH_CHECK(samples.dim() == 1, "FeatureStream: samples must be (samples), one channel, got ",
              samples.sizes(), "; choose_channel and mix_channels make one of several");
  samples_.append(samples);
  return advance(bank_.whole_frames(samples_.end()), /*last=*/false);
}

at::Tensor FeatureStream::finish() {
  const auto rest = advance(bank_.frames(samples_.end()), /*last=*/true);
  restart();
  return rest;
}

at::Tensor FeatureStream::advance(int64_t frames, bool last) {
  if (frames > energies_.end()) {
    energies_.append(
        bank_.compute(samples_.kept(), samples_.begin(), samples_.end(), energies_.end(), frames));
    // The recording may end now, and its last half frame is then reflected.
    samples_.forget_before(bank_.first_sample(frames) - bank_.frame_length());
  }
  const int64_t computed = energies_.end(),
                final = last ? computed : std::max(given_, computed - derivatives_.reach());
  const auto features = derivatives_.compute(energies_.kept(), energies_.begin(), computed, given_, final);
  given_ = final;
  energies_.forget_before(given_ - derivatives_.reach());
  return features;
}

}  // namespace quatrain::data
