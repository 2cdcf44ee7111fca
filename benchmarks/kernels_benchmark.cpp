// The CPU kernels of every instruction set that this machine has, at the sizes of one panel of a quaternion
// layer 1024 -> 1024: bytes a second, and the time as a share of the small products (ATen's brgemm) that the
// panel feeds, or, of the streaming kernel, that it replaces.

#include <ATen/native/CPUBlas.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/kernels.h"
#include "quatrain/algebra.h"

namespace {

using namespace quatrain::kernels::cpu;

constexpr int64_t kRows = 64, kDepth = 256, kWidth = 256, kColumns = 32;

/// R x n or n x R coefficients as a mixture.
class Mixture {
 public:
  Mixture(const std::vector<double>& factor, int n, int rank, bool into_products) {
    const int outputs = into_products ? rank : n, inputs = into_products ? n : rank;
    for (int o = 0; o < outputs; ++o) {
      for (int i = 0; i < inputs; ++i) {
        const auto place = static_cast<size_t>(into_products ? i * rank + o : o * rank + i);
        if (factor[place] == 0) continue;
        source_.push_back(i);
        coefficient_.push_back(static_cast<float>(factor[place]));
      }
      begin_.push_back(static_cast<int32_t>(source_.size()));
    }
    groups_ = Groups(ungrouped());
  }
  Mix view() const { return groups_.of(ungrouped()); }

 private:
  Mix ungrouped() const {
    return {static_cast<int32_t>(begin_.size()) - 1, begin_.data(), source_.data(), coefficient_.data()};
  }

  std::vector<int32_t> begin_{0}, source_;
  std::vector<float> coefficient_;
  Groups groups_;
};

/// Matrices below each other, and a pointer to each.
template <class T>
struct Matrices {
  Matrices(int64_t count, int64_t size) : values(static_cast<size_t>(count * size)) {
    std::mt19937 random(0);
    std::normal_distribution<float> normal;
    for (T& value : values) {
      const float x = normal(random);
      value = sizeof(T) == 4 ? static_cast<T>(x) : static_cast<T>(__builtin_bit_cast(uint32_t, x) >> 16);
    }
    for (int64_t i = 0; i < count; ++i) pointers.push_back(values.data() + i * size);
  }
  T* const* data() const { return pointers.data(); }
  std::vector<T> values;
  std::vector<T*> pointers;
};

/// Seconds of `count` products of rows x kDepth and kDepth x kColumns, the median of many measurements.
double product_seconds(int64_t rows, int64_t count) {
  const Matrices<float> left(8, rows * kDepth), right(8, kDepth * kColumns), result(8, rows * kColumns);
  std::vector<double> times;
  for (int round = 0; round < 300; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; ++i)
      at::native::cpublas::brgemm(rows, kColumns, kDepth, kDepth, kColumns, kColumns, false,
                                  left.data()[i % 8], right.data()[i % 8], result.data()[i % 8]);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  at::native::cpublas::brgemm_release(false);
  std::nth_element(times.begin(), times.begin() + 150, times.end());
  return times[150];
}

void measure(benchmark::State& state, int64_t bytes, double products, const std::function<void()>& kernel) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    kernel();
    benchmark::ClobberMemory();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["of_brgemm"] = seconds / static_cast<double>(state.iterations()) / products;
}

void add(const Table& k, const std::string& what, int64_t bytes, double products,
         const std::function<void()>& kernel) {
  benchmark::RegisterBenchmark((what + "/" + k.name).c_str(), measure, bytes, products, kernel);
}

/// Mixtures of `from` x rows x cols into `to`.
template <class In, class Out, class Function>
void add_combine(const Table& k, const std::string& what, Function function, const Mixture& mixture,
                 int64_t from, int64_t to, int64_t cols, double products) {
  const auto in = std::make_shared<Matrices<In>>(from, kRows * cols);
  const auto out = std::make_shared<Matrices<Out>>(to, kRows * cols);
  const auto bytes = static_cast<int64_t>(from * sizeof(In) + to * sizeof(Out)) * kRows * cols;
  add(k, what, bytes, products, [=, &mixture] {
    function(mixture.view(), in->data(), cols, out->data(), cols, kRows, cols, nullptr, Store::set);
  });
}

template <class In, class Function>
void add_transpose(const Table& k, const std::string& what, Function function, const Mixture& mixture,
                   int64_t n, int64_t rank, double products) {
  const auto in = std::make_shared<Matrices<In>>(n, kColumns * kDepth);
  const auto out = std::make_shared<Matrices<float>>(rank, kColumns * kDepth);
  const auto bytes = static_cast<int64_t>(n * sizeof(In) + rank * sizeof(float)) * kColumns * kDepth;
  add(k, what, bytes, products, [=, &mixture] {
    function(mixture.view(), static_cast<int32_t>(n), in->data(), kDepth, out->data(), kColumns, kColumns,
             kDepth);
  });
}

/// One row of the layer: its n vectors of mixed inputs pass over all weights.
template <class T, class Function>
void add_stream(const Table& k, const std::string& what, Function function, int64_t n, double products) {
  const auto weights = std::make_shared<Matrices<T>>(n, kWidth * kDepth);
  const auto z = std::make_shared<Matrices<float>>(n * n, kDepth);
  const auto y = std::make_shared<Matrices<float>>(n, kWidth);
  add(k, what, n * kWidth * kDepth * static_cast<int64_t>(sizeof(T)), products, [=] {
    function(weights->data(), static_cast<int32_t>(n), kDepth, kWidth, kDepth, z->values.data(), n,
             y->values.data(), kWidth, nullptr);
  });
}

/// The products of rows of numbers, by an algebra's table.
void add_multiply(const Table& k, const quatrain::algebra::Algebra& algebra, double products) {
  struct Terms {
    std::vector<int32_t> begin{0}, left, right;
    std::vector<float> coefficient;
  };
  const auto terms = std::make_shared<Terms>();
  const int n = algebra.n();
  for (int c = 0; c < n; ++c) {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        if (const double value = algebra.table(i, c, j); value != 0) {
          terms->left.push_back(i), terms->right.push_back(j);
          terms->coefficient.push_back(static_cast<float>(value));
        }
    terms->begin.push_back(static_cast<int32_t>(terms->left.size()));
  }
  const auto a = std::make_shared<Matrices<float>>(n, kRows * kDepth),
             b = std::make_shared<Matrices<float>>(n, kRows * kDepth),
             y = std::make_shared<Matrices<float>>(n, kRows * kDepth);
  add(k, "multiply", int64_t{3} * n * kRows * kDepth * 4, products, [=, &k] {
    k.multiply({n, terms->begin.data(), terms->left.data(), terms->right.data(), terms->coefficient.data()},
               a->data(), kDepth, b->data(), kDepth, y->data(), kDepth, kRows, kDepth, Store::set);
  });
}

/// Scores of a tile of queries with kDepth keys, in place.
void add_scores(const Table& k, double products) {
  const auto y = std::make_shared<Matrices<float>>(1, kRows * kDepth),
             dy = std::make_shared<Matrices<float>>(1, kRows * kDepth);
  const int64_t bytes = kRows * kDepth * 4;
  add(k, "softmax", bytes, products,
      [=, &k] { k.softmax(y->values.data(), kDepth, kRows, kDepth, nullptr, 0); });
  add(k, "softmax_backward", 2 * bytes, products,
      [=, &k] { k.softmax_backward(y->values.data(), kDepth, dy->values.data(), kDepth, kRows, kDepth); });
  add(k, "drop", bytes, products, [=, &k] {
    k.drop(dy->values.data(), kDepth, kRows, kDepth, {1, 0, 1u << 29, 1.0F});
  });
}

}  // namespace

int main(int count, char** words) {
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  const auto& f = quatrain::algebra::get("quaternion").factors();
  const int64_t n = f.n, rank = f.rank, blocks = kWidth / kColumns;
  const Mixture U(f.U, f.n, f.rank, true), V(f.V, f.n, f.rank, true), W(f.W, f.n, f.rank, false);
  const double block = product_seconds(kRows, rank), panel = product_seconds(kRows, rank * blocks),
               row = product_seconds(1, rank * blocks);
  // A mixture without zeros, and the scores of heads of 64 values.
  const auto& o = quatrain::algebra::get("octonion").factors();
  const Mixture dense(o.V, o.n, o.rank, true);
  const double dense_panel = product_seconds(kRows, o.rank * blocks), scores = product_seconds(kRows, 2);
  for (const Table* const* table = available(); *table; ++table) {
    const Table& k = **table;
    add_combine<float, float>(k, "combine_inputs/float32", k.combine_f_f, V, n, rank, kDepth, panel);
    add_combine<bf16, float>(k, "combine_inputs/bfloat16", k.combine_b_f, V, n, rank, kDepth, panel);
    add_combine<float, float>(k, "combine_dense/float32", k.combine_f_f, dense, o.n, o.rank, kDepth,
                              dense_panel);
    add_combine<float, float>(k, "combine_products/float32", k.combine_f_f, W, rank, n, kColumns, block);
    add_combine<float, bf16>(k, "combine_products/bfloat16", k.combine_f_b, W, rank, n, kColumns, block);
    add_transpose<float>(k, "transpose_weights/float32", k.transpose_f_f, U, n, rank, block);
    add_transpose<bf16>(k, "transpose_weights/bfloat16", k.transpose_b_f, U, n, rank, block);
    add_stream<float>(k, "stream/float32", k.stream_f, n, row);
    add_stream<bf16>(k, "stream/bfloat16", k.stream_b, n, row);
    add_multiply(k, quatrain::algebra::get("quaternion"), block);
    add_scores(k, scores);
  }
  benchmark::RunSpecifiedBenchmarks();
}
