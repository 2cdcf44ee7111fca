// Component-wise attention on a CPU in float32: a head's maps tile by tile of queries, so that no score
// reaches main memory.
//
//   head:    keys and values, as the products read them              (they stay in the caches)
//     tile:  the mixed queries; the scores of all n maps (score_products.h); what of a mask concerns them
//       map: softmax in place, then
//         forward:  result = weights times the map's own component of V
//         backward: the formulas of composed::attention_backward, the weights being made again. The
//                   gradients of keys and values are products with transposed maps where the texts are short
//                   beside a head's values, else they are summed up transposed: maps are read as they lie
//
// A causal tile reads the keys up to its last query's place alone. What is hidden from a whole head is read
// as zeros.
//
// The bound are the products: of the scores R of L x S x m, or n of L x S x n m, where real attention has
// one.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "ops/attention/call.h"
#include "ops/attention/tiles.h"

namespace quatrain::ops {

namespace {

using kernels::cpu::Store;

class Forward : public TiledAttention {
 public:
  template <class... Inputs>
  explicit Forward(const at::Tensor& out, const Inputs&... inputs)
      : TiledAttention(false, inputs...), out_(to_write(out)) {}

 private:
  int64_t scratch_bytes() const override { return s_.forward_bytes(); }
  void run_head(int64_t b, int64_t h, const Biases& biases, engine::Scratch& memory) const override {
    float* const keys = memory.take<float>(s_.made_keys * s_.filled);
    float* const values = memory.take<float>(s_.width * s_.filled);
    float* const queries = memory.take<float>(s_.tile * s_.made_queries);
    float* const weights = memory.take<float>(s_.maps);
    float* const products = memory.take<float>(s_.made_scores);
    float* const results = memory.take<float>(s_.tile * s_.width);
    gather_transposed(how_.keys.view(), K_, b, h, biases, keys);
    gather(engine::copies_of(s_.n), V_, b, h, biases, row_of(values, s_.n, s_.filled * s_.m), s_.m);

    const std::vector<float*> parts = parts_of(queries, s_.products, s_.tile),
                              made = row_of(results, s_.n, s_.tile * s_.m);
    for (int64_t l = 0; l < s_.queries; l += s_.tile) {
      const Tile tile = tile_at(b, h, l, biases);
      if (tile.columns == 0) {
        zero_words(out_, b, h, l, l + tile.rows);
        continue;
      }
      k_.combine_f_f(how_.queries.view(), Q_.at(b, h, l, s_.n).data(), Q_.word, parts.data(), s_.depth,
                     tile.rows, s_.m, nullptr, Store::set);
      score(tile, queries, keys, products, weights);
      for (int64_t c = 0; c < s_.n; ++c) {
        float* const of_map = weights + c * s_.tile * s_.filled;
        weigh(tile, of_map);
        drop(tile, b, h, c, of_map);
        brgemm(tile.height, s_.m, tile.columns, of_map, s_.filled, values + c * s_.filled * s_.m, s_.m,
               made[static_cast<size_t>(c)], s_.m);
      }
      k_.combine_f_f(engine::copies_of(s_.n), made.data(), s_.m, out_.at(b, h, l, s_.n).data(), out_.word,
                     tile.rows, s_.m, nullptr, Store::set);
    }
  }

  void zero(int64_t b, int64_t h) const override { zero_words(out_, b, h, 0, s_.queries); }

  Heads<float> out_;
};

class Backward : public TiledAttention {
 public:
  template <class... Inputs>
  Backward(const at::Tensor& grad, const at::Tensor& dQ, const at::Tensor& dK, const at::Tensor& dV,
           const Inputs&... inputs)
      : TiledAttention(true, inputs...),
        G_(to_read(grad)),
        dQ_(to_write(dQ)),
        dK_(to_write(dK)),
        dV_(to_write(dV)) {}

 private:
  int64_t scratch_bytes() const override { return s_.backward_bytes(); }
  void run_head(int64_t b, int64_t h, const Biases& biases, engine::Scratch& memory) const override {
    const int64_t of_values = s_.width * s_.filled, of_keys = s_.made_keys * s_.filled,
                  of_tile = s_.tile * s_.width, of_queries = s_.tile * s_.made_queries,
                  map = s_.tile * s_.filled;
    float* const keys = memory.take<float>(of_keys);             // (products, filled, depth)
    float* const keys_across = memory.take<float>(of_keys);      // (products, depth, filled)
    float* const dkeys = memory.take<float>(of_keys);            // (products, depth, filled), or as keys
    float* const values_across = memory.take<float>(of_values);  // (n, m, filled)
    float* const dvalues = memory.take<float>(of_values);        // (n, m, filled), or (n, filled, m)
    float* const queries = memory.take<float>(of_queries);       // (products, tile, depth)
    float* const dqueries = memory.take<float>(of_queries);
    float* const grads = memory.take<float>(of_tile);  // (n, tile, m)
    // What is transposed: the queries and the gradients of results, or one map after the other. The gradients
    // of keys and values lie with a row a word where maps are, else transposed.
    const bool maps_across = s_.maps_across;
    float* const queries_across =
        memory.take<float>(maps_across ? 0 : of_queries);                       // (products, depth, tile)
    float* const grads_across = memory.take<float>(maps_across ? 0 : of_tile);  // (n, m, tile)
    float* const map_across = memory.take<float>(maps_across ? map : 0);        // (filled, tile)
    float* const weights = memory.take<float>(s_.maps);                         // (n, tile, filled)
    float* const dscores = memory.take<float>(s_.maps);
    float* const mixtures = memory.take<float>(s_.made_scores);  // (products, tile, filled), where mixed
    const int64_t key_products = how_.mixed ? s_.products : 1;
    gather(how_.keys.view(), K_, b, h, biases, parts_of(keys, key_products, s_.filled), s_.depth);
    gather_transposed(how_.keys.view(), K_, b, h, biases, keys_across);
    gather_transposed(engine::copies_of(s_.n), V_, b, h, biases, values_across);
    // The first of causal tiles does not reach all columns.
    if (causal_) std::fill_n(dkeys, of_keys, 0.0F), std::fill_n(dvalues, of_values, 0.0F);

    const auto n = static_cast<int32_t>(s_.n);
    const std::vector<float*> parts = parts_of(queries, s_.products, s_.tile),
                              dparts = parts_of(dqueries, s_.products, s_.tile),
                              across = row_of(queries_across, s_.made_queries / s_.m, s_.m * s_.tile);
    for (int64_t l = 0; l < s_.queries; l += s_.tile) {
      const Tile tile = tile_at(b, h, l, biases);
      if (tile.columns == 0) {
        zero_words(dQ_, b, h, l, l + tile.rows);
        continue;
      }
      const int64_t rows = tile.rows, height = tile.height, columns = tile.columns;
      const bool more = l > 0 || causal_;
      const auto Q = Q_.at(b, h, l, s_.n), G = G_.at(b, h, l, s_.n);
      k_.combine_f_f(how_.queries.view(), Q.data(), Q_.word, parts.data(), s_.depth, rows, s_.m, nullptr,
                     Store::set);
      k_.combine_f_f(engine::copies_of(s_.n), G.data(), G_.word, row_of(grads, s_.n, s_.tile * s_.m).data(),
                     s_.m, rows, s_.m, nullptr, Store::set);
      // What lies in the tile's last rows is summed over below.
      if (maps_across) {
        clear_rows(grads, s_.n, s_.m, rows, height);
        clear_rows(queries, s_.products, s_.depth, rows, height);
      } else {
        k_.transpose_f_f(engine::copies_of(s_.n), n, G.data(), G_.word,
                         row_of(grads_across, s_.n, s_.m * s_.tile).data(), s_.tile, rows, s_.m);
        k_.transpose_f_f(how_.queries.view(), n, Q.data(), Q_.word, across.data(), s_.tile, rows, s_.m);
        clear_columns(grads_across, s_.width, rows, height);
        clear_columns(queries_across, s_.made_queries, rows, height);
      }
      score(tile, queries, keys_across, mixtures, weights);
      for (int64_t c = 0; c < s_.n; ++c) {
        float *const w = weights + c * map, *const dw = dscores + c * map;
        weigh(tile, w);
        std::fill(w + rows * s_.filled, w + height * s_.filled, 0.0F);
        brgemm(height, columns, s_.m, grads + c * s_.tile * s_.m, s_.m, values_across + c * s_.m * s_.filled,
               s_.filled, dw, s_.filled);
        drop(tile, b, h, c, dw);
        k_.softmax_backward(w, s_.filled, dw, s_.filled, rows, columns);
        std::fill(dw + rows * s_.filled, dw + height * s_.filled, 0.0F);
        drop(tile, b, h, c, w);
        const int64_t of_grads = c * s_.tile * s_.m;
        sum_up(tile, w, s_.m, grads + of_grads, grads_across + of_grads, map_across,
               dvalues + c * s_.m * s_.filled, more);
      }
      if (how_.mixed) mix_scores(tile, how_.from_scores, dscores, s_.n, mixtures, s_.products);
      for (int64_t p = 0; p < s_.products; ++p) {
        const float* const ds = (how_.mixed ? mixtures : dscores) + p * map;
        const int64_t key = how_.keys_of(p, s_.depth * s_.filled), query = p * s_.tile * s_.depth;
        sum_up(tile, ds, s_.depth, queries + query, queries_across + query, map_across, dkeys + key,
               more || (p > 0 && !how_.mixed));
        brgemm(height, s_.depth, columns, ds, s_.filled, keys + key, s_.depth, dqueries + query, s_.depth);
      }
      k_.combine_f_f(how_.from_queries.view(), dparts.data(), s_.depth, dQ_.at(b, h, l, s_.n).data(),
                     dQ_.word, rows, s_.m, nullptr, Store::set);
    }
    if (maps_across) {
      scatter(how_.from_keys.view(), parts_of(dkeys, key_products, s_.filled), s_.depth, dK_, b, h);
      scatter(engine::copies_of(s_.n), row_of(dvalues, s_.n, s_.filled * s_.m), s_.m, dV_, b, h);
    } else {
      scatter_transposed(how_.from_keys.view(), how_.key_parts(), dkeys, dK_, b, h);
      scatter_transposed(engine::copies_of(s_.n), s_.n, dvalues, dV_, b, h);
    }
  }

  /// to = map^T matrix, or to += it; the matrix is (height, width), and also given transposed, or
  /// `map_across` is memory for the map.
  void sum_up(const Tile& tile, const float* map, int64_t width, const float* matrix,
              const float* matrix_across, float* map_across, float* to, bool more) const {
    if (s_.maps_across) {
      transpose_map(tile, map, map_across);
      brgemm(tile.columns, width, tile.height, map_across, s_.tile, matrix, width, to, width, more);
    } else {
      brgemm(width, tile.columns, tile.height, matrix_across, s_.tile, map, s_.filled, to, s_.filled, more);
    }
  }
  /// Columns begin .. end of a matrix (rows, tile).
  void clear_columns(float* across, int64_t rows, int64_t begin, int64_t end) const {
    for (int64_t row = 0; begin < end && row < rows; ++row)
      std::fill(across + row * s_.tile + begin, across + row * s_.tile + end, 0.0F);
  }
  /// (inputs, m, words filled up) -> (words, n, m)
  void scatter_transposed(const kernels::cpu::Mix& mix, int64_t inputs, const float* from,
                          const Heads<float>& to, int64_t b, int64_t h) const {
    k_.transpose_f_f(mix, static_cast<int32_t>(inputs), row_of(from, inputs, s_.m * s_.filled).data(),
                     s_.filled, to.at(b, h, 0, s_.n).data(), to.word, s_.m, s_.keys);
  }
  void zero(int64_t b, int64_t h) const override {
    zero_words(dQ_, b, h, 0, s_.queries);
    zero_words(dK_, b, h, 0, s_.keys);
    zero_words(dV_, b, h, 0, s_.keys);
  }

  Heads<const float> G_;
  Heads<float> dQ_, dK_, dV_;
};

at::Tensor forward(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                   const at::Tensor& value) {
  check_seeded_attention(call, query, key, value);
  if (!attends_in_tiles(call, query, key, value, false)) return composed::attention(call, query, key, value);
  if (call.algebra->n() == 1 && query.size(2) > 1) {
    // One map weights all components of a head alike: to it they are one, n times as long.
    const auto joined = [](const at::Tensor& heads) { return heads.transpose(2, 3).flatten(3).unsqueeze(2); };
    const at::Tensor Q = joined(query), out = empty_heads(Q);
    Forward(out, call, Q, joined(key), joined(value)).run();
    return out.squeeze(2).unflatten(-1, {query.size(2), query.size(4)}).transpose(2, 3).flatten(2);
  }
  const at::Tensor out = empty_heads(query);
  Forward(out, call, plain(query), plain(key), plain(value)).run();
  return out.flatten(2);
}

AttentionGradients backward(const AttentionCall& call, const at::Tensor& grad, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value) {
  check_seeded_attention(call, query, key, value);
  check_attention_gradient(grad, query);
  if (!attends_in_tiles(call, query, key, value, true) || grad.scalar_type() != at::kFloat)
    return composed::attention_backward(call, grad, query, key, value);
  const at::Tensor dQ = empty_heads(query), dK = empty_heads(key), dV = empty_heads(value);
  Backward(grad.contiguous().view(query.sizes()), dQ, dK, dV, call, plain(query), plain(key), plain(value))
      .run();
  return {dQ, dK, dV};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("hypercomplex_attention_forward", &Seeded<&forward>::run);
  m.impl("hypercomplex_attention_backward", &Seeded<&backward>::run);
}

}  // namespace quatrain::ops
