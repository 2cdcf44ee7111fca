#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/convolution/convolution.h"
#include "ops/engine/engine.h"
#include "ops/engine/mixing.h"

/// What the convolutions on a CPU have in common. Three spatial axes are a stack of planes, two a stack of
/// one plane, and one a plane of height 1.
namespace quatrain::ops::plane {

/// Values between parts of scratch memory: off the powers of two, whose multiples share cache sets.
constexpr int64_t kSkew = 16;

/// The spatial axes, in the order of their sizes.
enum AxisName : int { kDeep, kDown, kAcross, kAxes };

/// A convolution of images a into images b: y = b of x = a, or, transposed, x = b and y = a. Its weights are
/// F (n, units of b, units of a in a group, depth, height, width).
struct Plane {
  int64_t batch, n, groups;
  int64_t a_units, b_units;  ///< of a component, all groups together
  int64_t a_size[kAxes], b_size[kAxes];
  int64_t kernel[kAxes], stride[kAxes], padding[kAxes], dilation[kAxes];

  int64_t a_in_group() const { return a_units / groups; }
  int64_t b_in_group() const { return b_units / groups; }
  int64_t places() const { return kernel[kDeep] * kernel[kDown] * kernel[kAcross]; }
};

Plane make_plane(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call);

/// Images in memory, float32: channels last, or first. `slice` counts the planes of all images.
struct Images {
  float* data = nullptr;
  int64_t channels, depth, height, width;
  bool last;

  int64_t plane() const { return height * width; }
  /// Channels first: values from a channel to the next.
  int64_t channel() const { return depth * plane(); }
  /// A pixel's channels, side by side; channels last only.
  float* pixel(int64_t slice, int64_t y, int64_t x) const {
    return data + (slice * plane() + y * width + x) * channels;
  }
  /// A channel's row; channels first only.
  float* row(int64_t slice, int64_t channel, int64_t y) const {
    return data + ((slice / depth * channels + channel) * depth + slice % depth) * plane() + y * width;
  }
};

/// Images of a tensor that is dense in one of the two orders; see `dense`.
Images images_of(const at::Tensor& t);
/// The tensor in float32, dense in the order of `format_of`.
at::Tensor dense(const at::Tensor& t);

/// A rectangle of pixels of a plane, which may lie partly off it.
struct Window {
  int64_t y, x, rows, cols;
};

/// Copies rows y .. y + rows of a plane into rows of pixels. Channels first only.
void gather(const Images& images, int64_t slice, int64_t y, int64_t rows, float* to);
/// Copies `count` channels, from `channel` on, of the pixels of a window on the plane, row by row. Channels
/// first only.
void scatter(const float* from, const Images& images, const Window& window, int64_t slice, int64_t channel,
             int64_t count);

/// The length of equal parts of at most `largest`, as many as the threads like.
int64_t equal_parts(int64_t whole, int64_t largest, int64_t threads);

/// Pointers at a window's pixels, row by row, in a plane of height x width; those off it point at `off`.
/// `row0` holds the pixels of row y0.
template <class T>
void find_pixels(const Window& window, int64_t height, int64_t width, int64_t channels, T* row0, int64_t y0,
                 T* off, T** to) {
  for (int64_t y = window.y; y < window.y + window.rows; ++y)
    for (int64_t x = window.x; x < window.x + window.cols; ++x)
      *to++ = y >= 0 && y < height && x >= 0 && x < width ? row0 + ((y - y0) * width + x) * channels : off;
}

/// Which way through the plane: from a to b, or from b to a, and what the factors are then. n -> R of the
/// input, n -> R of the weights, R -> n of the result.
struct Direction {
  bool from_a = true;
  const engine::Mixing *in = nullptr, *weights = nullptr, *out = nullptr;
  int64_t rank = 0;
};

/// The R mixtures of the weights, as they are multiplied from the right: calls take(group, r, k, rows) with
/// the places of the kernel for unit k of a group's inputs, each a row of the units of a group's outputs, one
/// after the other, in the order in which they meet the input.
class MixedWeights {
 public:
  MixedWeights(const Plane& plane, const Direction& way, const float* F) : plane_(plane), way_(way), F_(F) {}
  int64_t inputs() const { return way_.from_a ? plane_.a_in_group() : plane_.b_in_group(); }
  int64_t outputs() const { return way_.from_a ? plane_.b_in_group() : plane_.a_in_group(); }
  template <class Take>
  void each(const Take& take) const {
    constexpr int64_t kUnits = 8;  // of a task
    const int64_t chunks = (inputs() + kUnits - 1) / kUnits;
    at::parallel_for(0, plane_.groups * chunks, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> memory(static_cast<size_t>(way_.rank * kUnits * plane_.places() * outputs()));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t group = task / chunks, first = task % chunks * kUnits,
                      count = std::min(kUnits, inputs() - first);
        mix(group, first, count, memory.data());
        for (int64_t r = 0; r < way_.rank; ++r)
          for (int64_t k = 0; k < count; ++k)
            take(group, r, first + k, memory.data() + (r * count + k) * plane_.places() * outputs());
      }
    });
  }

 private:
  /// To [r][unit][place][output].
  void mix(int64_t group, int64_t first, int64_t count, float* to) const;

  const Plane& plane_;
  const Direction& way_;
  const float* F_;
};

/// Packed weights of Winograd's positions: [group][position][r][depth of the kernel][input][output].
int64_t winograd_packed_size(const Plane& plane, const Direction& way, int64_t m);
void pack_winograd(const Plane& plane, const Direction& way, const float* F, int64_t m, float* packed);
/// One way by Winograd's F(m x m, 3 x 3); the bias has a value a channel, or is null.
void run_winograd(const Plane& plane, const Direction& way, const float* packed, int64_t m, const Images& in,
                  const Images& out, const engine::Epilogue& epilogue);
/// The gradient of the weights by it: of images a, mixed by `a_in` into `rank`, and of b by `b_in`. Mixtures
/// of the products by `out`, or the products themselves without, each as one of F's blocks.
struct WeightPass {
  const engine::Mixing *a_in, *b_in, *out;
  int64_t rank;
  int64_t results;
};
void run_winograd_weights(const Plane& plane, const WeightPass& pass, int64_t m, const Images& a,
                          const Images& b, float* dF);

/// Packed weights of the direct way: [group][block of columns][r][place][input][column], places phase by
/// phase (direct_view.h).
int64_t direct_packed_size(const Plane& plane, const Direction& way);
void pack_direct(const Plane& plane, const Direction& way, const float* F, float* packed);
/// One way as it is.
void run_direct(const Plane& plane, const Direction& way, const float* packed, const Images& in,
                const Images& out, const engine::Epilogue& epilogue);
/// The gradient of the weights as it is.
void run_direct_weights(const Plane& plane, const WeightPass& pass, const Images& a, const Images& b,
                        float* dF);

}  // namespace quatrain::ops::plane
