// A task computes a rectangle of C. It walks strips of columns, blocks of K, panels of rows:
//
//   strip of columns, block of K:  the right operands are mixed into R blocks (unless they come packed)
//     panel of rows:               the left operands are mixed into R; they stay in the second level cache,
//                                  and those that are an input as it is may be read where they lie
//       block of columns, tile of rows:  R small products, mixed into C while they are in the first level
//       cache
//
// A single panel goes the other way round: a block of K, for it the panel, then the strips.
//
// So both mixtures are made once (the left ones once a strip, where there are several panels and strips),
// neither they nor the products reach main memory, and a thread's scratch is bounded whatever the layer's
// sizes, up to R = 128: 2 kLeftBytes + kRightBytes + 2 kProductBytes, in whole huge pages.
//
// The mixtures are multiplied in T: in float32, or in bfloat16 with the right operands packed as brgemm wants
// them, two rows of K side by side, columns filled up to a multiple of kPackedColumns.

#include "ops/engine/task.h"

#include <algorithm>

#include "ops/engine/few.h"
#include "ops/engine/scratch.h"
#include "ops/engine/upcoming.h"

namespace quatrain::ops::engine {

using kernels::cpu::Fetched;
using kernels::cpu::Store;
using kernels::cpu::Table;

void add_dots(const Blocks& probe, int64_t n, int64_t row, int64_t col, const float* const* products,
              int64_t rank, int64_t product_row, int64_t rows, int64_t cols, float* sums) {
  const Table& k = kernels::cpu::active();
  const auto run = [&](const auto dots, const auto** blocks) {
    pointers(probe, n, row, col, blocks);
    dots(blocks, static_cast<int32_t>(n), probe.row, products, static_cast<int32_t>(rank), product_row, rows,
         cols, sums);
  };
  const float* floats[kMaxComponents];
  const bf16* halves[kMaxComponents];
  if (probe.dtype == at::kFloat)
    run(k.dots_f, floats);
  else
    run(k.dots_b, halves);
}

void finish_block(const Table& k, const Epilogue& epilogue, int64_t n, int64_t N, int64_t row, int64_t col,
                  int64_t rows, int64_t cols, const Blocks& C) {
  float* out[kMaxComponents];
  const float* residual[kMaxComponents] = {};
  pointers(C, n, row, col, out);
  if (epilogue.residual.data) pointers(epilogue.residual, n, row, col, residual);
  for (int64_t c = 0; c < n; ++c)
    finish_columns(k, epilogue, c * N + col, rows, cols, out[c], C.row, residual[c], epilogue.residual.row);
}

void finish_columns(const Table& k, const Epilogue& epilogue, int64_t col, int64_t rows, int64_t cols,
                    float* values, int64_t row, const float* residual, int64_t residual_row) {
  const auto from_col = [col](const float* each) { return each ? each + col : nullptr; };
  k.finish(values, row, rows, cols, from_col(epilogue.scale), from_col(epilogue.bias), residual, residual_row,
           epilogue.activation);
}

namespace {

template <class T>
void run_in(const Pass& p, const Blocking& b, const Table& k, const Task& task, float* sums) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const int64_t R = p.rank, rows = std::min(b.panel, task.row_end - task.row),
                product_component = b.tile * kColumns + kSkew<float>;
  const int64_t width = task.col_end - task.col, panels = (task.row_end - task.row + b.panel - 1) / b.panel,
                right_row = R * stored_depth<T>(b.depth),
                most = (panels > 1 ? kRightBytes : kSmallRight) / (right_row * kSize),
                strip = p.packed ? width : std::min(width, std::max(most, kColumns) / kColumns * kColumns);
  // ATen's products are taken where there is nothing to fetch.
  const bool may_fetch = !kPacked<T> && takes_own_products(),
             rows_next = may_fetch && fetches_rows(p, panels, b.depth),
             own = may_fetch && (p.packed || rows_next);
  Left<T> left(p, rows + b.tile, b.depth, own && reads_in_place(p));
  const int64_t right_size = p.packed ? 0 : right_row * stored_columns<T>(strip);
  Scratch& memory = scratch();
  memory.begin((left.size() + right_size) * kSize + R * product_component * 4 + 256);
  left.take(memory.take<T>(left.size()));
  float* const product = memory.take<float>(R * product_component);
  T* const right = memory.take<T>(right_size);
  Few<float*> products(R);
  for (int64_t r = 0; r < R; ++r) products[r] = product + r * product_component;
  const float* bias[kMaxComponents];
  float* out[kMaxComponents];
  bf16* out_halves[kMaxComponents];
  Few<float*> kept(p.products ? R : 0);

  const bool only_bias = p.epilogue.only_bias();

  const auto finish = [&](int64_t row, int64_t count, int64_t col, int64_t cols, bool first, bool last) {
    const int64_t product_row = stored_columns<T>(cols);
    if (p.C.data) {
      const bool biased = p.epilogue.bias && only_bias && first;
      if (biased)
        for (int64_t c = 0; c < p.n; ++c) bias[c] = p.epilogue.bias + c * p.N + col;
      const float* const* with_bias = biased ? bias : nullptr;
      const Store how = first && !p.accumulate ? Store::set : Store::add;
      if (p.C.dtype == at::kFloat) {
        pointers(p.C, p.n, row, col, out);
        k.combine_f_f(p.out->view(), products.data(), product_row, out, p.C.row, count, cols, with_bias, how);
        if (last && !only_bias) finish_block(k, p.epilogue, p.n, p.N, row, col, count, cols, p.C);
      } else {
        pointers(p.C, p.n, row, col, out_halves);
        k.combine_f_b(p.out->view(), products.data(), product_row, out_halves, p.C.row, count, cols,
                      with_bias, how);
      }
    }
    if (p.products) {
      for (int64_t r = 0; r < R; ++r) kept[r] = p.products + (r * p.M + row) * p.N + col;
      k.combine_f_f(copies_of(R), products.data(), product_row, kept.data(), p.N, count, cols, nullptr,
                    first ? Store::set : Store::add);
    }
    if (p.sums) add_dots(p.probe, p.n, row, col, products.data(), R, product_row, count, cols, sums);
  };

  // Strips begin at `from` and have `width` columns.
  const auto make_right = [&](int64_t from, int64_t width, int64_t k0, int64_t depth) {
    for (int64_t done = 0; done < width && !p.packed; done += kColumns)
      mix_right(k, p, k0, from + done, depth, std::min(kColumns, width - done),
                right + R * stored_depth<T>(depth) * done, product, b.tile);
  };
  const auto packed = [&](int64_t col, int64_t k0) {
    return static_cast<const T*>(p.packed) + packed_offset<T>(p, col, k0);
  };
  // The packed block that a single panel meets next.
  const auto next_of = [&](int64_t col, int64_t cols, int64_t k0, int64_t depth) {
    if (col + cols < task.col_end) return packed(col + cols, k0);
    return packed(task.col, k0 + depth < p.K ? k0 + depth : 0);
  };
  Upcoming upcoming;  // rows, where they are fetched
  const auto multiply_tile = [&](int64_t row, int64_t rows, int64_t cols, int64_t depth, const T* block,
                                 const T* next) {
    const int64_t size = depth * cols;
    if constexpr (!kPacked<T>)
      if (p.packed_unmixed) {
        const T* matrices[kMaxComponents];
        for (int64_t i = 0; i < p.n; ++i) matrices[i] = block + i * size;
        return k.mixed_product(p.right->view(), matrices, cols, depth, cols, left.at(0, row),
                               left.component(), left.row(0), rows, products.data(), cols,
                               {next, p.n * size});
      }
    for (int64_t r = 0; r < R; ++r) {
      const T* const part = block + r * size;
      std::optional<Fetched> fetched;
      if (rows_next)
        fetched = upcoming.next();
      else if constexpr (!kPacked<T>)
        if (p.packed) fetched = {r + 1 < R ? part + size : next, size};
      multiply_block(rows, cols, depth, left.at(r, row), left.row(r), part, fetched,
                     product + r * product_component);
    }
  };
  const auto multiply_panel = [&](int64_t row, int64_t height, int64_t from, int64_t width, int64_t k0,
                                  int64_t depth) {
    const int64_t stored = stored_depth<T>(depth), step = block_columns(p);
    for (int64_t done = 0; done < width; done += step) {
      const int64_t col = from + done, cols = std::min(step, width - done), filled = stored_columns<T>(cols);
      const T* const block = p.packed ? packed(col, k0) : right + R * stored * done;
      const T* const next = p.packed ? next_of(col, cols, k0, depth) : nullptr;
      for (int64_t at = 0; at < height;) {
        const int64_t count = std::min(b.tile, height - at),
                      filled_rows = own ? count : tile_height(height - at, b.tile);
        multiply_tile(at, filled_rows, filled, stored, block, next);
        finish(row + at, count, col, cols, k0 == 0, k0 + depth == p.K);
        at += count;
      }
    }
  };

  const auto for_blocks = [](int64_t from, int64_t to, int64_t step, const auto& work) {
    for (int64_t begin = from; begin < to; begin += step) work(begin, std::min(step, to - begin));
  };
  const auto for_depth = [&](const auto& work) { for_blocks(0, p.K, b.depth, work); };
  const auto for_strips = [&](const auto& work) { for_blocks(task.col, task.col_end, strip, work); };
  const auto products_of = [&](int64_t height, int64_t width) {
    const int64_t step = block_columns(p);
    return (height + b.tile - 1) / b.tile * ((width + step - 1) / step) * R;
  };
  // The outer loop mixes what the inner one would mix again: the left operands of a single panel, or the
  // right ones of a strip.
  if (panels == 1) {
    for_depth([&](int64_t k0, int64_t depth) {
      left.make(k, task.row, rows, k0, depth);
      for_strips([&](int64_t col, int64_t cols) {
        make_right(col, cols, k0, depth);
        if (rows_next)
          upcoming =
              upcoming_terms(p, k0 + depth, std::min(k0 + depth + b.depth, p.K), products_of(rows, cols));
        multiply_panel(task.row, rows, col, cols, k0, depth);
      });
    });
    return;
  }
  for_strips([&](int64_t col, int64_t cols) {
    for_depth([&](int64_t k0, int64_t depth) {
      make_right(col, cols, k0, depth);
      for_blocks(task.row, task.row_end, b.panel, [&](int64_t row, int64_t height) {
        left.make(k, row, height, k0, depth);
        if (rows_next)
          upcoming = upcoming_rows(p, depth == p.K, row + height,
                                   std::min(row + height + b.panel, task.row_end), products_of(height, cols));
        multiply_panel(row, height, col, cols, k0, depth);
      });
    });
  });
}

}  // namespace

void run_task(const Pass& pass, const Blocking& blocking, const Task& task, float* sums) {
  in_type_of(pass, [&]<class T>(T) { run_in<T>(pass, blocking, kernels::cpu::active(), task, sums); });
}

}  // namespace quatrain::ops::engine
