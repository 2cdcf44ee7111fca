#pragma once

#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/direct_view.h"

/// Panels of pixels of a result, and what of the input they meet: its mixtures, made once for all places of
/// the kernel.
namespace quatrain::ops::plane::direct {

constexpr int64_t kPixels = 128;  // of a panel: what is made of it stays in the second level cache

/// Some rows of pixels of the grid, counted through all planes, and the part of each from `left` to `right`.
struct Panel {
  int64_t first, last, left, right;

  int64_t rows() const { return last - first; }
  int64_t width() const { return right - left; }
};

struct Panels {
  int64_t rows, height, count;  ///< rows of the grid, of all planes and of a panel; panels
  int64_t width;                ///< pixels of a panel's row
  int64_t wide;                 ///< pixels of a row of the input with its padding, for a panel
  int64_t most_inputs;          ///< rows of the input that a panel reads at most

  /// Of R = `rank` mixtures of `units`, for so many threads.
  Panels(const Plane& plane, const View& view, int64_t rank, int64_t units, int64_t threads);

  Panel operator[](int64_t panel) const {
    const int64_t first = panel / cuts_ * height, left = panel % cuts_ * width;
    return {first, std::min(first + height, rows), left, std::min(left + width, whole_)};
  }

 private:
  int64_t cuts_, whole_;  // panels and pixels of a row of the grid
};

/// The rows of the input that a panel meets, mixed, with zeros around them: [r][row][pixel][unit].
class MixedRows {
 public:
  MixedRows(const View& view, const Panels& panels, const engine::Mixing& mixing, int64_t rank, int64_t n,
            const Images& in);

  /// Values of the memory that it needs.
  int64_t size() const { return rank_ * mixed_; }
  void read(const Panel& panel, float* memory);
  /// The pixels of the input that a panel meets and the one before it does not, more or less, where they are
  /// one stretch of memory.
  kernels::cpu::Fetched fresh_of(const Panel& panel) const;

  /// True where a row of the panel meets a plane of the input.
  bool meets(int64_t row, int64_t plane) const { return place(row, plane).begin >= 0; }
  /// True where the row of the input that lies `below` the first one that a row of the panel meets is not
  /// zeros beside the image, of which there are many for a large dilation.
  bool on_image(int64_t row, int64_t below) const {
    const int64_t y = (panel_.first + row) % view_.height * view_.down.stride - view_.down.padding + below;
    return y >= 0 && y < in_.height;
  }
  /// Where a row of the panel begins to meet a plane of the input, with row u of the kernel, which lies
  /// `below` the first row that any meets, and `before` pixels behind the first. From a pixel of the result
  /// to the next it is View::across.stride pixels.
  const float* at(int64_t r, int64_t row, int64_t plane, int64_t u, int64_t below, int64_t before) const {
    const Place& p = place(row, plane);
    const int64_t mixed_row = p.begin + (p.close ? u * p.apart : below);
    return memory_ + r * mixed_ + (mixed_row * p_.wide + before) * units_;
  }

 private:
  /// Where the rows of a plane of the input that a row of the result meets are among the mixed rows; `begin`
  /// is -1 where none is met. Close: the row that row u of the kernel meets is at begin + u apart. Else the
  /// row of the input b rows below the first is at begin + b.
  struct Place {
    int64_t begin = -1, apart = 0;
    bool close = false;
  };
  /// What rows of the grid met in a plane of the input, from a mixed row on.
  struct Run {
    int64_t slice, y, count, at;
  };

  const Place& place(int64_t row, int64_t plane) const {
    return places_[static_cast<size_t>(row * view_.planes() + plane)];
  }
  int64_t met_slice(int64_t slice, int64_t plane) const;
  void read(int64_t slice, int64_t y, int64_t count, int64_t row, int64_t plane);
  void mix(int64_t slice, int64_t y, int64_t at);

  const View& view_;
  const Panels& p_;
  const kernels::cpu::Mix mixing_;
  const int64_t rank_, n_;
  const Images in_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  const int64_t units_, mixed_;
  float* memory_ = nullptr;
  Panel panel_{};
  std::vector<float*> to_;
  std::vector<Place> places_;  // [row][plane of the kernel]
  std::vector<Run> taken_;
  int64_t mixed_rows_ = 0;
};

}  // namespace quatrain::ops::plane::direct
