// What the passes have to know of the processor.

#include <exception>
#include <string_view>
#include <vector>

#include "ops/engine/blocking.h"

namespace quatrain::ops::engine {

const Layout& layout() {
  static const Layout known = [] {
    const std::string_view name = kernels::cpu::active().name;
    return name == "avx2" ? Layout{32, 16, 24, 2, 1}
                          : Layout{kColumns, kColumns / 2, kColumns / 2, name == "avx512" ? 4 : 0, 2};
  }();
  return known;
}

bool prefers_halves() {
  return at::native::cpublas::could_pack(at::kBFloat16);
}

bool multiplies_halves() {
  static const bool works = [] {
    const bf16 a[2] = {}, b[2 * kPackedColumns] = {};
    float c[kPackedColumns];
    try {
      multiply_block(1, kPackedColumns, 2, a, 2, b, {}, c);
    } catch (const std::exception&) {
      return false;
    }
    at::native::cpublas::brgemm_release(true);
    return true;
  }();
  return works;
}

bool rows_stand_alone() {
  // No function of ATen's tells, so a product is looked at: of many rows, and of a few of them.
  static const bool same = [] {
    constexpr int64_t kRows = 64, kDepth = 256;
    const std::vector<float> a = probe_values(kRows * kDepth), b = probe_values(kDepth * kColumns);
    const auto product = [&](int64_t rows) {
      std::vector<float> c(static_cast<size_t>(rows * kColumns));
      multiply_block(rows, kColumns, kDepth, a.data(), kDepth, b.data(), {}, c.data());
      return c;
    };
    const std::vector<float> whole = product(kRows);
    bool equal = true;
    for (int64_t rows = 1; rows < kRows; ++rows) {
      if (tile_height(rows, kRows) != rows) continue;
      const std::vector<float> some = product(rows);
      equal = equal && std::equal(some.begin(), some.end(), whole.begin());
    }
    return equal;
  }();
  return same;
}

}  // namespace quatrain::ops::engine
