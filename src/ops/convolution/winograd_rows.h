#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/plane.h"

/// The rows of tiles of a panel, and those of the input that they meet. Rows of tiles are counted so that
/// those behind each other, of neighbouring planes, are neighbours.
namespace quatrain::ops::plane {

/// A row of tiles of a plane; planes are counted over all images.
struct TileRow {
  int64_t slice, row;
};
/// The one of this number, of images of `depth` planes with `down` rows of tiles each.
TileRow tile_row(int64_t number, int64_t depth, int64_t down);

/// Rows of tiles that meet neighbours by a plane of the kernel: those of a panel from `row` on meet those of
/// the input from `input` on; nothing where that is negative.
struct Meeting {
  int64_t plane, row, rows, input;
};

/// What a panel meets. Planes of the kernel follow each other, and each has all rows of the panel.
struct Meetings {
  std::vector<TileRow> inputs;  ///< each once
  std::vector<Meeting> runs;

  /// Of `count` rows of the result from number `first` on.
  void find(const Plane& plane, bool from_a, int64_t first, int64_t count, int64_t down);
  /// True where each plane of the result meets the plane of the input with its number, and no other.
  static bool are_pairs(const Plane& plane);
  /// The most inputs that so many rows have.
  static int64_t most_inputs(const Plane& plane, bool from_a, int64_t count);

 private:
  std::vector<int64_t> met_;  // [plane of the kernel][row]
};

}  // namespace quatrain::ops::plane
