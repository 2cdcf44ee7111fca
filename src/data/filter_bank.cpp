#include "quatrain/data/filter_bank.h"

#include <torch/types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "support/enum_names.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<WindowShape, 3> kShapes{
    {{WindowShape::povey, "povey"}, {WindowShape::hamming, "hamming"}, {WindowShape::hanning, "hanning"}}};

constexpr double kSixteenBits = 32768;
constexpr int64_t kFramesAtOnce = 512;  // so that an hour of audio takes no more memory than a few seconds
constexpr int64_t kLongest = 1 << 20;   // samples of a frame

double mel(double frequency) {
  return 1127 * std::log(1 + frequency / 700);
}

double frequency(double mel) {
  return 700 * (std::exp(mel / 1127) - 1);
}

void check_samples(const char* option, double milliseconds, int64_t rate, int64_t least) {
  const double samples = static_cast<double>(rate) * milliseconds / 1000;
  TORCH_CHECK(samples >= static_cast<double>(least) && samples <= kLongest, "filter_bank: ", option,
              " must be at least ", least, " and at most ", kLongest, " samples, got ", milliseconds,
              " ms at ", rate, " samples a second");
}

const FilterBankOptions& checked(const FilterBankOptions& options) {
  check_samples("frame_length", options.frame_length, options.rate, 2);
  check_samples("frame_shift", options.frame_shift, options.rate, 1);
  return options;
}

at::Tensor window_of(WindowShape shape, int64_t length) {
  const auto cosine = torch::cos(torch::arange(length, torch::kDouble) *
                                 (2 * std::numbers::pi / static_cast<double>(length - 1)));
  switch (shape) {
    case WindowShape::hamming:
      return 0.54 - 0.46 * cosine;
    case WindowShape::hanning:
      return 0.5 - 0.5 * cosine;
    case WindowShape::povey:
      break;
  }
  return torch::pow(0.5 - 0.5 * cosine, 0.85);
}

at::Tensor triangles_of(const FilterBankOptions& options, int64_t padded) {
  const double nyquist = static_cast<double>(options.rate) / 2;
  const double end = options.high > 0 ? options.high : nyquist + options.high;
  TORCH_CHECK(options.low >= 0 && options.low < end && end <= nyquist,
              "filter_bank: the bands must lie between 0 Hz and ", nyquist,
              " Hz, half the rate, and low below high, got low = ", options.low,
              " and high = ", options.high);
  TORCH_CHECK(options.bands > 0 && options.bands <= padded, "filter_bank: bands must be 1 to ", padded,
              ", the size of the transform, got ", options.bands);
  const double first = mel(options.low), step = (mel(end) - first) / static_cast<double>(options.bands + 1);
  auto triangles = torch::zeros({padded / 2, options.bands}, torch::kDouble);
  auto value = triangles.accessor<double, 2>();
  for (int64_t band = 0; band < options.bands; ++band) {
    const double left = first + static_cast<double>(band) * step;
    bool empty = true;
    for (int64_t bin = 0; bin < padded / 2; ++bin) {
      const double at =
          (mel(static_cast<double>(bin * options.rate) / static_cast<double>(padded)) - left) / step;
      if (at <= 0 || at >= 2) continue;
      value[bin][band] = at <= 1 ? at : 2 - at;
      empty = false;
    }
    TORCH_CHECK(!empty, "filter_bank: ", options.bands, " bands are too many: band ", band, ", of ",
                frequency(left), " to ", frequency(left + 2 * step), " Hz, holds none of the frequencies of ",
                padded, " samples; take fewer bands or longer frames");
  }
  return triangles;
}

}  // namespace

const char* name(WindowShape shape) {
  return name_of(kShapes, shape);
}
WindowShape parse_window_shape(std::string_view text) {
  return parse_name(kShapes, "filter_bank: window", text);
}

FilterBank::FilterBank(const FilterBankOptions& options)
    : options_(checked(options)),
      length_(options.length_samples()),
      shift_(options.shift_samples()),
      padded_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length_)))),
      window_(window_of(options.window, length_)),
      triangles_(triangles_of(options, padded_)) {}

int64_t FilterBank::frames(int64_t samples) const {
  return options_.snip_edges ? whole_frames(samples) : (samples + shift_ / 2) / shift_;
}

int64_t FilterBank::first_sample(int64_t frame) const {
  return frame * shift_ + (options_.snip_edges ? 0 : shift_ / 2 - length_ / 2);
}

int64_t FilterBank::whole_frames(int64_t samples) const {
  const int64_t after_first = samples - first_sample(0) - length_;
  return after_first < 0 ? 0 : after_first / shift_ + 1;
}

at::Tensor FilterBank::energies(const at::Tensor& frames) const {
  auto x = options_.remove_dc_offset ? frames - frames.mean(1, /*keepdim=*/true) : frames;
  // The first sample has itself for the one before.
  x = x - options_.preemphasis * torch::cat({x.narrow(1, 0, 1), x.narrow(1, 0, length_ - 1)}, 1);
  const auto spectrum = torch::view_as_real(torch::fft_rfft(x * window_, padded_, 1));
  const auto power = spectrum.square().sum(-1).narrow(1, 0, padded_ / 2);
  return torch::matmul(power, triangles_).clamp_min(std::numeric_limits<float>::epsilon()).log();
}

at::Tensor FilterBank::compute(const at::Tensor& samples, int64_t begin, int64_t total, int64_t from,
                               int64_t to) const {
  auto result = torch::empty({to - from, options_.bands});
  for (int64_t first = from; first < to; first += kFramesAtOnce) {
    const int64_t count = std::min(to - first, kFramesAtOnce);
    const int64_t start = first_sample(first), size = (count - 1) * shift_ + length_;
    at::Tensor piece;
    if (start >= begin && start + size <= begin + samples.size(0)) {
      piece = samples.narrow(0, start - begin, size);
    } else {
      // A recording goes on as its mirror image, and that as the recording: the period is twice its length.
      const auto at = torch::arange(start, start + size).remainder(2 * total);
      piece = samples.index_select(0, torch::minimum(at, 2 * total - 1 - at) - begin);
    }
    const auto frames = (piece.to(torch::kDouble) * kSixteenBits).unfold(0, length_, shift_);
    result.narrow(0, first - from, count).copy_(energies(frames));
  }
  return result;
}

at::Tensor FilterBank::operator()(const at::Tensor& samples) const {
  TORCH_CHECK(samples.dim() == 1, "filter_bank: samples must be (samples), one channel, got ",
              samples.sizes(), "; choose_channel and mix_channels make one of several");
  return compute(samples, 0, samples.size(0), 0, frames(samples.size(0)));
}

}  // namespace quatrain::data
