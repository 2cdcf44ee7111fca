// A task computes a rectangle of C. It walks strips of columns, blocks of K, panels of rows:
//
//   strip of columns, block of K:  the right operands are mixed into R blocks (unless they come packed)
//     panel of rows:               the left operands are mixed into R; they stay in the second level cache
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

#include "ops/engine/engine.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <vector>

#include "ops/engine/few.h"
#include "ops/engine/operands.h"
#include "ops/engine/products.h"
#include "ops/engine/scratch.h"
#include "ops/engine/threads.h"

namespace quatrain::ops::engine {

namespace {

using kernels::cpu::bf16;
using kernels::cpu::Store;
using kernels::cpu::Table;

constexpr int64_t kTile = 64;               // rows of one product
constexpr int64_t kLeftBytes = 1 << 19;     // of a panel's left mixtures: most of a small second level cache
constexpr int64_t kRightBytes = 1 << 21;    // of a strip's right mixtures, read again for every panel
constexpr int64_t kSmallRight = 1 << 19;    // the same where there is one panel: they are used at once
constexpr int64_t kProductBytes = 1 << 18;  // of a tile's products; twice as many rather than few rows

/// Calls work(T()) with the type in which a pass multiplies.
template <class Work>
auto in_type_of(const Pass& p, const Work& work) {
  return p.multiplied_in == at::kFloat ? work(float{}) : work(bf16{});
}

/// Sizes of blocks: functions of a layer's sizes, its algebra and the processor alone, so that what is packed
/// once fits every batch.
struct Blocking {
  int64_t depth;  // of a block of K
  int64_t panel;  // rows
  int64_t tile;   // rows

  explicit Blocking(const Pass& p) {
    const int64_t size = at::elementSize(p.multiplied_in), line = p.rank * size;
    tile = kTile;
    const int64_t products = std::min(kColumns, p.N) * p.rank * 4;
    while (tile > 8 && tile * products > (tile > 16 ? 1 : 2) * kProductBytes) tile /= 2;
    const int64_t step = kLine / size;
    const int64_t of_right = kRightBytes / (line * kColumns) / step * step;
    depth = std::clamp<int64_t>(std::min(kLeftBytes / (line * layout().tiles * tile), of_right), 64, 320);
    // Equal blocks, not full ones and a rest.
    const int64_t blocks = (p.K + depth - 1) / depth;
    depth = std::min(p.K, ((p.K + blocks - 1) / blocks + step - 1) / step * step);
    panel = std::clamp<int64_t>(kLeftBytes / (line * depth) / tile * tile, tile, 256);
  }
};

/// `next`: the block that is multiplied next where they come packed, else null.
void multiply(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row, const float* b,
              const float* next, float* c) {
  for (int64_t done = 0; done < cols; done += layout().columns) {
    const int64_t together = std::min(layout().columns, cols - done);
    const float* const part = b + done * depth;
    const float* const after = next && done + together < cols ? part + together * depth : next;
    small_product(rows, together, depth, a, a_row, part, together, after, c + done, cols);
  }
}

/// `depth` is even. Once a thread has called this it must release what the call keeps of the processor
/// (Release): a product of ATen's own would meet it.
void multiply(int64_t rows, int64_t cols, int64_t depth, const bf16* a, int64_t a_row, const bf16* b,
              const bf16* /*next*/, float* c) {
  const auto of = [](const bf16* p) { return reinterpret_cast<const at::BFloat16*>(p); };
  at::native::cpublas::brgemm(rows, cols, depth, a_row, cols, cols, false, of(a), of(b), c, true);
}

struct Release {
  explicit Release(const Pass& p) : needed_(p.multiplied_in != at::kFloat) {}
  ~Release() {
    if (needed_) at::native::cpublas::brgemm_release(true);
  }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;

 private:
  bool needed_;
};

/// sums (n x R) += the inner products of the n blocks of a probe at (row, col) with R products.
void add_dots(const Table& k, const Blocks& probe, int64_t n, int64_t row, int64_t col,
              const float* const* products, int64_t rank, int64_t product_row, int64_t rows, int64_t cols,
              float* sums) {
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

}  // namespace

void finish_block(const Table& k, const Epilogue& epilogue, int64_t n, int64_t N, int64_t row, int64_t col,
                  int64_t rows, int64_t cols, const Blocks& C) {
  float* out[kMaxComponents];
  const float* residual[kMaxComponents] = {};
  pointers(C, n, row, col, out);
  if (epilogue.residual.data) pointers(epilogue.residual, n, row, col, residual);
  for (int64_t c = 0; c < n; ++c) {
    const auto part = [&](const float* values) { return values ? values + c * N + col : nullptr; };
    k.finish(out[c], C.row, rows, cols, part(epilogue.scale), part(epilogue.bias), residual[c],
             epilogue.residual.row, epilogue.activation);
  }
}

namespace {

/// The rectangle of C that a task computes.
struct Task {
  int64_t row, row_end, col, col_end;
};

/// Matrices and columns of a right block that comes packed. Unmixed ones meet a handful of rows.
int64_t packed_matrices(const Pass& p) {
  return p.packed_unmixed ? p.n : p.rank;
}
int64_t block_columns(const Pass& p) {
  return p.packed_unmixed ? layout().few_columns : kColumns;
}

/// Where a right block starts in the packed order: blocks of columns, in them blocks of K.
template <class T>
int64_t packed_offset(const Pass& p, int64_t col, int64_t k0) {
  return packed_matrices(p) *
         (stored_depth<T>(p.K) * col + k0 * stored_columns<T>(std::min(block_columns(p), p.N - col)));
}

// Rows of the next product. From four rows on one takes as long as it has rows; ATen makes a function for
// each number of them in a tenth of a millisecond, so above 16 they are filled up to a multiple of four.
int64_t tile_height(int64_t rows, int64_t largest) {
  constexpr int64_t kExact = 16, kStep = 4;
  if (rows >= largest) return largest;
  return rows <= kExact ? rows : (rows + kStep - 1) / kStep * kStep;
}

template <class T>
void run_task(const Pass& p, const Blocking& b, const Table& k, const Task& task, float* sums) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const int64_t R = p.rank, rows = std::min(b.panel, task.row_end - task.row), left_row = b.depth + kSkew<T>,
                left_component = (rows + b.tile) * left_row + kSkew<T>,
                product_component = b.tile * kColumns + kSkew<float>;
  const int64_t width = task.col_end - task.col, panels = (task.row_end - task.row + b.panel - 1) / b.panel,
                right_row = R * stored_depth<T>(b.depth),
                most = (panels > 1 ? kRightBytes : kSmallRight) / (right_row * kSize),
                strip = p.packed ? width : std::min(width, std::max(most, kColumns) / kColumns * kColumns);
  const int64_t right_size = p.packed ? 0 : right_row * stored_columns<T>(strip);
  Scratch& memory = scratch();
  memory.begin((R * left_component + right_size) * kSize + R * product_component * 4 + 256);
  T* const left = memory.take<T>(R * left_component);
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
    if (p.sums) add_dots(k, p.probe, p.n, row, col, products.data(), R, product_row, count, cols, sums);
  };

  // Strips begin at `from` and have `width` columns.
  const auto make_right = [&](int64_t from, int64_t width, int64_t k0, int64_t depth) {
    for (int64_t done = 0; done < width && !p.packed; done += kColumns)
      mix_right(k, p, k0, from + done, depth, std::min(kColumns, width - done),
                right + R * stored_depth<T>(depth) * done, product, b.tile);
  };
  const auto make_left = [&](int64_t row, int64_t height, int64_t k0, int64_t depth) {
    mix_left(k, p, row, k0, height, depth, left, left_component, left_row);
  };
  const auto packed = [&](int64_t col, int64_t k0) {
    return static_cast<const T*>(p.packed) + packed_offset<T>(p, col, k0);
  };
  // The packed block that a single panel meets next.
  const auto next_of = [&](int64_t col, int64_t cols, int64_t k0, int64_t depth) {
    if (col + cols < task.col_end) return packed(col + cols, k0);
    return packed(task.col, k0 + depth < p.K ? k0 + depth : 0);
  };
  const auto multiply_tile = [&](int64_t rows, int64_t cols, int64_t depth, const T* a, const T* block,
                                 const T* next) {
    const int64_t size = depth * cols;
    if constexpr (!kPacked<T>)
      if (p.packed_unmixed) {
        const T* matrices[kMaxComponents];
        for (int64_t i = 0; i < p.n; ++i) matrices[i] = block + i * size;
        return k.mixed_product(p.right->view(), matrices, cols, depth, cols, a, left_component, left_row,
                               rows, products.data(), cols, {next, p.n * size});
      }
    for (int64_t r = 0; r < R; ++r) {
      const T* const part = block + r * size;
      multiply(rows, cols, depth, a + r * left_component, left_row, part,
               p.packed && r + 1 < R ? part + size : next, product + r * product_component);
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
        const int64_t padded = tile_height(height - at, b.tile), count = std::min(padded, height - at);
        multiply_tile(padded, filled, stored, left + at * left_row, block, next);
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
  // The outer loop mixes what the inner one would mix again: the left operands of a single panel, or the
  // right ones of a strip.
  if (panels == 1) {
    for_depth([&](int64_t k0, int64_t depth) {
      make_left(task.row, rows, k0, depth);
      for_strips([&](int64_t col, int64_t cols) {
        make_right(col, cols, k0, depth);
        multiply_panel(task.row, rows, col, cols, k0, depth);
      });
    });
    return;
  }
  for_strips([&](int64_t col, int64_t cols) {
    for_depth([&](int64_t k0, int64_t depth) {
      make_right(col, cols, k0, depth);
      for_blocks(task.row, task.row_end, b.panel, [&](int64_t row, int64_t height) {
        make_left(row, height, k0, depth);
        multiply_panel(row, height, col, cols, k0, depth);
      });
    });
  });
}

/// Rectangles for the threads: columns are split first where weights come packed and rows are few, so that
/// they are read once, and where mixing the right operands anew would cost more than mixing the left ones.
Few<Task> split(const Pass& p, const Blocking& b) {
  const int64_t threads = threads_at_hand();
  const int64_t columns = p.columns.end_of(p.N), first = p.columns.begin / kColumns,
                blocks = (columns + kColumns - 1) / kColumns - first, tiles = (p.M + 7) / 8;
  const bool by_columns = p.packed ? p.M < threads * b.tile : p.M < p.N;
  int64_t down = 1, across = 1;
  if (by_columns) {
    across = std::min(threads, blocks);
    down = std::min(threads / across, tiles);
  } else {
    down = std::min(threads, tiles);
    across = std::min(threads / down, blocks);
  }
  Few<Task> tasks(down * across);
  for (int64_t i = 0; i < down; ++i)
    for (int64_t j = 0; j < across; ++j)
      tasks[i * across + j] = {std::min(tiles * i / down * 8, p.M), std::min(tiles * (i + 1) / down * 8, p.M),
                               (first + blocks * j / across) * kColumns,
                               std::min((first + blocks * (j + 1) / across) * kColumns, columns)};
  return tasks;
}

}  // namespace

const Layout& layout() {
  static const Layout known = [] {
    const std::string_view name = kernels::cpu::active().name;
    return name == "avx2" ? Layout{32, 16, 2, 1}
                          : Layout{kColumns, kColumns / 2, name == "avx512" ? 4 : 0, 2};
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
      multiply(1, kPackedColumns, 2, a, 2, b, b, c);
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
      multiply(rows, kColumns, kDepth, a.data(), kDepth, b.data(), b.data(), c.data());
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

bool one_store(const Pass& p) {
  return !p.accumulate && p.epilogue.only_bias() && Blocking(p).depth >= p.K;
}

void run(const Pass& p) {
  if (p.M == 0 || p.N == 0 || p.columns.begin >= p.columns.end_of(p.N)) return;
  const Blocking blocking(p);
  const Table& k = kernels::cpu::active();
  Few<Task> tasks = split(p, blocking);
  const int64_t count = tasks.size(), pairs = p.n * p.rank;
  Few<float> sums(p.sums ? count * pairs : 0);
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    const Release release(p);
    for (int64_t t = begin; t < end; ++t)
      in_type_of(p, [&]<class T>(T) {
        run_task<T>(p, blocking, k, tasks[t], sums.data() + (p.sums ? t * pairs : 0));
      });
  });
  // In a fixed order, so that a result does not depend on which thread came first.
  for (int64_t i = 0; i < sums.size(); ++i) p.sums[i % pairs] += sums[i];
}

void dots(const Blocks& probe, int64_t n, const float* products, int64_t rank, int64_t M, int64_t N,
          float* sums) {
  if (M == 0 || N == 0) return;
  const Table& k = kernels::cpu::active();
  // Chunks of rows that stay in the second level cache; their number does not depend on the threads.
  const int64_t rows = std::clamp<int64_t>(kLeftBytes / (rank * N * 4), 1, 64), count = (M + rows - 1) / rows,
                pairs = n * rank;
  std::vector<float> parts(static_cast<size_t>(count * pairs));
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    Few<const float*> at(rank);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row = chunk * rows;
      for (int64_t r = 0; r < rank; ++r) at[r] = products + (r * M + row) * N;
      add_dots(k, probe, n, row, 0, at.data(), rank, N, std::min(rows, M - row), N,
               parts.data() + chunk * pairs);
    }
  });
  for (size_t i = 0; i < parts.size(); ++i) sums[i % static_cast<size_t>(pairs)] += parts[i];
}

int64_t packed_bytes(const Pass& p) {
  return in_type_of(p, [&]<class T>(T) {
    return packed_matrices(p) * stored_depth<T>(p.K) * stored_columns<T>(p.N) *
           static_cast<int64_t>(sizeof(T));
  });
}

void pack(const Pass& p, void* to) {
  const Blocking blocking(p);
  const Table& k = kernels::cpu::active();
  const int64_t columns = block_columns(p), blocks = (p.N + columns - 1) / columns;
  const Mixing copies = Mixing::copies(p.packed_unmixed ? p.n : 0);
  Pass mixed = p;
  if (p.packed_unmixed) mixed.right = &copies;
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch& memory = scratch();
    memory.begin(p.rank * blocking.tile * kColumns * 4);
    float* const product = memory.take<float>(p.rank * blocking.tile * kColumns);
    for (int64_t block = begin; block < end; ++block)
      for (int64_t k0 = 0; k0 < p.K; k0 += blocking.depth) {
        const int64_t col = block * columns, cols = std::min(columns, p.N - col),
                      depth = std::min(blocking.depth, p.K - k0);
        in_type_of(p, [&]<class T>(T) {
          mix_right(k, mixed, k0, col, depth, cols, static_cast<T*>(to) + packed_offset<T>(p, col, k0),
                    product, blocking.tile);
        });
      }
  });
}

}  // namespace quatrain::ops::engine
