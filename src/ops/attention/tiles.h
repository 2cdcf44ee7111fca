#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/score_products.h"
#include "ops/engine/mixing.h"
#include "ops/engine/scratch.h"

/// What the two passes of attention by tiles share: sizes, where heads lie, and the weights of a tile.
namespace quatrain::ops {

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

inline Heads<const float> to_read(const at::Tensor& t) {
  return {t, t.const_data_ptr<float>()};
}
inline Heads<float> to_write(const at::Tensor& t) {
  return {t, t.mutable_data_ptr<float>()};
}

/// With values side by side: itself, or a copy.
at::Tensor plain(const at::Tensor& heads);
/// Contiguous memory for heads.
at::Tensor empty_heads(const at::Tensor& like);

/// Floats in row-major order: C = A B, or C += A B.
void brgemm(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb,
            float* C, int64_t ldc, bool add = false);

struct TileSizes {
  int64_t texts, queries, keys, n, heads, m;
  int64_t width, filled, tile;      // of a head; keys filled up; rows
  bool mixed;                       // that scores are (score_products.h)
  int64_t products, depth;          // of queries with keys, and values that are multiplied in each
  int64_t made_queries, made_keys;  // values of all products for one of them
  int64_t maps, made_scores;        // values of a tile: of all maps' scores, and of what these are mixed of
  int64_t biases;                   // that all queries share, or also of a tile's rows
  bool maps_across;  // whether the backward pass transposes maps, or what is multiplied by them

  /// Of the cheaper of both ways of making scores that keeps a head in the caches; nothing where neither
  /// does, or the sizes are beyond counting.
  static std::optional<TileSizes> fitting(const AttentionCall& call, const at::Tensor& query,
                                          const at::Tensor& key, bool with_gradient);
  int64_t map() const { return tile * filled; }
  int64_t forward_bytes() const;
  int64_t backward_bytes() const;

 private:
  TileSizes(const AttentionCall& call, bool mixed, const at::Tensor& query, const at::Tensor& key);
};

/// A mask as (B, h, L, S) of any strides; null pointers where there is none.
struct MaskView {
  const bool* allowed = nullptr;
  const float* added = nullptr;
  int64_t text = 0, head = 0, query = 0, key = 0;
  bool shared = true;  // by all queries of a head

  MaskView(const at::Tensor& mask, const TileSizes& sizes);
  bool defined() const { return allowed || added; }
  int64_t at(int64_t b, int64_t h, int64_t l) const { return b * text + h * head + l * query; }
};

/// A call whose sizes fit (TileSizes::fitting), and the steps that its passes consist of.
class TiledCall {
 public:
  /// The last axis of Q, K and V lies side by side. The call's mask is bool or float32.
  TiledCall(bool with_gradient, const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K,
            const at::Tensor& V);

  /// What is added to the scores of a head.
  struct Biases {
    const float* keys;  // a key: zero or the mask's; minus infinity where no query sees it
    bool hidden;        // that some are
    float* rows;        // memory for those of a tile, or null
  };
  /// Some queries of a head, and the keys that any of them may see.
  struct Tile {
    int64_t first, rows, height;  // of a product that has these rows
    int64_t columns;              // 0: these queries see no key
    const float* bias;
    int64_t bias_row;
    std::vector<int64_t> blind;  // rows that see no key
  };

  /// With memory for `filled` keys, and for the rows of a tile where queries differ. `any`: whether a key
  /// counts.
  Biases biases_of(int64_t b, int64_t h, float* keys, float* rows, bool& any) const;
  Tile tile_at(int64_t b, int64_t h, int64_t first, const Biases& biases) const;
  /// (words, n, m) -> matrices (words filled up, m), mixtures of the n, with rows `row` values apart; zeros
  /// for what is hidden or fills up.
  void gather(const kernels::cpu::Mix& mix, const Heads<const float>& from, int64_t b, int64_t h,
              const Biases& biases, const std::vector<float*>& to, int64_t row) const;
  /// The same, transposed, one below another: (mixtures, m, words filled up).
  void gather_transposed(const kernels::cpu::Mix& mix, const Heads<const float>& from, int64_t b, int64_t h,
                         const Biases& biases, float* to) const;
  /// Matrices with a row a key -> (words, n, m).
  void scatter(const kernels::cpu::Mix& mix, const std::vector<float*>& from, int64_t row,
               const Heads<float>& to, int64_t b, int64_t h,
               kernels::cpu::Store how = kernels::cpu::Store::set) const;
  /// A map of a tile's scores, (height, columns) -> (columns, tile).
  void transpose_map(const Tile& tile, const float* map, float* to) const;
  /// Rows begin .. end of matrices (tile, width).
  void clear_rows(float* matrices, int64_t count, int64_t width, int64_t begin, int64_t end) const;
  /// Where the parts of matrices lie that have `rows` rows of a product's depth.
  std::vector<float*> parts_of(float* matrices, int64_t count, int64_t rows) const;
  /// The scores of all maps of a tile, (n, tile, filled), of its queries (products, tile, depth) and the keys
  /// (products, depth, filled); `products` is memory for what they are mixed of.
  void score(const Tile& tile, const float* queries, const float* keys, float* products, float* scores) const;
  /// Of matrices (tile, filled) that lie below each other.
  void mix_scores(const Tile& tile, const engine::Mixing& mixing, const float* from, int64_t inputs,
                  float* to, int64_t outputs) const;
  /// A map's scores become weights.
  void weigh(const Tile& tile, float* scores) const;
  void drop(const Tile& tile, int64_t b, int64_t h, int64_t c, float* weights) const;
  void zero_words(const Heads<float>& heads, int64_t b, int64_t h, int64_t first, int64_t end) const;

  const kernels::cpu::Table& k_ = kernels::cpu::active();
  const TileSizes s_;
  const ScoreProducts how_;
  const Heads<const float> Q_, K_, V_;
  bool causal_;

 private:
  void fill_row(int64_t b, int64_t h, int64_t l, int64_t columns, const float* of_keys, float* row) const;

  at::Tensor padding_, mask_;
  const bool* padded_;
  MaskView view_;
  int64_t offset_;
  double dropout_;
  int64_t seed_;
};

/// A pass over all heads.
class TiledAttention : protected TiledCall {
 public:
  using TiledCall::TiledCall;
  virtual ~TiledAttention() = default;

  /// All heads, one after another on each thread.
  void run() const;

 protected:
  virtual int64_t scratch_bytes() const = 0;
  virtual void run_head(int64_t b, int64_t h, const Biases& biases, engine::Scratch& memory) const = 0;
  /// A head without keys.
  virtual void zero(int64_t b, int64_t h) const = 0;
};

}  // namespace quatrain::ops
