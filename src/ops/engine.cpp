// A task computes a rectangle of C. It walks strips of columns, blocks of K, panels of rows:
//
//   strip of columns, block of K:  the right operands are mixed into R blocks (unless they come packed)
//     panel of rows:               the left operands are mixed into R; they stay in the second level cache
//       block of columns, tile of rows:  R small products, mixed into C while they are in the first level
//       cache
//
// So both mixtures are made once, neither they nor the products reach main memory, and a thread's scratch is
// bounded whatever the layer's sizes, up to R = 256: kLeftBytes + kRightBytes + kProductBytes, in whole huge
// pages.

#include "ops/engine.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace quatrain::ops::engine {

namespace {

using kernels::cpu::bf16;
using kernels::cpu::Mix;
using kernels::cpu::Store;
using kernels::cpu::Table;

constexpr int64_t kColumns = 32;            // of a block: its right operand fits the first level cache
constexpr int64_t kTile = 64;               // rows of one product
constexpr int64_t kLeftBytes = 1 << 19;     // of a panel's left mixtures: a quarter of a second level cache
constexpr int64_t kRightBytes = 1 << 21;    // of a strip's right mixtures, read again for every panel
constexpr int64_t kSmallRight = 1 << 19;    // the same where there is one panel: they are used at once
constexpr int64_t kProductBytes = 1 << 18;  // of a tile's products
constexpr int64_t kSkew = 16;               // off the powers of two, whose multiples share cache sets

/// Sizes of blocks: functions of a layer's sizes and algebra alone, so that what is packed once fits every
/// batch.
struct Blocking {
  int64_t depth;  // of a block of K
  int64_t panel;  // rows
  int64_t tile;   // rows

  explicit Blocking(const Pass& p) {
    const int64_t line = p.rank * 4;
    tile = kTile;
    while (tile > 8 && tile * kColumns * line > kProductBytes) tile /= 2;
    depth = std::clamp<int64_t>(kLeftBytes / (line * 2 * tile), 64, 320);
    // Equal blocks, not full ones and a rest.
    const int64_t blocks = (p.K + depth - 1) / depth;
    depth = std::min(p.K, ((p.K + blocks - 1) / blocks + 15) / 16 * 16);
    panel = std::clamp<int64_t>(kLeftBytes / (line * depth) / tile * tile, tile, 256);
  }
};

constexpr int64_t kHugePage = 1 << 21;

/// Memory of a thread, kept between calls: no page faults, and no growth after the largest call.
class Scratch {
 public:
  template <class T>
  T* take(int64_t count) {
    const int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    T* result = reinterpret_cast<T*>(memory_.get() + used_);
    used_ += bytes;
    return result;
  }
  void begin(int64_t bytes) {
    used_ = 0;
    if (bytes <= size_) return;
    memory_.reset();
    size_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory_.reset(static_cast<char*>(std::aligned_alloc(kHugePage, static_cast<size_t>(size_))));
    if (!memory_) {
      size_ = 0;
      throw std::bad_alloc();
    }
    ::madvise(memory_.get(), static_cast<size_t>(size_), MADV_HUGEPAGE);  // a wish: fewer entries of the TLB
  }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> memory_;
  int64_t size_ = 0, used_ = 0;
};

Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}

/// out[r] = sum_j mix[j, r] blocks_j[row .. row + rows, col .. col + cols], rows out_row apart.
void mix_block(const Table& k, const Mixing& mixing, const Blocks& blocks, int64_t n, int64_t row,
               int64_t col, int64_t rows, int64_t cols, float* out, int64_t out_component, int64_t out_row) {
  const Mix mix = mixing.view();
  std::vector<float*> to(static_cast<size_t>(mix.outputs));
  for (int32_t r = 0; r < mix.outputs; ++r) to[static_cast<size_t>(r)] = out + r * out_component;
  const auto run = [&](const auto combine, const auto transpose, const auto** in) {
    pointers(blocks, n, row, col, in);
    if (blocks.transposed)
      transpose(mix, static_cast<int32_t>(n), in, blocks.row, to.data(), out_row, cols, rows);
    else
      combine(mix, in, blocks.row, to.data(), out_row, rows, cols, nullptr, Store::set);
  };
  const float* floats[kMaxComponents];
  const bf16* halves[kMaxComponents];
  if (blocks.dtype == at::kFloat)
    run(k.combine_f_f, k.transpose_f_f, floats);
  else
    run(k.combine_b_f, k.transpose_b_f, halves);
}

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

/// The rectangle of C that a task computes.
struct Task {
  int64_t row, row_end, col, col_end;
};

/// Where a right block starts in the packed order: blocks of columns, in them blocks of K.
int64_t packed_offset(const Pass& p, int64_t col, int64_t k0) {
  return p.rank * (p.K * col + k0 * std::min(kColumns, p.N - col));
}

int64_t tile_height(int64_t rows, int64_t largest) {
  if (rows >= largest) return largest;
  int64_t height = 1;
  while (height < rows) height *= 2;
  return 4 * rows >= 3 * height ? height : height / 2;  // up to a quarter of a tile is padding
}

void run_task(const Pass& p, const Blocking& b, const Table& k, const Task& task, float* sums) {
  const int64_t R = p.rank, rows = std::min(b.panel, task.row_end - task.row), left_row = b.depth + kSkew,
                left_component = (rows + b.tile) * left_row + kSkew,
                product_component = b.tile * kColumns + kSkew;
  const int64_t width = task.col_end - task.col, panels = (task.row_end - task.row + b.panel - 1) / b.panel,
                most = (panels > 1 ? kRightBytes : kSmallRight) / (R * b.depth * 4),
                strip = p.packed ? width : std::min(width, std::max(most, kColumns) / kColumns * kColumns);
  Scratch& memory = scratch();
  memory.begin((R * (left_component + product_component) + (p.packed ? 0 : R * b.depth * strip)) * 4 + 256);
  float* const left = memory.take<float>(R * left_component);
  float* const product = memory.take<float>(R * product_component);
  float* const right = p.packed ? nullptr : memory.take<float>(R * b.depth * strip);
  std::vector<const float*> products(static_cast<size_t>(R));
  for (int64_t r = 0; r < R; ++r) products[static_cast<size_t>(r)] = product + r * product_component;
  const float* bias[kMaxComponents];
  float* out[kMaxComponents];
  bf16* out_halves[kMaxComponents];
  const Mixing keep = p.products ? Mixing::identity(R) : Mixing();
  std::vector<float*> kept(p.products ? static_cast<size_t>(R) : 0);

  const auto finish = [&](int64_t row, int64_t count, int64_t col, int64_t cols, bool first) {
    if (p.C.data) {
      if (p.bias)
        for (int64_t c = 0; c < p.n; ++c) bias[c] = p.bias + c * p.N + col;
      const float* const* with_bias = p.bias && first ? bias : nullptr;
      const Store how = first ? Store::set : Store::add;
      if (p.C.dtype == at::kFloat) {
        pointers(p.C, p.n, row, col, out);
        k.combine_f_f(p.out->view(), products.data(), cols, out, p.C.row, count, cols, with_bias, how);
      } else {
        pointers(p.C, p.n, row, col, out_halves);
        k.combine_f_b(p.out->view(), products.data(), cols, out_halves, p.C.row, count, cols, with_bias, how);
      }
    }
    if (p.products) {
      for (int64_t r = 0; r < R; ++r) kept[static_cast<size_t>(r)] = p.products + (r * p.M + row) * p.N + col;
      k.combine_f_f(keep.view(), products.data(), cols, kept.data(), p.N, count, cols, nullptr,
                    first ? Store::set : Store::add);
    }
    if (p.sums) add_dots(k, p.probe, p.n, row, col, products.data(), R, cols, count, cols, sums);
  };

  for (int64_t begin = task.col; begin < task.col_end; begin += strip) {
    const int64_t end = std::min(begin + strip, task.col_end);
    for (int64_t k0 = 0; k0 < p.K; k0 += b.depth) {
      const int64_t depth = std::min(b.depth, p.K - k0);
      if (!p.packed)
        for (int64_t col = begin; col < end; col += kColumns) {
          const int64_t cols = std::min(kColumns, end - col);
          mix_block(k, *p.right, p.B, p.n, k0, col, depth, cols, right + R * depth * (col - begin),
                    depth * cols, cols);
        }
      for (int64_t row = task.row; row < task.row_end; row += b.panel) {
        const int64_t height = std::min(b.panel, task.row_end - row);
        mix_block(k, *p.left, p.A, p.n, row, k0, height, depth, left, left_component, left_row);
        for (int64_t col = begin; col < end; col += kColumns) {
          const int64_t cols = std::min(kColumns, end - col);
          const float* block = p.packed ? static_cast<const float*>(p.packed) + packed_offset(p, col, k0)
                                        : right + R * depth * (col - begin);
          for (int64_t at = 0; at < height;) {
            const int64_t padded = tile_height(height - at, b.tile), count = std::min(padded, height - at);
            for (int64_t r = 0; r < R; ++r)
              at::native::cpublas::brgemm(padded, cols, depth, left_row, cols, cols, false,
                                          left + r * left_component + at * left_row, block + r * depth * cols,
                                          product + r * product_component);
            finish(row + at, count, col, cols, k0 == 0);
            at += count;
          }
        }
      }
    }
  }
}

/// Rectangles for the threads: columns are split first where weights come packed and rows are few, so that
/// they are read once, and where mixing the right operands anew would cost more than mixing the left ones.
std::vector<Task> split(const Pass& p, const Blocking& b) {
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t blocks = (p.N + kColumns - 1) / kColumns, tiles = (p.M + 7) / 8;
  const bool by_columns = p.packed ? p.M < threads * b.tile : p.M < p.N;
  int64_t down = 1, across = 1;
  if (by_columns) {
    across = std::min(threads, blocks);
    down = std::min(threads / across, tiles);
  } else {
    down = std::min(threads, tiles);
    across = std::min(threads / down, blocks);
  }
  std::vector<Task> tasks;
  for (int64_t i = 0; i < down; ++i)
    for (int64_t j = 0; j < across; ++j)
      tasks.push_back({std::min(tiles * i / down * 8, p.M), std::min(tiles * (i + 1) / down * 8, p.M),
                       blocks * j / across * kColumns, std::min(blocks * (j + 1) / across * kColumns, p.N)});
  return tasks;
}

}  // namespace

Mixing Mixing::from_rows(const double* rows, int64_t outputs, int64_t inputs) {
  Mixing mixing;
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i)
      if (const double c = rows[o * inputs + i]; c != 0) {
        mixing.source_.push_back(static_cast<int32_t>(i));
        mixing.coefficient_.push_back(static_cast<float>(c));
      }
    mixing.begin_.push_back(static_cast<int32_t>(mixing.source_.size()));
  }
  return mixing;
}

Mixing Mixing::from_products(const double* factor, int64_t n, int64_t rank) {
  return from_rows(factor, n, rank);
}

Mixing Mixing::into_products(const double* factor, int64_t n, int64_t rank) {
  std::vector<double> columns(static_cast<size_t>(n * rank));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t r = 0; r < rank; ++r) columns[static_cast<size_t>(r * n + j)] = factor[j * rank + r];
  return from_rows(columns.data(), rank, n);
}

Mixing Mixing::identity(int64_t count) {
  Mixing mixing;
  for (int64_t i = 0; i < count; ++i) {
    mixing.source_.push_back(static_cast<int32_t>(i));
    mixing.coefficient_.push_back(1);
    mixing.begin_.push_back(static_cast<int32_t>(i + 1));
  }
  return mixing;
}

Mixings::Mixings(const double* U, const double* V, const double* W, int64_t n_, int64_t rank_)
    : n(n_),
      rank(rank_),
      U_in(Mixing::into_products(U, n, rank)),
      V_in(Mixing::into_products(V, n, rank)),
      W_in(Mixing::into_products(W, n, rank)),
      U_out(Mixing::from_products(U, n, rank)),
      V_out(Mixing::from_products(V, n, rank)),
      W_out(Mixing::from_products(W, n, rank)) {}

bool serves(at::ScalarType dtype) {
  return dtype == at::kFloat || (dtype == at::kBFloat16 && !at::native::cpublas::could_pack(dtype));
}

bool one_store(const Pass& p) {
  return Blocking(p).depth >= p.K;
}

void run(const Pass& p) {
  if (p.M == 0 || p.N == 0) return;
  const Blocking blocking(p);
  const Table& k = kernels::cpu::active();
  const std::vector<Task> tasks = split(p, blocking);
  const int64_t count = static_cast<int64_t>(tasks.size()), pairs = p.n * p.rank;
  std::vector<float> sums(p.sums ? static_cast<size_t>(count * pairs) : 0);
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      run_task(p, blocking, k, tasks[static_cast<size_t>(t)], sums.data() + (p.sums ? t * pairs : 0));
  });
  // In a fixed order, so that a result does not depend on which thread came first.
  for (size_t i = 0; i < sums.size(); ++i) p.sums[i % static_cast<size_t>(pairs)] += sums[i];
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
    std::vector<const float*> at(static_cast<size_t>(rank));
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row = chunk * rows;
      for (int64_t r = 0; r < rank; ++r) at[static_cast<size_t>(r)] = products + (r * M + row) * N;
      add_dots(k, probe, n, row, 0, at.data(), rank, N, std::min(rows, M - row), N,
               parts.data() + chunk * pairs);
    }
  });
  for (size_t i = 0; i < parts.size(); ++i) sums[i % static_cast<size_t>(pairs)] += parts[i];
}

int64_t packed_bytes(const Pass& p) {
  return p.rank * p.K * p.N * 4;
}

void pack(const Pass& p, void* to) {
  const Blocking blocking(p);
  const Table& k = kernels::cpu::active();
  const int64_t blocks = (p.N + kColumns - 1) / kColumns;
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      for (int64_t k0 = 0; k0 < p.K; k0 += blocking.depth) {
        const int64_t col = block * kColumns, cols = std::min(kColumns, p.N - col),
                      depth = std::min(blocking.depth, p.K - k0);
        mix_block(k, *p.right, p.B, p.n, k0, col, depth, cols,
                  static_cast<float*>(to) + packed_offset(p, col, k0), depth * cols, cols);
      }
  });
}

}  // namespace quatrain::ops::engine
