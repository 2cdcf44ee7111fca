// Component-wise attention on a CPU in float32, without a gradient: a head's maps tile by tile of queries, so
// that no score reaches main memory.
//
//   head:    keys transposed, values side by side                      (both stay in the caches)
//     tile:  the queries of all n maps, mixed by the algebra's table
//       map: scores = queries keys^T, softmax in place, scores times the map's own component of V
//
// The bound are the scores' products: n maps of L x S x n m, n times the real attention's.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention.h"
#include "ops/mixing.h"
#include "ops/scratch.h"
#include "quatrain/algebra.h"

namespace quatrain::ops {

namespace {

using engine::Mixing;
using kernels::cpu::Store;

constexpr int64_t kRows = 64;             // of a tile
constexpr int64_t kScoreBytes = 1 << 16;  // of a tile's scores: they stay close
constexpr int64_t kScratchBytes =
    1 << 22;  // of a thread; a head of more would leave the caches, and is composed
/// Keys are filled up to its multiples, lest each length be a kernel of its own.
constexpr int64_t kKeysStep = 16;

int64_t filled(int64_t keys) {
  return (keys + kKeysStep - 1) / kKeysStep * kKeysStep;
}

/// Sizes and strides of (batch, length, n, heads, m) with values side by side.
struct Heads {
  const float* data;
  int64_t text, word, component, head;

  explicit Heads(const at::Tensor& t)
      : data(t.const_data_ptr<float>()),
        text(t.stride(0)),
        word(t.stride(1)),
        component(t.stride(2)),
        head(t.stride(3)) {}
  /// n pointers to the components of a word in a head.
  std::vector<const float*> at(int64_t b, int64_t h, int64_t l, int64_t n) const {
    std::vector<const float*> parts;
    for (int64_t c = 0; c < n; ++c) parts.push_back(data + b * text + l * word + c * component + h * head);
    return parts;
  }
};

/// The queries of the maps, mixture c n + j holding A[:, c, j] / sqrt(n m).
Mixing query_mixing(const algebra::Algebra& algebra, int64_t head_width) {
  const int n = algebra.n();
  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  std::vector<double> rows;
  for (int c = 0; c < n; ++c)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) rows.push_back(algebra.table(i, c, j) * scale);
  return Mixing::from_rows(rows.data(), int64_t{n} * n, n);
}

/// `count` pointers, `apart` values from one to the next.
std::vector<float*> row_of(float* first, int64_t count, int64_t apart) {
  std::vector<float*> pointers;
  for (int64_t i = 0; i < count; ++i) pointers.push_back(first + i * apart);
  return pointers;
}

class Attention {
 public:
  Attention(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V, const algebra::Algebra& algebra,
            const at::Tensor& padding, const at::Tensor& out)
      : Q_(Q),
        K_(K),
        V_(V),
        padding_(padding.defined() ? padding.const_data_ptr<bool>() : nullptr),
        out_(out.mutable_data_ptr<float>()),
        L_(Q.size(1)),
        S_(K.size(1)),
        n_(Q.size(2)),
        heads_(Q.size(3)),
        m_(Q.size(4)),
        width_(n_ * m_),
        keys_(filled(S_)),
        queries_(query_mixing(algebra, width_)),
        copies_(Mixing::identity(n_)) {
    while (tile_ > 8 && tile_ * keys_ * 4 > kScoreBytes) tile_ /= 2;
  }

  bool fits() const { return scratch_bytes() <= kScratchBytes; }

  void run_head(int64_t b, int64_t h) const {
    const auto& k = kernels::cpu::active();
    engine::Scratch& memory = engine::scratch();
    memory.begin(scratch_bytes());
    float* const keys = memory.take<float>(width_ * keys_);
    float* const values = memory.take<float>(width_ * keys_);
    float* const queries = memory.take<float>(n_ * tile_ * width_);
    float* const scores = memory.take<float>(tile_ * keys_);
    float* const results = memory.take<float>(tile_ * width_);
    float* const bias = memory.take<float>(keys_);
    if (!fill_bias(b, bias)) return zero(b, h);

    const auto n = static_cast<int32_t>(n_);
    k.transpose_f_f(copies_.view(), n, K_.at(b, h, 0, n_).data(), K_.word,
                    row_of(keys, n_, m_ * keys_).data(), keys_, S_, m_);
    k.combine_f_f(copies_.view(), V_.at(b, h, 0, n_).data(), V_.word, row_of(values, n_, keys_ * m_).data(),
                  m_, S_, m_, nullptr, Store::set);
    if (S_ < keys_) {
      for (int64_t row = 0; row < width_; ++row) std::fill_n(keys + row * keys_ + S_, keys_ - S_, 0.0F);
      for (int64_t c = 0; c < n_; ++c) std::fill_n(values + (c * keys_ + S_) * m_, (keys_ - S_) * m_, 0.0F);
    }
    // Mixture c n + j: map c's rows, their part j.
    std::vector<float*> parts;
    for (int64_t c = 0; c < n_; ++c)
      for (int64_t j = 0; j < n_; ++j) parts.push_back(queries + c * tile_ * width_ + j * m_);
    const std::vector<float*> made = row_of(results, n_, tile_ * m_);
    for (int64_t l = 0; l < L_; l += tile_) {
      const int64_t rows = std::min(tile_, L_ - l);
      int64_t height = tile_;  // few shapes: each is a kernel of its own
      while (height / 2 >= rows) height /= 2;
      k.combine_f_f(queries_.view(), Q_.at(b, h, l, n_).data(), Q_.word, parts.data(), width_, rows, m_,
                    nullptr, Store::set);
      for (int64_t c = 0; c < n_; ++c) {
        at::native::cpublas::brgemm(height, keys_, width_, width_, keys_, keys_, false,
                                    queries + c * tile_ * width_, keys, scores);
        k.softmax(scores, keys_, rows, keys_, padding_ || S_ < keys_ ? bias : nullptr);
        at::native::cpublas::brgemm(height, m_, keys_, keys_, m_, m_, false, scores, values + c * keys_ * m_,
                                    made[static_cast<size_t>(c)]);
      }
      k.combine_f_f(copies_.view(), made.data(), m_, to(b, h, l).data(), n_ * heads_ * m_, rows, m_, nullptr,
                    Store::set);
    }
  }

 private:
  int64_t scratch_bytes() const {
    return 4 * (2 * width_ * keys_ + n_ * tile_ * width_ + tile_ * keys_ + tile_ * width_ + keys_) + 512;
  }
  /// Zero for a key that counts, else minus infinity. False where none does.
  bool fill_bias(int64_t b, float* bias) const {
    std::fill_n(bias, keys_, -std::numeric_limits<float>::infinity());
    int64_t count = 0;
    for (int64_t s = 0; s < S_; ++s)
      if (!padding_ || !padding_[b * S_ + s]) bias[s] = 0, ++count;
    return count > 0;
  }
  std::vector<float*> to(int64_t b, int64_t h, int64_t l) const {
    return row_of(out_ + ((b * L_ + l) * n_ * heads_ + h) * m_, n_, heads_ * m_);
  }
  void zero(int64_t b, int64_t h) const {
    for (int64_t l = 0; l < L_; ++l)
      for (float* part : to(b, h, l)) std::fill_n(part, m_, 0.0F);
  }

  Heads Q_, K_, V_;
  const bool* padding_;
  float* out_;
  int64_t L_, S_, n_, heads_, m_, width_, keys_, tile_ = kRows;
  Mixing queries_, copies_;
};

at::Tensor attention_forward_cpu(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 std::string_view algebra, const std::optional<at::Tensor>& padding) {
  const bool served = query.scalar_type() == at::kFloat && key.scalar_type() == at::kFloat &&
                      value.scalar_type() == at::kFloat && query.numel() > 0 && key.numel() > 0;
  if (!served) return composed::attention(query, key, value, algebra, padding);
  const auto plain = [](const at::Tensor& t) {
    return t.stride(-1) == 1 || t.size(-1) == 1 ? t : t.contiguous();
  };
  const at::Tensor Q = plain(query), K = plain(key), V = plain(value),
                   mask = padding && padding->defined() ? padding->contiguous() : at::Tensor();
  const at::Tensor out = at::empty({Q.size(0), Q.size(1), Q.size(2) * Q.size(3) * Q.size(4)}, Q.options());
  const Attention attention(Q, K, V, algebra::get(algebra), mask, out);
  if (!attention.fits()) return composed::attention(query, key, value, algebra, padding);
  const int64_t heads = Q.size(3);
  at::parallel_for(0, Q.size(0) * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) attention.run_head(i / heads, i % heads);
  });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("hypercomplex_attention_forward", &attention_forward_cpu);
}

}  // namespace quatrain::ops
