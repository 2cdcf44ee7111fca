#include "ops/convolution/winograd_rows.h"

#include <algorithm>

namespace quatrain::ops::plane {

TileRow tile_row(int64_t number, int64_t depth, int64_t down) {
  const int64_t column = number / depth;
  return {column / down * depth + number % depth, column % down};
}

void Meetings::find(const Plane& plane, bool from_a, int64_t first, int64_t count, int64_t down) {
  const int64_t planes = plane.kernel[kDeep], apart = plane.dilation[kDeep], reach = (planes - 1) * apart,
                before = from_a ? plane.padding[kDeep] : reach - plane.padding[kDeep],
                in_depth = (from_a ? plane.a_size : plane.b_size)[kDeep],
                out_depth = (from_a ? plane.b_size : plane.a_size)[kDeep];
  inputs.clear(), runs.clear();
  met_.assign(static_cast<size_t>(planes * count), -1);
  for (int64_t row = 0; row < count;) {
    const TileRow top = tile_row(first + row, out_depth, down);
    const int64_t z = top.slice % out_depth, here = std::min(out_depth - z, count - row), begin = z - before;
    for (int64_t in_z = std::max<int64_t>(0, begin); in_z < std::min(in_depth, begin + here + reach);
         ++in_z) {
      bool met = false;
      for (int64_t w = 0; w < planes; ++w) {
        const int64_t i = in_z - begin - w * apart;
        if (i < 0 || i >= here) continue;
        met_[static_cast<size_t>(w * count + row + i)] = static_cast<int64_t>(inputs.size());
        met = true;
      }
      if (met) inputs.push_back({top.slice / out_depth * in_depth + in_z, top.row});
    }
    row += here;
  }
  for (int64_t w = 0; w < planes; ++w)
    for (int64_t row = 0, rows; row < count; row += rows) {
      const int64_t* const met = met_.data() + w * count;
      const auto follows = [&](int64_t next) {
        return met[row] < 0 ? met[next] < 0 : met[next] == met[row] + next - row;
      };
      rows = 1;
      while (row + rows < count && follows(row + rows)) ++rows;
      runs.push_back({w, row, rows, met[row]});
    }
}

bool Meetings::are_pairs(const Plane& plane) {
  return plane.kernel[kDeep] == 1 && plane.padding[kDeep] == 0 && plane.a_size[kDeep] == plane.b_size[kDeep];
}

int64_t Meetings::most_inputs(const Plane& plane, bool from_a, int64_t count) {
  const int64_t planes = plane.kernel[kDeep], out_depth = (from_a ? plane.b_size : plane.a_size)[kDeep],
                columns = std::min(count, count / out_depth + 2);
  return std::min(count * planes, count + columns * (planes - 1) * plane.dilation[kDeep]);
}

}  // namespace quatrain::ops::plane
