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
#include "ops/engine/next_weights.h"
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

/// A task under way: its operands, and the scratch memory that they are mixed and multiplied in.
template <class T>
class Rectangle {
 public:
  Rectangle(const Pass& pass, const Blocking& blocking, const Table& kernels, const Task& task, float* sums)
      : p_(pass), b_(blocking), k_(kernels), task_(task), sums_(sums) {
    const int64_t product_component = b_.tile * kColumns + kSkew<float>,
                  right_size = p_.packed ? 0 : right_row_ * stored_columns<T>(strip_);
    Scratch& memory = scratch();
    memory.begin((left_.size() + right_size) * kSize + R_ * product_component * 4 + 256);
    left_.take(memory.take<T>(left_.size()));
    float* const product = memory.take<float>(R_ * product_component);
    right_ = memory.take<T>(right_size);
    for (int64_t r = 0; r < R_; ++r) products_[r] = product + r * product_component;
  }

  /// The outer loop mixes what the inner one would mix again: the left operands of a single panel, or the
  /// right ones of a strip.
  void compute() {
    if (panels_ == 1)
      compute_panel();
    else
      compute_panels();
  }

 private:
  void compute_panel() {
    if (p_.packed) after_ = next_weights(packed(task_.col, 0));
    for_depth([&](int64_t k0, int64_t depth) {
      left_.make(k_, task_.row, rows_, k0, depth);
      for_strips([&](int64_t col, int64_t cols) {
        make_right(col, cols, k0, depth);
        if (rows_next_)
          upcoming_ =
              upcoming_terms(p_, k0 + depth, std::min(k0 + depth + b_.depth, p_.K), products_of(rows_, cols));
        multiply_panel(task_.row, rows_, col, cols, k0, depth);
      });
    });
  }

  void compute_panels() {
    if (p_.packed) after_ = packed(task_.col, 0);
    for_strips([&](int64_t col, int64_t cols) {
      for_depth([&](int64_t k0, int64_t depth) {
        make_right(col, cols, k0, depth);
        for_blocks(task_.row, task_.row_end, b_.panel, [&](int64_t row, int64_t height) {
          left_.make(k_, row, height, k0, depth);
          if (rows_next_)
            upcoming_ =
                upcoming_rows(p_, depth == p_.K, row + height,
                              std::min(row + height + b_.panel, task_.row_end), products_of(height, cols));
          multiply_panel(row, height, col, cols, k0, depth);
        });
      });
    });
  }

  static void for_blocks(int64_t from, int64_t to, int64_t step, const auto& work) {
    for (int64_t begin = from; begin < to; begin += step) work(begin, std::min(step, to - begin));
  }
  void for_depth(const auto& work) const { for_blocks(0, p_.K, b_.depth, work); }
  void for_strips(const auto& work) const { for_blocks(task_.col, task_.col_end, strip_, work); }

  int64_t products_of(int64_t height, int64_t width) const {
    const int64_t step = block_columns(p_);
    return (height + b_.tile - 1) / b_.tile * ((width + step - 1) / step) * R_;
  }

  /// Mixes the right operands of a strip that begins at `from` and has `width` columns.
  void make_right(int64_t from, int64_t width, int64_t k0, int64_t depth) {
    for (int64_t done = 0; done < width && !p_.packed; done += kColumns)
      mix_right(k_, p_, k0, from + done, depth, std::min(kColumns, width - done),
                right_ + R_ * stored_depth<T>(depth) * done, products_[0], b_.tile);
  }

  const T* packed(int64_t col, int64_t k0) const {
    return static_cast<const T*>(p_.packed) + packed_offset<T>(p_, col, k0);
  }
  /// The packed block that comes next; after the last one what the next panel begins with or, of a single
  /// panel, what this thread is likely to begin with in the next pass.
  const T* next_of(int64_t col, int64_t cols, int64_t k0, int64_t depth) const {
    if (col + cols < task_.col_end) return packed(col + cols, k0);
    return k0 + depth < p_.K ? packed(task_.col, k0 + depth) : after_;
  }

  /// The panel at `row` times the strip at `from`.
  void multiply_panel(int64_t row, int64_t height, int64_t from, int64_t width, int64_t k0, int64_t depth) {
    const int64_t stored = stored_depth<T>(depth), step = block_columns(p_);
    for (int64_t done = 0; done < width; done += step) {
      const int64_t col = from + done, cols = std::min(step, width - done), filled = stored_columns<T>(cols);
      const T* const block = p_.packed ? packed(col, k0) : right_ + R_ * stored * done;
      const T* const next = p_.packed ? next_of(col, cols, k0, depth) : nullptr;
      for (int64_t at = 0; at < height;) {
        const int64_t count = std::min(b_.tile, height - at),
                      filled_rows = own_ ? count : tile_height(height - at, b_.tile);
        multiply_tile(at, filled_rows, filled, stored, block, next);
        finish_tile(row + at, count, col, cols, k0 == 0, k0 + depth == p_.K);
        at += count;
      }
    }
  }

  /// R products of the tile at `row` of the panel with a block of columns.
  void multiply_tile(int64_t row, int64_t rows, int64_t cols, int64_t depth, const T* block, const T* next) {
    const int64_t size = depth * cols;
    if constexpr (!kPacked<T>)
      if (p_.packed_unmixed) {
        const T* matrices[kMaxComponents];
        for (int64_t i = 0; i < p_.n; ++i) matrices[i] = block + i * size;
        return k_.mixed_product(p_.right->view(), matrices, cols, depth, cols, left_.at(0, row),
                                left_.component(), left_.row(0), rows, products_.data(), cols,
                                {next, p_.n * size});
      }
    for (int64_t r = 0; r < R_; ++r) {
      const T* const part = block + r * size;
      std::optional<Fetched> fetched;
      if (rows_next_)
        fetched = upcoming_.next();
      else if constexpr (!kPacked<T>)
        if (p_.packed) fetched = {r + 1 < R_ ? part + size : next, size};
      multiply_block(rows, cols, depth, left_.at(r, row), left_.row(r), part, fetched, products_[r]);
    }
  }

  /// What becomes of a tile's products: C, the products that are kept, the sums with a probe.
  void finish_tile(int64_t row, int64_t count, int64_t col, int64_t cols, bool first, bool last) {
    const int64_t product_row = stored_columns<T>(cols);
    if (p_.C.data) combine(row, count, col, cols, first, last);
    if (p_.products) {
      for (int64_t r = 0; r < R_; ++r) kept_[r] = p_.products + (r * p_.M + row) * p_.N + col;
      k_.combine_f_f(copies_of(R_), products_.data(), product_row, kept_.data(), p_.N, count, cols, nullptr,
                     first ? Store::set : Store::add);
    }
    if (p_.sums) add_dots(p_.probe, p_.n, row, col, products_.data(), R_, product_row, count, cols, sums_);
  }

  void combine(int64_t row, int64_t count, int64_t col, int64_t cols, bool first, bool last) {
    const int64_t product_row = stored_columns<T>(cols);
    const bool only_bias = p_.epilogue.only_bias(), biased = p_.epilogue.bias && only_bias && first;
    const float* bias[kMaxComponents];
    if (biased)
      for (int64_t c = 0; c < p_.n; ++c) bias[c] = p_.epilogue.bias + c * p_.N + col;
    const float* const* with_bias = biased ? bias : nullptr;
    const Store how = first && !p_.accumulate ? Store::set : Store::add;
    if (p_.C.dtype == at::kFloat) {
      float* out[kMaxComponents];
      pointers(p_.C, p_.n, row, col, out);
      k_.combine_f_f(p_.out->view(), products_.data(), product_row, out, p_.C.row, count, cols, with_bias,
                     how);
      if (last && !only_bias) finish_block(k_, p_.epilogue, p_.n, p_.N, row, col, count, cols, p_.C);
    } else {
      bf16* out[kMaxComponents];
      pointers(p_.C, p_.n, row, col, out);
      k_.combine_f_b(p_.out->view(), products_.data(), product_row, out, p_.C.row, count, cols, with_bias,
                     how);
    }
  }

  static constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const Pass& p_;
  const Blocking& b_;
  const Table& k_;
  const Task& task_;
  float* const sums_;
  const int64_t R_ = p_.rank, rows_ = std::min(b_.panel, task_.row_end - task_.row),
                width_ = task_.col_end - task_.col,
                panels_ = (task_.row_end - task_.row + b_.panel - 1) / b_.panel,
                right_row_ = R_ * stored_depth<T>(b_.depth),
                most_ = (panels_ > 1 ? kRightBytes : kSmallRight) / (right_row_ * kSize),
                strip_ =
                    p_.packed ? width_ : std::min(width_, std::max(most_, kColumns) / kColumns * kColumns);
  // ATen's products are taken where there is nothing to fetch.
  const bool may_fetch_ = !kPacked<T> && takes_own_products(),
             rows_next_ = may_fetch_ && fetches_rows(p_, panels_, b_.depth),
             own_ = may_fetch_ && (p_.packed || rows_next_);
  const bool in_place_ = own_ && reads_in_place(p_);
  Left<T> left_{p_, rows_ + b_.tile, b_.depth, in_place_};
  T* right_ = nullptr;
  const T* after_ = nullptr;  // packed weights that come after all of these, as far as is known
  Few<float*> products_{R_}, kept_{p_.products ? R_ : 0};
  Upcoming upcoming_;  // rows, where they are fetched
};

}  // namespace

void run_task(const Pass& pass, const Blocking& blocking, const Task& task, float* sums) {
  in_type_of(pass,
             [&]<class T>(T) { Rectangle<T>(pass, blocking, kernels::cpu::active(), task, sums).compute(); });
}

}  // namespace quatrain::ops::engine
