#include "ops/convolution/direct_rows.h"

#include <algorithm>

namespace quatrain::ops::plane::direct {

namespace {

constexpr int64_t kMixedBytes = 1 << 19;  // of a panel's mixtures
constexpr int64_t kLongRow = 256;         // of pixels; longer ones are cut

}  // namespace

Panels::Panels(const Plane& plane, const View& view, int64_t rank, int64_t units, int64_t threads)
    : rows(plane.batch * view.depth * view.height), whole_(view.width) {
  width = whole_ > kLongRow ? equal_parts(whole_, kPixels, threads) : whole_;
  cuts_ = (whole_ + width - 1) / width;
  wide = cuts_ > 1 ? (width - 1) * view.across.stride + view.across.reach : view.wide;
  const int64_t row_bytes = rank * wide * units * 4 * view.down.stride * view.planes();
  height = std::clamp<int64_t>(std::min(kMixedBytes / row_bytes, kPixels / width), 1, rows);
  height = cuts_ > 1 ? 1 : equal_parts(rows, height, threads);
  count = (rows + height - 1) / height * cuts_;
  // Each run of rows in one plane reads the kernel's reach beyond its own.
  const int64_t runs = std::min(height, height / view.height + 2);
  most_inputs =
      std::min(height * view.down.stride + runs * view.down.reach, height * view.met()) * view.planes();
}

MixedRows::MixedRows(const View& view, const Panels& panels, const engine::Mixing& mixing, int64_t rank,
                     int64_t n, const Images& in)
    : view_(view),
      p_(panels),
      mixing_(mixing.view()),
      rank_(rank),
      n_(n),
      in_(in),
      units_(in.channels / n),
      mixed_(panels.most_inputs * panels.wide * units_ + kSkew),
      to_(static_cast<size_t>(rank)) {}

void MixedRows::read(const Panel& panel, float* memory) {
  panel_ = panel, memory_ = memory;
  places_.clear(), taken_.clear();
  mixed_rows_ = 0;
  for (int64_t row = panel.first; row < panel.last;) {
    const int64_t y = row % view_.height, count = std::min(view_.height - y, panel.last - row);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t plane = 0; plane < view_.planes(); ++plane) places_.push_back({});
    for (int64_t plane = 0; plane < view_.planes(); ++plane) {
      const int64_t slice = met_slice(row / view_.height, plane);
      if (slice >= 0) read(slice, y, count, row - panel.first, plane);
    }
    row += count;
  }
}

kernels::cpu::Fetched MixedRows::fresh_of(const Panel& panel) const {
  if (!in_.last) return {};
  const auto last_met = [](const Axis& axis, int64_t pixel, int64_t size) {
    return std::clamp<int64_t>(pixel * axis.stride - axis.padding + axis.reach - axis.stride, 0, size - 1);
  };
  const int64_t slice = panel.first / view_.height, z = last_met(view_.deep, slice % view_.depth, in_.depth),
                y = last_met(view_.down, panel.first % view_.height, in_.height),
                x = panel.left > 0 ? last_met(view_.across, panel.left, in_.width) : 0,
                pixels = panel.left > 0 ? panel.width() * view_.across.stride
                                        : panel.rows() * std::min(view_.down.stride, in_.height) * in_.width;
  return {in_.pixel(slice / view_.depth * in_.depth + z, y, x), pixels * in_.channels};
}

/// The plane of the input that a plane of the kernel brings to one of the grid, or one of those from its
/// first to its last where phases differ; -1 off the image, and where none of them is met.
int64_t MixedRows::met_slice(int64_t slice, int64_t plane) const {
  const Axis& deep = view_.deep;
  const Phase& only = deep.phases[0];
  const int64_t offset = view_.one_phase() ? only.begin + plane * only.next : plane - deep.padding,
                z = slice % view_.depth * deep.stride + offset;
  return z >= 0 && z < in_.depth && deep.meets(offset) ? slice / view_.depth * in_.depth + z : -1;
}

/// What rows y .. y + count of the grid meet in a plane, unless a run of rows before them met the same.
void MixedRows::read(int64_t slice, int64_t y, int64_t count, int64_t row, int64_t plane) {
  const int64_t stride = view_.down.stride, met = view_.met(), begin = y * stride - view_.down.padding,
                all = (count - 1) * stride + view_.down.reach;
  const bool close = count * met < all;  // rows between, of a stride or a dilation, are not read
  const Run run{slice, y, count, mixed_rows_};
  const auto found = std::find_if(taken_.begin(), taken_.end(), [&](const Run& other) {
    return other.slice == slice && other.y == y && other.count == count;
  });
  const int64_t at = found != taken_.end() ? found->at : mixed_rows_;
  for (int64_t i = 0; i < count; ++i)
    places_[static_cast<size_t>((row + i) * view_.planes() + plane)] = {at + i * (close ? 1 : stride), count,
                                                                        close};
  if (found != taken_.end()) return;
  taken_.push_back(run);
  if (!close) {
    for (int64_t i = 0; i < all; ++i) mix(slice, begin + i, mixed_rows_++);
    return;
  }
  const Phase& phase = view_.down.phases[0];
  const int64_t above = phase.begin + view_.down.padding;
  for (int64_t u = 0; u < met; ++u)
    for (int64_t i = 0; i < count; ++i)
      mix(slice, begin + above + i * stride + u * phase.next, mixed_rows_++);
}

/// A row of pixels, or what the panel reads of it, with its padding.
void MixedRows::mix(int64_t slice, int64_t y, int64_t at) {
  const int64_t begin = panel_.left * view_.across.stride - view_.across.padding,
                before = std::clamp<int64_t>(-begin, 0, p_.wide), x = begin + before,
                width = std::clamp<int64_t>(in_.width - x, 0, p_.wide - before),
                after = p_.wide - before - width;
  const bool inside = y >= 0 && y < in_.height;
  for (int64_t r = 0; r < rank_; ++r) {
    float* const row = memory_ + r * mixed_ + at * p_.wide * units_;
    if (!inside) {
      std::fill_n(row, p_.wide * units_, 0.f);
      continue;
    }
    std::fill_n(row, before * units_, 0.f);
    std::fill_n(row + (before + width) * units_, after * units_, 0.f);
    to_[static_cast<size_t>(r)] = row + before * units_;
  }
  if (!inside || width == 0) return;
  const float* components[engine::kMaxComponents];
  if (in_.last) {
    for (int64_t c = 0; c < n_; ++c) components[c] = in_.pixel(slice, y, x) + c * units_;
    k_.combine_f_f(mixing_, components, in_.channels, to_.data(), units_, width, units_, nullptr,
                   kernels::cpu::Store::set);
  } else {
    for (int64_t c = 0; c < n_; ++c) components[c] = in_.row(slice, c * units_, y) + x;
    k_.transpose_f_f(mixing_, static_cast<int32_t>(n_), components, in_.channel(), to_.data(), units_, units_,
                     width);
  }
}

}  // namespace quatrain::ops::plane::direct
