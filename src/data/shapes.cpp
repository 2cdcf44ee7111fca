#include "quatrain/data/shapes.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/generated_sizes.h"
#include "data/in_threads.h"
#include "data/random.h"
#include "quatrain/data/image_set.h"

namespace quatrain::data {
namespace {

constexpr int64_t kShapes = 5;   // each whole or with a hole
constexpr int64_t kSamples = 3;  // of a pixel in each direction
constexpr double kNoise = 45;    // a pixel's channel moves by so much at most

struct Point {
  double x = 0, y = 0;
};
using Colour = std::array<double, 3>;
using Polygon = std::vector<Point>;

double between(LineRandom& random, double low, double high) {
  constexpr uint64_t kSteps = uint64_t{1} << 32;
  return low + (high - low) * static_cast<double>(random.below(kSteps)) / static_cast<double>(kSteps);
}

Colour draw_colour(LineRandom& random) {
  Colour colour;
  for (double& channel : colour) channel = between(random, 0, 255);
  return colour;
}

/// Corners on circles of these radii in turn, evenly around.
Polygon around(int64_t corners, std::initializer_list<double> radii) {
  Polygon polygon;
  for (int64_t i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(corners);
    const double radius = radii.begin()[static_cast<size_t>(i) % radii.size()];
    polygon.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return polygon;
}

/// Shapes of about one area, with room for a hole of kHole in the middle.
Polygon shape_outline(int64_t shape) {
  constexpr double kArm = .38, kEnd = .95;
  switch (shape) {
    case 0:
      return around(24, {.82});
    case 1:
      return around(4, {1.0});
    case 2:
      return around(3, {1.15});
    case 3:
      return around(10, {1.15, .5});
    default:
      return {{kEnd, kArm},   {kArm, kArm},   {kArm, kEnd},   {-kArm, kEnd}, {-kArm, kArm}, {-kEnd, kArm},
              {-kEnd, -kArm}, {-kArm, -kArm}, {-kArm, -kEnd}, {kArm, -kEnd}, {kArm, -kArm}, {kEnd, -kArm}};
  }
}
constexpr double kHole = .3;

/// By the number of edges that a ray to the right crosses.
bool is_inside(const Polygon& polygon, Point point) {
  bool inside = false;
  for (size_t i = 0, before = polygon.size() - 1; i < polygon.size(); before = i++) {
    const Point a = polygon[i], b = polygon[before];
    if ((a.y > point.y) != (b.y > point.y) && point.x < a.x + (b.x - a.x) * (point.y - a.y) / (b.y - a.y))
      inside = !inside;
  }
  return inside;
}

/// Stretched, turned, as large and where it is drawn.
struct Placing {
  Point centre;
  double radius, stretch, cosine, sine;

  Placing(LineRandom& random, double smallest, double largest, double edge) {
    constexpr double kMostStretch = 1.25;
    radius = between(random, smallest, largest);
    stretch = between(random, 1, kMostStretch);
    const double angle = between(random, 0, 2 * std::numbers::pi);
    cosine = std::cos(angle), sine = std::sin(angle);
    centre.x = between(random, edge, kShapeSide - edge);
    centre.y = between(random, edge, kShapeSide - edge);
  }
  Polygon operator()(Polygon polygon) const {
    for (Point& point : polygon) {
      const double x = radius * stretch * point.x, y = radius / stretch * point.y;
      point = {centre.x + cosine * x - sine * y, centre.y + sine * x + cosine * y};
    }
    return polygon;
  }
};

class Canvas {
 public:
  explicit Canvas(LineRandom& random) {
    const Colour from = draw_colour(random), to = draw_colour(random);
    const double angle = between(random, 0, 2 * std::numbers::pi);
    for_each([&](Colour& pixel, double x, double y) {
      const double along =
          .5 + ((x - kShapeSide / 2.0) * std::cos(angle) + (y - kShapeSide / 2.0) * std::sin(angle)) /
                   (kShapeSide * std::numbers::sqrt2);
      for (size_t c = 0; c < 3; ++c) pixel[c] = from[c] + (to[c] - from[c]) * along;
    });
  }

  /// Fills what is in the polygon and not in the hole.
  void fill(const Polygon& polygon, const Polygon& hole, const Colour& colour) {
    const auto across = std::ranges::minmax(polygon, {}, &Point::x);
    const auto along = std::ranges::minmax(polygon, {}, &Point::y);
    for_each([&](Colour& pixel, double x, double y) {
      if (x < across.min.x - 1 || x > across.max.x + 1 || y < along.min.y - 1 || y > along.max.y + 1) return;
      int hits = 0;
      for (int64_t i = 0; i < kSamples * kSamples; ++i) {
        const Point point{x + (static_cast<double>(i % kSamples) + .5) / kSamples - .5,
                          y + (static_cast<double>(i / kSamples) + .5) / kSamples - .5};
        hits += is_inside(polygon, point) && !is_inside(hole, point);
      }
      const double share = static_cast<double>(hits) / (kSamples * kSamples);
      for (size_t c = 0; c < 3; ++c) pixel[c] += share * (colour[c] - pixel[c]);
    });
  }

  const Colour& at(Point point) const {
    return pixels_[static_cast<size_t>(point.y)][static_cast<size_t>(point.x)];
  }

  void write(LineRandom& random, uint8_t* planes) const {
    for (size_t c = 0; c < 3; ++c)
      for (const auto& row : pixels_)
        for (const Colour& pixel : row)
          *planes++ = static_cast<uint8_t>(
              std::clamp(std::lround(pixel[c] + between(random, -kNoise, kNoise)), 0L, 255L));
  }

 private:
  /// With the middle of each pixel.
  template <class Take>
  void for_each(const Take& take) {
    for (size_t row = 0; row < pixels_.size(); ++row)
      for (size_t column = 0; column < pixels_[row].size(); ++column)
        take(pixels_[row][column], static_cast<double>(column) + .5, static_cast<double>(row) + .5);
  }

  std::array<std::array<Colour, kShapeSide>, kShapeSide> pixels_;
};

/// A colour that can be told from another under the noise.
Colour draw_contrast(LineRandom& random, const Colour& other) {
  constexpr double kLeast = 90;  // in a channel
  for (;;) {
    const Colour colour = draw_colour(random);
    double most = 0;
    for (size_t c = 0; c < 3; ++c) most = std::max(most, std::abs(colour[c] - other[c]));
    if (most >= kLeast) return colour;
  }
}

void draw_shape(LineRandom random, int64_t label, uint8_t* planes) {
  constexpr int64_t kLines = 2, kPatches = 3;
  Canvas canvas(random);
  for (int64_t i = 0; i < kLines; ++i) {
    const Placing place(random, 20, 40, 0);
    canvas.fill(place({{-1, -.02}, {1, -.02}, {1, .02}, {-1, .02}}), {}, draw_colour(random));
  }
  for (int64_t i = 0; i < kPatches; ++i) {
    const Placing place(random, 1.5, 4, 0);
    canvas.fill(place(around(4, {1.0})), {}, draw_colour(random));
  }
  const Placing place(random, 7.5, 12, 11);
  const Polygon outline = place(shape_outline(label % kShapes));
  const Polygon hole = label < kShapes ? Polygon() : place(around(12, {kHole}));
  canvas.fill(outline, hole, draw_contrast(random, canvas.at(place.centre)));
  canvas.write(random, planes);
}

/// Each set draws from streams of its own.
enum class ShapeSet : uint64_t { train, dev, test };

int64_t label_of(int64_t i) {
  return i % (2 * kShapes);
}

LineRandom stream_of(const ShapesOptions& options, ShapeSet set, int64_t i) {
  return LineRandom(mixed(mixed(options.seed) + static_cast<uint64_t>(set)), static_cast<uint64_t>(i));
}

ImageSet draw_shapes(const ShapesOptions& options, ShapeSet set, int64_t count) {
  ImageSet shapes{torch::empty({count, 3, kShapeSide, kShapeSide}, torch::kUInt8),
                  torch::arange(count) % (2 * kShapes)};
  auto* planes = shapes.images.data_ptr<uint8_t>();
  constexpr int64_t kBytes = 3 * kShapeSide * kShapeSide;
  for_each_in_threads(
      count, [&](int64_t i) { draw_shape(stream_of(options, set, i), label_of(i), planes + i * kBytes); });
  return shapes;
}

}  // namespace

at::Tensor shape_image(const ShapesOptions& options, int64_t i) {
  TORCH_CHECK(i >= 0, "shape_image: i must not be negative, got ", i);
  const at::Tensor image = torch::empty({3, kShapeSide, kShapeSide}, torch::kUInt8);
  draw_shape(stream_of(options, ShapeSet::train, i), label_of(i), image.data_ptr<uint8_t>());
  return image;
}

ImageSplits generate_shapes(const ShapesOptions& options) {
  check_sizes("generate_shapes", options.train, options.dev, options.test);
  return {draw_shapes(options, ShapeSet::train, options.train),
          draw_shapes(options, ShapeSet::dev, options.dev),
          draw_shapes(options, ShapeSet::test, options.test),
          {"circle", "square", "triangle", "star", "cross", "circle with a hole", "square with a hole",
           "triangle with a hole", "star with a hole", "cross with a hole"},
          {}};
}

}  // namespace quatrain::data
