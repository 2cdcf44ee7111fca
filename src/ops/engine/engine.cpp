#include "ops/engine/engine.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <vector>

#include "ops/engine/few.h"
#include "ops/engine/scratch.h"
#include "ops/engine/task.h"
#include "ops/engine/threads.h"

namespace quatrain::ops::engine {

namespace {

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

bool one_store(const Pass& p) {
  return !p.accumulate && p.epilogue.only_bias() && Blocking(p).depth >= p.K;
}

void run(const Pass& p) {
  if (p.M == 0 || p.N == 0 || p.columns.begin >= p.columns.end_of(p.N)) return;
  const Blocking blocking(p);
  Few<Task> tasks = split(p, blocking);
  const int64_t count = tasks.size(), pairs = p.n * p.rank;
  Few<float> sums(p.sums ? count * pairs : 0);
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    const Release release(p);
    for (int64_t t = begin; t < end; ++t)
      run_task(p, blocking, tasks[t], sums.data() + (p.sums ? t * pairs : 0));
  });
  // In a fixed order, so that a result does not depend on which thread came first.
  for (int64_t i = 0; i < sums.size(); ++i) p.sums[i % pairs] += sums[i];
}

void finish_rows(const Epilogue& epilogue, int64_t n, int64_t N, int64_t rows, int64_t col, int64_t cols,
                 const Blocks& C) {
  constexpr int64_t kValues = 1 << 15;  // for one task
  at::parallel_for(0, rows, std::max<int64_t>(1, kValues / (n * N)), [&](int64_t begin, int64_t end) {
    finish_block(kernels::cpu::active(), epilogue, n, N, begin, col, end - begin, cols, C);
  });
}

void dots(const Blocks& probe, int64_t n, const float* products, int64_t rank, int64_t M, int64_t N,
          float* sums) {
  if (M == 0 || N == 0) return;
  // Chunks of rows that stay in the second level cache; their number does not depend on the threads.
  const int64_t rows = std::clamp<int64_t>(kLeftBytes / (rank * N * 4), 1, 64), count = (M + rows - 1) / rows,
                pairs = n * rank;
  std::vector<float> parts(static_cast<size_t>(count * pairs));
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    Few<const float*> at(rank);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row = chunk * rows;
      for (int64_t r = 0; r < rank; ++r) at[r] = products + (r * M + row) * N;
      add_dots(probe, n, row, 0, at.data(), rank, N, std::min(rows, M - row), N,
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
  const kernels::cpu::Table& k = kernels::cpu::active();
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
