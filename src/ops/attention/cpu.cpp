// Component-wise attention on a CPU in float32: a head's maps tile by tile of queries, so that no score
// reaches main memory.
//
//   head:    keys and values, as the products read them              (they stay in the caches)
//     tile:  the queries of all n maps, mixed by the algebra's table
//       map: scores = queries keys^T, softmax in place, then
//         forward:  result = scores times the map's own component of V
//         backward: the formulas of composed::attention_backward, the weights being made again; the
//                   gradients of keys and values are summed up transposed: scores are read as they lie
//
// The bound are the products: n maps of L x S x n m, n times the real attention's.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/dropout.h"
#include "ops/engine/mixing.h"
#include "ops/engine/scratch.h"

namespace quatrain::ops {

namespace {

using engine::Mixing;
using kernels::cpu::Store;

constexpr int64_t kRows = 64;               // of a tile
constexpr int64_t kScoreBytes = 1 << 16;    // of a tile's scores: they stay close
constexpr int64_t kForwardBytes = 1 << 22;  // of a thread; a head of more would leave the caches: composed
constexpr int64_t kBackwardBytes = 3 << 20;

void brgemm(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb,
            float* C, int64_t ldc, bool add = false) {
  at::native::cpublas::brgemm(M, N, K, lda, ldb, ldc, add, A, B, C);
}

/// `count` pointers, `apart` values from one to the next.
template <class T>
std::vector<T*> row_of(T* first, int64_t count, int64_t apart) {
  std::vector<T*> pointers;
  for (int64_t i = 0; i < count; ++i) pointers.push_back(first + i * apart);
  return pointers;
}

/// (batch, length, n, heads, m), with values side by side.
template <class T>
struct Heads {
  T* data;
  int64_t text, word, component, head;

  Heads(const at::Tensor& t, T* data)
      : data(data), text(t.stride(0)), word(t.stride(1)), component(t.stride(2)), head(t.stride(3)) {}
  /// n pointers to the components of a word in a head.
  std::vector<T*> at(int64_t b, int64_t h, int64_t l, int64_t n) const {
    return row_of(data + b * text + l * word + h * head, n, component);
  }
};

Heads<const float> to_read(const at::Tensor& t) {
  return {t, t.const_data_ptr<float>()};
}
Heads<float> to_write(const at::Tensor& t) {
  return {t, t.mutable_data_ptr<float>()};
}

struct Sizes {
  int64_t texts, queries, keys, n, heads, m;
  int64_t width, filled, tile = kRows;  // of a head; keys filled up; rows

  Sizes(const at::Tensor& Q, const at::Tensor& K)
      : texts(Q.size(0)),
        queries(Q.size(1)),
        keys(K.size(1)),
        n(Q.size(2)),
        heads(Q.size(3)),
        m(Q.size(4)),
        width(n * m),
        filled(filled_up(keys)) {
    while (tile > 8 && tile * filled * 4 > kScoreBytes) tile /= 2;
  }
  int64_t forward_bytes() const {
    return 4 * (2 * width * filled + (n + 1) * tile * width + tile * filled + filled) + 512;
  }
  int64_t backward_bytes() const {
    return 4 * (5 * width * filled + (3 * n + 2) * tile * width + 2 * tile * filled + filled) + 1024;
  }
};

/// What both passes do.
class Attention {
 public:
  Attention(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V, const algebra::Algebra& algebra,
            const at::Tensor& padding, double dropout, int64_t seed)
      : s_(Q, K),
        Q_(to_read(Q)),
        K_(to_read(K)),
        V_(to_read(V)),
        padding_(padding.defined() ? padding.const_data_ptr<bool>() : nullptr),
        dropout_(dropout),
        seed_(seed),
        into_maps_(mixing(algebra, s_, true)),
        from_maps_(mixing(algebra, s_, false)),
        copies_(Mixing::identity(s_.n)) {}
  virtual ~Attention() = default;

  void run() const {
    at::parallel_for(0, s_.texts * s_.heads, 1, [&](int64_t begin, int64_t end) {
      engine::Scratch& memory = engine::scratch();
      for (int64_t i = begin; i < end; ++i) {
        memory.begin(scratch_bytes());
        float* const bias = memory.take<float>(s_.filled);
        const int64_t b = i / s_.heads, h = i % s_.heads;
        fill_bias(b, bias) ? run_head(b, h, bias, memory) : zero(b, h);
      }
    });
  }

 protected:
  /// Mixture c n + j of the n inputs holds A[:, c, j] / sqrt(n m): into maps; or its transpose.
  static Mixing mixing(const algebra::Algebra& algebra, const Sizes& s, bool into_maps) {
    const int n = algebra.n();
    const double scale = 1 / std::sqrt(static_cast<double>(s.width));
    std::vector<double> rows;
    for (int o = 0; o < (into_maps ? n * n : n); ++o)
      for (int i = 0; i < (into_maps ? n : n * n); ++i) {
        const int input = into_maps ? i : o, mixture = into_maps ? o : i;
        rows.push_back(algebra.table(input, mixture / n, mixture % n) * scale);
      }
    return into_maps ? Mixing::from_rows(rows.data(), int64_t{n} * n, n)
                     : Mixing::from_rows(rows.data(), n, int64_t{n} * n);
  }

  virtual int64_t scratch_bytes() const = 0;
  virtual void run_head(int64_t b, int64_t h, const float* bias, engine::Scratch& memory) const = 0;
  /// A text without keys.
  virtual void zero(int64_t b, int64_t h) const = 0;

  /// Zero for a key that counts, else minus infinity. False where none does.
  bool fill_bias(int64_t b, float* bias) const {
    std::fill_n(bias, s_.filled, -std::numeric_limits<float>::infinity());
    int64_t count = 0;
    for (int64_t s = 0; s < s_.keys; ++s)
      if (!padding_ || !padding_[b * s_.keys + s]) bias[s] = 0, ++count;
    return count > 0;
  }
  /// (words, n, m) -> (n, words filled up, m)
  void gather(const Heads<const float>& from, int64_t b, int64_t h, float* to, int64_t to_row,
              int64_t apart) const {
    k_.combine_f_f(copies_.view(), from.at(b, h, 0, s_.n).data(), from.word, row_of(to, s_.n, apart).data(),
                   to_row, s_.keys, s_.m, nullptr, Store::set);
  }
  /// (words, n, m) -> (n, m, words filled up)
  void gather_transposed(const Heads<const float>& from, int64_t b, int64_t h, float* to) const {
    k_.transpose_f_f(copies_.view(), static_cast<int32_t>(s_.n), from.at(b, h, 0, s_.n).data(), from.word,
                     row_of(to, s_.n, s_.m * s_.filled).data(), s_.filled, s_.keys, s_.m);
    for (int64_t row = 0; row < s_.width; ++row)
      std::fill_n(to + row * s_.filled + s_.keys, s_.filled - s_.keys, 0.0F);
  }
  /// Where map c's part j lies, in rows of n m values.
  std::vector<float*> parts_of_maps(float* queries) const {
    std::vector<float*> parts;
    for (int64_t c = 0; c < s_.n; ++c)
      for (int64_t j = 0; j < s_.n; ++j) parts.push_back(queries + c * s_.tile * s_.width + j * s_.m);
    return parts;
  }
  /// Rows of a product that has `rows` of them: few shapes, since each is a kernel of its own.
  int64_t height_for(int64_t rows) const {
    int64_t height = s_.tile;
    while (height / 2 >= rows) height /= 2;
    return height;
  }
  /// The weights of map c for a tile of queries.
  void weigh(const float* queries, const float* keys, const float* bias, int64_t rows, float* weights) const {
    brgemm(height_for(rows), s_.filled, s_.width, queries, s_.width, keys, s_.filled, weights, s_.filled);
    k_.softmax(weights, s_.filled, rows, s_.filled, padding_ || s_.keys < s_.filled ? bias : nullptr);
  }
  void drop(float* weights, int64_t b, int64_t h, int64_t c, int64_t l, int64_t rows) const {
    if (dropout_ == 0) return;
    const int64_t row = ((b * s_.heads + h) * s_.n + c) * s_.queries + l;
    k_.drop(weights, s_.filled, rows, s_.filled, drop_of(dropout_, seed_, row));
  }

  const kernels::cpu::Table& k_ = kernels::cpu::active();
  Sizes s_;
  Heads<const float> Q_, K_, V_;
  const bool* padding_;
  double dropout_;
  int64_t seed_;
  Mixing into_maps_, from_maps_, copies_;
};

class Forward : public Attention {
 public:
  template <class... Inputs>
  explicit Forward(const at::Tensor& out, const Inputs&... inputs)
      : Attention(inputs...), out_(to_write(out)) {}

 private:
  int64_t scratch_bytes() const override { return s_.forward_bytes(); }
  void run_head(int64_t b, int64_t h, const float* bias, engine::Scratch& memory) const override {
    float* const keys = memory.take<float>(s_.width * s_.filled);
    float* const values = memory.take<float>(s_.width * s_.filled);
    float* const queries = memory.take<float>(s_.n * s_.tile * s_.width);
    float* const weights = memory.take<float>(s_.tile * s_.filled);
    float* const results = memory.take<float>(s_.tile * s_.width);
    gather_transposed(K_, b, h, keys);
    gather(V_, b, h, values, s_.m, s_.filled * s_.m);
    for (int64_t c = 0; c < s_.n; ++c)
      std::fill_n(values + (c * s_.filled + s_.keys) * s_.m, (s_.filled - s_.keys) * s_.m, 0.0F);

    const std::vector<float*> parts = parts_of_maps(queries), made = row_of(results, s_.n, s_.tile * s_.m);
    for (int64_t l = 0; l < s_.queries; l += s_.tile) {
      const int64_t rows = std::min(s_.tile, s_.queries - l);
      k_.combine_f_f(into_maps_.view(), Q_.at(b, h, l, s_.n).data(), Q_.word, parts.data(), s_.width, rows,
                     s_.m, nullptr, Store::set);
      for (int64_t c = 0; c < s_.n; ++c) {
        weigh(queries + c * s_.tile * s_.width, keys, bias, rows, weights);
        drop(weights, b, h, c, l, rows);
        brgemm(height_for(rows), s_.m, s_.filled, weights, s_.filled, values + c * s_.filled * s_.m, s_.m,
               made[static_cast<size_t>(c)], s_.m);
      }
      k_.combine_f_f(copies_.view(), made.data(), s_.m, out_.at(b, h, l, s_.n).data(), out_.word, rows, s_.m,
                     nullptr, Store::set);
    }
  }

  void zero(int64_t b, int64_t h) const override {
    for (int64_t l = 0; l < s_.queries; ++l)
      for (float* part : out_.at(b, h, l, s_.n)) std::fill_n(part, s_.m, 0.0F);
  }

  Heads<float> out_;
};

class Backward : public Attention {
 public:
  template <class... Inputs>
  Backward(const at::Tensor& grad, const at::Tensor& dQ, const at::Tensor& dK, const at::Tensor& dV,
           const Inputs&... inputs)
      : Attention(inputs...), G_(to_read(grad)), dQ_(to_write(dQ)), dK_(to_write(dK)), dV_(to_write(dV)) {}

 private:
  int64_t scratch_bytes() const override { return s_.backward_bytes(); }
  void run_head(int64_t b, int64_t h, const float* bias, engine::Scratch& memory) const override {
    const int64_t of_keys = s_.width * s_.filled, of_tile = s_.width * s_.tile;
    float* const keys = memory.take<float>(of_keys);  // (filled, n m); the others of this size (n m, filled)
    float* const keys_across = memory.take<float>(of_keys);
    float* const values_across = memory.take<float>(of_keys);
    float* const dkeys = memory.take<float>(of_keys);
    float* const dvalues = memory.take<float>(of_keys);
    float* const queries = memory.take<float>(s_.n * of_tile);  // (n, tile, n m)
    float* const dqueries = memory.take<float>(s_.n * of_tile);
    float* const queries_across = memory.take<float>(s_.n * of_tile);  // (n, n m, tile)
    float* const grads = memory.take<float>(of_tile);                  // (n, tile, m)
    float* const grads_across = memory.take<float>(of_tile);           // (n, m, tile)
    float* const weights = memory.take<float>(s_.tile * s_.filled);
    float* const dweights = memory.take<float>(s_.tile * s_.filled);
    gather(K_, b, h, keys, s_.width, s_.m);
    std::fill(keys + s_.keys * s_.width, keys + of_keys, 0.0F);
    gather_transposed(K_, b, h, keys_across);
    gather_transposed(V_, b, h, values_across);

    const auto n = static_cast<int32_t>(s_.n);
    const std::vector<float*> parts = parts_of_maps(queries), dparts = parts_of_maps(dqueries);
    // Mixture c n + j: map c's columns, their part j.
    const std::vector<float*> across = row_of(queries_across, s_.n * s_.n, s_.m * s_.tile);
    for (int64_t l = 0; l < s_.queries; l += s_.tile) {
      const int64_t rows = std::min(s_.tile, s_.queries - l), height = height_for(rows);
      const auto Q = Q_.at(b, h, l, s_.n), G = G_.at(b, h, l, s_.n);
      k_.combine_f_f(into_maps_.view(), Q.data(), Q_.word, parts.data(), s_.width, rows, s_.m, nullptr,
                     Store::set);
      k_.combine_f_f(copies_.view(), G.data(), G_.word, row_of(grads, s_.n, s_.tile * s_.m).data(), s_.m,
                     rows, s_.m, nullptr, Store::set);
      k_.transpose_f_f(copies_.view(), n, G.data(), G_.word,
                       row_of(grads_across, s_.n, s_.m * s_.tile).data(), s_.tile, rows, s_.m);
      k_.transpose_f_f(into_maps_.view(), n, Q.data(), Q_.word, across.data(), s_.tile, rows, s_.m);
      // What lies in the tile's last rows is summed over below.
      clear_columns(grads_across, s_.width, rows, height);
      clear_columns(queries_across, s_.n * s_.width, rows, height);
      for (int64_t c = 0; c < s_.n; ++c) {
        weigh(queries + c * of_tile, keys_across, bias, rows, weights);
        std::fill(weights + rows * s_.filled, weights + height * s_.filled, 0.0F);
        brgemm(height, s_.filled, s_.m, grads + c * s_.tile * s_.m, s_.m,
               values_across + c * s_.m * s_.filled, s_.filled, dweights, s_.filled);
        drop(dweights, b, h, c, l, rows);
        k_.softmax_backward(weights, s_.filled, dweights, s_.filled, rows, s_.filled);
        std::fill(dweights + rows * s_.filled, dweights + height * s_.filled, 0.0F);
        drop(weights, b, h, c, l, rows);

        brgemm(s_.m, s_.filled, height, grads_across + c * s_.m * s_.tile, s_.tile, weights, s_.filled,
               dvalues + c * s_.m * s_.filled, s_.filled, l > 0);
        brgemm(s_.width, s_.filled, height, queries_across + c * of_tile, s_.tile, dweights, s_.filled, dkeys,
               s_.filled, l > 0 || c > 0);
        brgemm(height, s_.width, s_.filled, dweights, s_.filled, keys, s_.width, dqueries + c * of_tile,
               s_.width);
      }
      k_.combine_f_f(from_maps_.view(), dparts.data(), s_.width, dQ_.at(b, h, l, s_.n).data(), dQ_.word, rows,
                     s_.m, nullptr, Store::set);
    }
    scatter(dkeys, dK_, b, h);
    scatter(dvalues, dV_, b, h);
  }

  /// Columns begin .. end of a matrix (rows, tile).
  void clear_columns(float* across, int64_t rows, int64_t begin, int64_t end) const {
    for (int64_t row = 0; begin < end && row < rows; ++row)
      std::fill(across + row * s_.tile + begin, across + row * s_.tile + end, 0.0F);
  }
  /// (n, m, words filled up) -> (words, n, m)
  void scatter(const float* from, const Heads<float>& to, int64_t b, int64_t h) const {
    k_.transpose_f_f(copies_.view(), static_cast<int32_t>(s_.n), row_of(from, s_.n, s_.m * s_.filled).data(),
                     s_.filled, to.at(b, h, 0, s_.n).data(), to.word, s_.m, s_.keys);
  }
  void zero(int64_t b, int64_t h) const override {
    const auto clear = [&](const Heads<float>& heads, int64_t words) {
      for (int64_t l = 0; l < words; ++l)
        for (float* part : heads.at(b, h, l, s_.n)) std::fill_n(part, s_.m, 0.0F);
    };
    clear(dQ_, s_.queries), clear(dK_, s_.keys), clear(dV_, s_.keys);
  }

  Heads<const float> G_;
  Heads<float> dQ_, dK_, dV_;
};

at::Tensor plain(const at::Tensor& t) {
  return t.stride(-1) == 1 || t.size(-1) == 1 ? t : t.contiguous();
}
at::Tensor plain(const std::optional<at::Tensor>& padding) {
  return padding && padding->defined() ? padding->contiguous() : at::Tensor();
}
int64_t value_of(const std::optional<at::Tensor>& seed) {
  return seed && seed->defined() ? seed->item<int64_t>() : 0;
}
at::Tensor empty_heads(const at::Tensor& like) {
  return at::empty(like.sizes(), like.options());
}

at::Tensor attention_forward_cpu(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 std::string_view name, const std::optional<at::Tensor>& padding,
                                 double dropout, const std::optional<at::Tensor>& seed) {
  const algebra::Algebra& algebra = algebra::get(name);
  if (!attends_in_tiles(query, key, value, algebra, false))
    return composed::attention(query, key, value, name, padding, dropout, seed);
  check_attention_call(query, key, value, padding, dropout, seed, algebra);
  const at::Tensor out = empty_heads(query);
  Forward(out, plain(query), plain(key), plain(value), algebra, plain(padding), dropout, value_of(seed))
      .run();
  return out.flatten(2);
}

AttentionGradients attention_backward_cpu(const at::Tensor& grad, const at::Tensor& query,
                                          const at::Tensor& key, const at::Tensor& value,
                                          std::string_view name, const std::optional<at::Tensor>& padding,
                                          double dropout, const std::optional<at::Tensor>& seed) {
  const algebra::Algebra& algebra = algebra::get(name);
  if (!attends_in_tiles(query, key, value, algebra, true) || grad.scalar_type() != at::kFloat)
    return composed::attention_backward(grad, query, key, value, name, padding, dropout, seed);
  check_attention_call(query, key, value, padding, dropout, seed, algebra);
  const at::Tensor dQ = empty_heads(query), dK = empty_heads(key), dV = empty_heads(value);
  Backward(grad.contiguous().view(query.sizes()), dQ, dK, dV, plain(query), plain(key), plain(value), algebra,
           plain(padding), dropout, value_of(seed))
      .run();
  return {dQ, dK, dV};
}

}  // namespace

bool attends_in_tiles(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const algebra::Algebra& algebra, bool with_gradient) {
  if (algebra.n() == 1 || query.dim() != 5 || key.dim() != 5) return false;
  for (const at::Tensor* t : {&query, &key, &value})
    if (!t->device().is_cpu() || t->scalar_type() != at::kFloat || t->sym_numel().maybe_as_int() == 0)
      return false;
  for (const at::Tensor* t : {&query, &key})
    for (const c10::SymInt& size : t->sym_sizes())
      if (size.is_heap_allocated()) return true;  // a size that a trace leaves open: what runs it will see
  const Sizes sizes(query, key);
  return with_gradient ? sizes.backward_bytes() <= kBackwardBytes : sizes.forward_bytes() <= kForwardBytes;
}

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("hypercomplex_attention_forward", &attention_forward_cpu);
  m.impl("hypercomplex_attention_backward", &attention_backward_cpu);
}

}  // namespace quatrain::ops
