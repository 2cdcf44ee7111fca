// What is done to samples in memory: channels and rates.
#include <samplerate.h>

#include <torch/types.h>

#include <cmath>

#include "quatrain/data/audio.h"
#include "quatrain/data/resampler.h"

namespace quatrain::data {
namespace {

void check_channels(const char* function, const at::Tensor& samples) {
  TORCH_CHECK(samples.dim() == 2 && samples.size(0) > 0, function,
              ": samples must be (channels, frames) with at least one channel, got ", samples.sizes());
}

}  // namespace

at::Tensor choose_channel(const at::Tensor& samples, int64_t channel) {
  check_channels("choose_channel", samples);
  TORCH_CHECK(channel >= 0 && channel < samples.size(0),
              "choose_channel: channel must be at least 0 and below ", samples.size(0),
              ", the number of channels, got ", channel);
  return samples[channel];
}

at::Tensor mix_channels(const at::Tensor& samples) {
  check_channels("mix_channels", samples);
  return samples.mean(0);
}

at::Tensor resample(const at::Tensor& samples, int64_t from, int64_t to) {
  const auto ratio = static_cast<double>(to) / static_cast<double>(from);
  TORCH_CHECK(from > 0 && to > 0 && src_is_valid_ratio(ratio),
              "resample: the rates must be positive and differ by a factor of at most 256, got ", from,
              " and ", to);
  TORCH_CHECK(samples.dim() >= 1,
              "resample: samples must have a last dimension of frames, got a single number");
  const int64_t frames = samples.size(-1);
  const auto wanted = static_cast<int64_t>(std::llround(static_cast<double>(frames) * ratio));
  auto sizes = samples.sizes().vec();
  sizes.back() = wanted;
  const auto input = samples.to(torch::kFloat).contiguous();
  if (from == to) return input.clone();
  if (input.numel() == 0 || wanted == 0) return torch::zeros(sizes);

  // Channel by channel, so that nothing is interleaved.
  std::vector<at::Tensor> channels;
  Resampler resampler(from, to);
  for (const at::Tensor& channel : input.view({-1, frames}).unbind(0))
    channels.push_back(torch::cat({resampler.push(channel), resampler.finish()}));
  return torch::stack(channels).view(sizes);
}

}  // namespace quatrain::data
