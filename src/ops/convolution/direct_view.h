#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/convolution/plane.h"

/// How one way without transforms sees planes: which pixels meet which places of the kernel.
///
/// From b to a a stride s splits the result in phases: pixels that are s apart along an axis meet the same
/// places of the kernel, and those of other phases meet the rest. The grid is what the phases share.
namespace quatrain::ops::plane::direct {

/// The pixels of an axis of the result that meet the same places of the kernel: `at`, at + step, ...
struct Phase {
  int64_t at;
  int64_t place, apart, count;  ///< places, in the order in which they meet the input
  int64_t begin, next;          ///< pixels of the input that they meet, from the grid's own pixel on
};

/// An axis as one way sees it. Pixel i of the grid is pixel stride i of the input and pixels step i + at of
/// the result, one a phase.
struct Axis {
  int64_t stride = 1, step = 1;
  int64_t padding = 0, reach = 1;  ///< of all phases: pixels before a grid's pixel, pixels from there on
  std::vector<Phase> phases;

  Axis(const Plane& plane, const Direction& way, AxisName axis) {
    const int64_t kernel = plane.kernel[axis], dilation = plane.dilation[axis];
    if (way.from_a) {
      padding = plane.padding[axis], reach = (kernel - 1) * dilation + 1;
      // With a longer one the result has a single pixel. ATen's products allocate memory for the rows'
      // distance.
      stride = std::min(plane.stride[axis], plane.a_size[axis] + 2 * padding);
      phases.push_back({0, 0, 1, kernel, -padding, dilation});
      return;
    }
    const int64_t apart = plane.stride[axis], common = std::gcd(dilation, apart);
    // Phases from there on have no pixel. Two, so that the result's pixels are not taken for the grid's.
    step = std::min(apart, std::max<int64_t>(plane.a_size[axis], 2));
    int64_t first = 0, last = 0;
    for (int64_t at = 0; at < step; ++at) {
      Phase phase{at, 0, apart / common, 0, 0, dilation / common};
      // Where the first place would meet the input, were its pixels as close as the result's.
      int64_t met = at - (dilation * (kernel - 1) - plane.padding[axis]);
      while (phase.place < kernel && met % apart != 0) ++phase.place, met += dilation;
      if (phase.place < kernel) {
        phase.count = (kernel - 1 - phase.place) / phase.apart + 1;
        phase.begin = met / apart;
        first = std::min(first, phase.begin);
        last = std::max(last, phase.begin + (phase.count - 1) * phase.next);
      }
      phases.push_back(phase);
    }
    padding = -first, reach = last - first + 1;
  }

  /// True where some phase meets the pixel of the input so far from the grid's own.
  bool meets(int64_t offset) const {
    return std::any_of(phases.begin(), phases.end(), [&](const Phase& phase) {
      const int64_t far = offset - phase.begin;
      return far >= 0 && far % phase.next == 0 && far / phase.next < phase.count;
    });
  }
  /// Pixels of the grid, and of a phase, for so many of the result.
  int64_t grid(int64_t pixels) const { return (pixels + step - 1) / step; }
  int64_t pixels_of(const Phase& phase, int64_t pixels) const {
    return pixels > phase.at ? grid(pixels - phase.at) : 0;
  }
};

/// Places of a row of the kernel that are one product of a phase: their channels lie side by side.
inline int64_t neighbours(const Plane& plane, const Phase& across) {
  return across.next == 1 && plane.groups == 1 ? across.count : 1;
}

/// The planes as one way sees them.
struct View {
  Axis deep, down, across;
  int64_t depth, height, width;  ///< of the grid
  int64_t wide;                  ///< pixels of a row of the input with its padding

  View(const Plane& plane, const Direction& way, const Images& in, const Images& out)
      : deep(plane, way, kDeep),
        down(plane, way, kDown),
        across(plane, way, kAcross),
        depth(deep.grid(out.depth)),
        height(down.grid(out.height)),
        width(across.grid(out.width)),
        wide(std::max((width - 1) * across.stride + across.reach, in.width + across.padding)) {}
  /// True where the result's pixels are the grid's.
  bool one_phase() const { return deep.step == 1 && down.step == 1 && across.step == 1; }
  int64_t phases() const {
    return static_cast<int64_t>(deep.phases.size() * down.phases.size() * across.phases.size());
  }
  /// Rows of the input that a row of the result meets in a plane, of all from its first to its last; planes.
  int64_t met() const { return met(down); }
  int64_t planes() const { return met(deep); }

 private:
  int64_t met(const Axis& axis) const { return one_phase() ? axis.phases[0].count : axis.reach; }
};

}  // namespace quatrain::ops::plane::direct
