#include "quatrain/data/resampler.h"

#include <samplerate.h>

#include <torch/types.h>

#include <cmath>
#include <vector>

namespace quatrain::data {

void Resampler::Close::operator()(SRC_STATE_tag* state) const {
  src_delete(state);
}

Resampler::Resampler(int64_t from, int64_t to) : from_(from), to_(to) {
  TORCH_CHECK(from > 0 && to > 0 && src_is_valid_ratio(static_cast<double>(to) / static_cast<double>(from)),
              "Resampler: the rates must be positive and differ by a factor of at most 256, got ", from,
              " and ", to);
  int error = 0;
  state_.reset(src_new(SRC_SINC_BEST_QUALITY, 1, &error));
  TORCH_CHECK(state_, "Resampler: libsamplerate failed: ", src_strerror(error));
}

at::Tensor Resampler::push(const at::Tensor& samples) {
  TORCH_CHECK(samples.dim() == 1, "Resampler: samples must be (samples), one channel, got ", samples.sizes());
  received_ += samples.size(0);
  if (from_ == to_) return samples.to(torch::kFloat);
  return advance(samples.to(torch::kFloat).contiguous(), /*last=*/false);
}

at::Tensor Resampler::finish() {
  at::Tensor rest = torch::zeros({0});
  if (from_ != to_) {
    const auto wanted = static_cast<int64_t>(
        std::llround(static_cast<double>(received_) * static_cast<double>(to_) / static_cast<double>(from_)));
    rest = advance(torch::zeros({0}), /*last=*/true);
    // libsamplerate gives a frame less at times: it is zero.
    const int64_t more = wanted - (given_ - rest.size(0));
    if (rest.size(0) < more) rest = torch::cat({rest, torch::zeros({more - rest.size(0)})});
    rest = rest.narrow(0, 0, std::max<int64_t>(more, 0));
    src_reset(state_.get());
  }
  received_ = given_ = 0;
  return rest;
}

at::Tensor Resampler::advance(const at::Tensor& samples, bool last) {
  const double ratio = static_cast<double>(to_) / static_cast<double>(from_);
  std::vector<at::Tensor> parts;
  // libsamplerate gives nothing at all where there is no pointer, as of an empty tensor.
  const float none = 0;
  const float* next = samples.size(0) > 0 ? samples.data_ptr<float>() : &none;
  int64_t left = samples.size(0);
  const auto room = static_cast<int64_t>(static_cast<double>(left) * ratio) + 4096;
  for (;;) {
    at::Tensor part = torch::empty({room});
    SRC_DATA data{};
    data.data_in = next;
    data.input_frames = left;
    data.data_out = part.data_ptr<float>();
    data.output_frames = room;
    data.src_ratio = ratio;
    data.end_of_input = last;
    const int error = src_process(state_.get(), &data);
    TORCH_CHECK(error == 0, "Resampler: libsamplerate failed from ", from_, " to ", to_, ": ",
                src_strerror(error));
    next += data.input_frames_used;
    left -= data.input_frames_used;
    if (data.output_frames_gen > 0) parts.push_back(part.narrow(0, 0, data.output_frames_gen));
    if (data.output_frames_gen == 0 && (left == 0 || data.input_frames_used == 0)) break;
  }
  const at::Tensor all = parts.empty() ? torch::zeros({0}) : torch::cat(parts);
  given_ += all.size(0);
  return all;
}

}  // namespace quatrain::data
