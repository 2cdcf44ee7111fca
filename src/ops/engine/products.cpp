#include "ops/engine/products.h"

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/engine/engine.h"

namespace quatrain::ops::engine {

namespace {

using kernels::cpu::Fetched;
using kernels::cpu::Links;
using kernels::cpu::Table;

/// Whether a table's product has the bits of ATen's. Then a row has the same ones whichever of the two its
/// number of rows takes. Those of oneDNN from AVX2 on are the same chains of sums; MKL's, which ATen has
/// without it, are not, and a table without fused products is not either.
bool has_bits_of_atens(const Table& table) {
  constexpr int64_t kDepth = 1000;  // products that are no single chain are cut at less
  constexpr int64_t kFew = 32, kRows = 64;
  const std::vector<float> a = probe_values(kRows * kDepth), b = probe_values(kDepth * kColumns);
  const auto same = [&](int64_t rows, int64_t cols) {
    std::vector<float> own(static_cast<size_t>(rows * cols)), atens = own;
    const float *const x = a.data(), *const w = b.data();
    const Links links{&x, &w, 1};
    float* const to = own.data();
    table.products(&links, 1, kDepth, rows, kColumns, kDepth, cols, &to, cols, {});
    at::native::cpublas::brgemm(rows, cols, kDepth, kDepth, kColumns, cols, false, a.data(), b.data(),
                                atens.data());
    return own == atens;
  };
  for (int64_t rows = 1; rows <= kFew; ++rows)
    if (!same(rows, kColumns)) return false;
  for (const int64_t rows : {kFew + 5, kRows})
    for (const int64_t cols : {int64_t{17}, kColumns})
      if (!same(rows, cols)) return false;
  return true;
}

bool takes_own(const Table& table) {
  static const auto known = [] {
    std::vector<std::pair<const Table*, bool>> all;
    for (const Table* const* each = kernels::cpu::available(); *each; ++each)
      all.emplace_back(*each, has_bits_of_atens(**each));
    return all;
  }();
  return std::any_of(known.begin(), known.end(),
                     [&](const auto& entry) { return entry.first == &table && entry.second; });
}

}  // namespace

bool takes_own_products() {
  return takes_own(kernels::cpu::active());
}

std::vector<float> probe_values(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& value : values)
    value = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24F;
  return values;
}

void small_product(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row, const float* b,
                   int64_t b_row, float* c, int64_t c_row) {
  at::native::cpublas::brgemm(rows, cols, depth, a_row, b_row, c_row, false, a, b, c);
}

void linked_product(int64_t rows, int64_t cols, int64_t depth, const Links& links, int64_t a_row,
                    int64_t b_row, float* c, int64_t c_row, const Fetched& next) {
  linked_products(rows, cols, depth, &links, 1, a_row, b_row, &c, c_row, next);
}

void linked_products(int64_t rows, int64_t cols, int64_t depth, const Links* of, int64_t count, int64_t a_row,
                     int64_t b_row, float* const* c, int64_t c_row, const Fetched& next) {
  const Table& table = kernels::cpu::active();
  if (takes_own(table)) return table.products(of, count, a_row, rows, b_row, depth, cols, c, c_row, next);
  for (int64_t i = 0; i < count; ++i) {
    const auto [x, w, links] = of[i];
    for (int64_t l = 0; l < links; ++l)
      at::native::cpublas::brgemm(rows, cols, depth, a_row, b_row, c_row, l > 0, x[l], w[l], c[i]);
    for (int64_t row = 0; links == 0 && row < rows; ++row) std::fill_n(c[i] + row * c_row, cols, 0.f);
  }
}

}  // namespace quatrain::ops::engine
