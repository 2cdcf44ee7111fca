// Both directions of an alignment on a CPU in float32. Their scores are one another's transposes, so that a
// pair's are made once, and so is what they are made of:
//
//   head:  E (n, la, lb) of the mixed words (score_products.h), and its transpose
//     map: softmax of both, each over its own keys, then
//       forward:  times the map's component of the other text
//       backward: as in attention/cpu.cpp; the gradients of both maps of scores add up, and one pass through
//                 the products gives those of the words

#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>

#include "ops/alignment/alignment.h"
#include "ops/attention/tiles.h"

namespace quatrain::ops::cpu {

namespace {

using kernels::cpu::Store;

constexpr int64_t kMostBytes = 3 << 20;  // of a thread: a pair stays in the caches

/// Gives memory for so many floats.
using Take = std::function<float*(int64_t)>;

/// One text's words look at those of the other one.
struct Side : TiledCall {
  using TiledCall::TiledCall;
  /// Values of a map of scores, and of its gradients and values.
  int64_t map() const { return s_.tile * s_.filled; }
  int64_t results() const { return s_.tile * s_.m; }
  int64_t values() const { return s_.filled * s_.m; }
};

class Alignment {
 public:
  Alignment(bool with_gradient, const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B)
      : first_(with_gradient, calls.first_sees, A, B, B),
        second_(with_gradient, calls.second_sees, B, A, A),
        n_(first_.s_.n) {}

  /// Each side's queries are one tile, and what a pair takes stays in the caches.
  bool fits(bool with_gradient) const {
    return first_.s_.queries <= first_.s_.tile && second_.s_.queries <= second_.s_.tile &&
           bytes(with_gradient) <= kMostBytes;
  }

  void forward(const at::Tensor& of_first, const at::Tensor& of_second) const {
    const Heads<float> out_first = to_write(of_first), out_second = to_write(of_second);
    for_each_head(false, [&](int64_t b, int64_t h, const Memory& at) {
      const Sides sides = make_weights(b, h, at);
      const auto write = [&](const Side& side, const Seen& seen, const float* weights,
                             const Heads<float>& out) {
        if (!seen.any) return side.zero_words(out, b, h, 0, side.s_.queries);
        side.gather(engine::copies_of(n_), side.V_, b, h, seen.biases, row_of(at.values, n_, side.values()),
                    side.s_.m);
        for (int64_t c = 0; c < n_; ++c)
          brgemm(seen.tile.height, side.s_.m, seen.tile.columns, weights + c * side.map(), side.s_.filled,
                 at.values + c * side.values(), side.s_.m, at.results + c * side.results(), side.s_.m);
        side.k_.combine_f_f(engine::copies_of(n_), row_of(at.results, n_, side.results()).data(), side.s_.m,
                            out.at(b, h, 0, n_).data(), out.word, side.s_.queries, side.s_.m, nullptr,
                            Store::set);
      };
      write(first_, sides.first, at.first_weights, out_first);
      write(second_, sides.second, at.second_weights, out_second);
    });
  }

  void backward(const at::Tensor& of_first, const at::Tensor& of_second, const at::Tensor& dA,
                const at::Tensor& dB) const {
    const Heads<const float> G_first = to_read(of_first), G_second = to_read(of_second);
    const Heads<float> to_A = to_write(dA), to_B = to_write(dB);
    const ScoreProducts& how = first_.how_;
    const TileSizes& s = first_.s_;
    for_each_head(true, [&](int64_t b, int64_t h, const Memory& at) {
      const Sides sides = make_weights(b, h, at);
      weigh_back(first_, sides.first, b, h, G_first, at, at.first_weights, at.first_scores);
      sides.first.any
          ? first_.scatter(engine::copies_of(n_), row_of(at.dvalues, n_, first_.values()), s.m, to_B, b, h)
          : first_.zero_words(to_B, b, h, 0, s.keys);
      weigh_back(second_, sides.second, b, h, G_second, at, at.second_weights, at.second_scores);
      sides.second.any
          ? second_.scatter(engine::copies_of(n_), row_of(at.dvalues, n_, second_.values()), s.m, to_A, b, h)
          : second_.zero_words(to_A, b, h, 0, second_.s_.keys);

      // The weights are read no more: their memory takes the transposed gradients.
      const std::vector<float*> scores = row_of(at.first_scores, n_, first_.map()),
                                across = row_of(at.first_weights, n_, first_.map());
      first_.k_.transpose_f_f(engine::copies_of(n_), static_cast<int32_t>(n_),
                              row_of(at.second_scores, n_, second_.map()).data(), second_.s_.filled,
                              across.data(), s.filled, s.keys, s.queries);
      first_.k_.combine_f_f(engine::copies_of(n_), across.data(), s.filled, scores.data(), s.filled,
                            s.queries, s.keys, nullptr, Store::add);
      const int64_t key_products = how.mixed ? s.products : 1;
      first_.gather(how.keys.view(), first_.K_, b, h, all_words(sides.first),
                    first_.parts_of(at.keys, key_products, s.filled), s.depth);
      const TiledCall::Tile& tile = sides.first.tile;
      if (how.mixed) first_.mix_scores(tile, how.from_scores, at.first_scores, n_, at.products, s.products);
      for (int64_t p = 0; p < s.products; ++p) {
        const float* const ds = (how.mixed ? at.products : at.first_scores) + p * first_.map();
        const int64_t key = how.keys_of(p, s.depth * s.filled), query = p * s.tile * s.depth;
        turned(first_, tile, ds, at.map);
        brgemm(s.filled, s.depth, tile.height, at.map, s.tile, at.queries + query, s.depth, at.dkeys + key,
               s.depth, p > 0 && !how.mixed);
        brgemm(tile.height, s.depth, s.filled, ds, s.filled, at.keys + key, s.depth, at.dqueries + query,
               s.depth);
      }
      first_.k_.combine_f_f(how.from_queries.view(), first_.parts_of(at.dqueries, s.products, s.tile).data(),
                            s.depth, to_A.at(b, h, 0, n_).data(), to_A.word, s.queries, s.m, nullptr,
                            Store::add);
      first_.scatter(how.from_keys.view(), first_.parts_of(at.dkeys, key_products, s.filled), s.depth, to_B,
                     b, h, Store::add);
    });
  }

 private:
  /// What lies where while a head is made; the second row is the backward pass's.
  struct Memory {
    float *first_keys, *second_keys;        // biases
    float *queries, *keys_across;           // (products, tile, depth) and (products, depth, filled)
    float* products;                        // (products, tile, filled), where scores are mixed
    float *first_weights, *second_weights;  // (n, tile, filled): scores, then weights
    float *results, *values;
    float *keys, *dqueries, *dkeys, *first_scores, *second_scores, *grads, *values_across, *dvalues, *map;
  };
  Memory memory(bool with_gradient, const Take& take) const {
    const TileSizes &s = first_.s_, &t = second_.s_;
    const int64_t of_queries = s.tile * s.made_queries, of_keys = s.made_keys * s.filled,
                  results = n_ * std::max(first_.results(), second_.results()),
                  values = n_ * std::max(first_.values(), second_.values());
    Memory m{};
    m.first_keys = take(s.filled), m.second_keys = take(t.filled);
    m.queries = take(of_queries), m.keys_across = take(of_keys), m.products = take(s.made_scores);
    m.first_weights = take(s.maps), m.second_weights = take(t.maps);
    if (!with_gradient) {
      m.results = take(results), m.values = take(values);
      return m;
    }
    m.keys = take(of_keys), m.dqueries = take(of_queries), m.dkeys = take(of_keys);
    m.first_scores = take(s.maps), m.second_scores = take(t.maps);
    m.grads = take(results), m.values_across = take(values), m.dvalues = take(values);
    m.map = take(std::max(first_.map(), second_.map()));
    return m;
  }
  int64_t bytes(bool with_gradient) const {
    int64_t sum = 0;
    memory(with_gradient, [&](int64_t count) {
      sum += (4 * count + 63) / 64 * 64;
      return nullptr;
    });
    return sum;
  }

  template <class Run>
  void for_each_head(bool with_gradient, const Run& run) const {
    const int64_t heads = first_.s_.heads, needed = bytes(with_gradient);
    at::parallel_for(0, first_.s_.texts * heads, 1, [&](int64_t begin, int64_t end) {
      engine::Scratch& scratch = engine::scratch();
      for (int64_t i = begin; i < end; ++i) {
        scratch.begin(needed);
        run(i / heads, i % heads,
            memory(with_gradient, [&](int64_t count) { return scratch.take<float>(count); }));
      }
    });
  }

  struct Seen {
    TiledCall::Biases biases;
    bool any;  // keys that count
    TiledCall::Tile tile;
  };
  struct Sides {
    Seen first, second;
  };
  static Seen seen(const Side& side, int64_t b, int64_t h, float* keys) {
    bool any = false;
    const TiledCall::Biases biases = side.biases_of(b, h, keys, nullptr, any);
    return {biases, any, side.tile_at(b, h, 0, biases)};
  }

  /// The weights of both sides.
  Sides make_weights(int64_t b, int64_t h, const Memory& at) const {
    const Sides sides{seen(first_, b, h, at.first_keys), seen(second_, b, h, at.second_keys)};
    const TileSizes& s = first_.s_;
    const TiledCall::Tile& tile = sides.first.tile;
    first_.k_.combine_f_f(first_.how_.queries.view(), first_.Q_.at(b, h, 0, n_).data(), first_.Q_.word,
                          first_.parts_of(at.queries, s.products, s.tile).data(), s.depth, s.queries, s.m,
                          nullptr, Store::set);
    first_.clear_rows(at.queries, s.products, s.depth, s.queries, tile.height);
    first_.gather_transposed(first_.how_.keys.view(), first_.K_, b, h, all_words(sides.first),
                             at.keys_across);
    first_.score(tile, at.queries, at.keys_across, at.products, at.first_weights);

    const int64_t filled = second_.s_.filled;
    second_.k_.transpose_f_f(engine::copies_of(n_), static_cast<int32_t>(n_),
                             row_of(at.first_weights, n_, first_.map()).data(), s.filled,
                             row_of(at.second_weights, n_, second_.map()).data(), filled, s.queries, s.keys);
    const auto weigh = [&](const Side& side, const Seen& seen, float* weights) {
      clear_hidden(side, seen, weights);
      for (int64_t c = 0; seen.any && c < n_; ++c) side.weigh(seen.tile, weights + c * side.map());
    };
    weigh(first_, sides.first, at.first_weights);
    weigh(second_, sides.second, at.second_weights);
    return sides;
  }
  /// What one side does not see looks at the other side all the same.
  static TiledCall::Biases all_words(const Seen& seen) { return {seen.biases.keys, false, nullptr}; }
  /// Scores of what is hidden may be no numbers.
  void clear_hidden(const Side& side, const Seen& seen, float* scores) const {
    const int64_t filled = side.s_.filled, first = seen.biases.hidden ? 0 : side.s_.keys;
    for (int64_t word = first; word < filled; ++word)
      for (int64_t c = 0; seen.biases.keys[word] != 0 && c < n_; ++c)
        for (int64_t row = 0; row < side.s_.queries; ++row) scores[c * side.map() + row * filled + word] = 0;
  }

  /// The gradients of a side's scores, and into dvalues those of the words it sees as values. Rows behind
  /// the last query become zero.
  void weigh_back(const Side& side, const Seen& seen, int64_t b, int64_t h, const Heads<const float>& G,
                  const Memory& at, float* weights, float* dscores) const {
    const TileSizes& s = side.s_;
    if (!seen.any) {
      std::fill_n(dscores, s.maps, 0.0F);
      return;
    }
    const int64_t height = seen.tile.height;
    side.k_.combine_f_f(engine::copies_of(n_), G.at(b, h, 0, n_).data(), G.word,
                        row_of(at.grads, n_, side.results()).data(), s.m, s.queries, s.m, nullptr,
                        Store::set);
    side.clear_rows(at.grads, n_, s.m, s.queries, height);
    side.gather_transposed(engine::copies_of(n_), side.V_, b, h, seen.biases, at.values_across);
    side.clear_rows(weights, n_, s.filled, s.queries, height);
    for (int64_t c = 0; c < n_; ++c) {
      float *const w = weights + c * side.map(), *const dw = dscores + c * side.map();
      const float* const grads = at.grads + c * side.results();
      brgemm(height, s.filled, s.m, grads, s.m, at.values_across + c * side.values(), s.filled, dw, s.filled);
      side.k_.softmax_backward(w, s.filled, dw, s.filled, s.queries, s.filled);
      turned(side, seen.tile, w, at.map);
      brgemm(s.filled, s.m, height, at.map, s.tile, grads, s.m, at.dvalues + c * side.values(), s.m);
    }
    side.clear_rows(dscores, n_, s.filled, s.queries, height);
  }
  /// (height, filled) -> (filled, tile)
  static void turned(const Side& side, const TiledCall::Tile& tile, const float* map, float* to) {
    side.k_.transpose_f_f(engine::copies_of(1), 1, &map, side.s_.filled, &to, side.s_.tile, tile.height,
                          side.s_.filled);
  }

  const Side first_, second_;
  const int64_t n_;
};

}  // namespace

bool aligns_together(const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B,
                     bool with_gradient) {
  return attends_in_tiles(calls.first_sees, A, B, B, with_gradient) &&
         attends_in_tiles(calls.second_sees, B, A, A, with_gradient) &&
         Alignment(with_gradient, calls, plain(A), plain(B)).fits(with_gradient);
}

std::tuple<at::Tensor, at::Tensor> alignment(const AlignmentCalls& calls, const at::Tensor& A,
                                             const at::Tensor& B) {
  const at::Tensor of_first = empty_heads(A), of_second = empty_heads(B);
  Alignment(false, calls, plain(A), plain(B)).forward(of_first, of_second);
  return {of_first.flatten(2), of_second.flatten(2)};
}

std::tuple<at::Tensor, at::Tensor> alignment_backward(const AlignmentCalls& calls, const at::Tensor& of_first,
                                                      const at::Tensor& of_second, const at::Tensor& A,
                                                      const at::Tensor& B) {
  const at::Tensor dA = empty_heads(A), dB = empty_heads(B);
  Alignment(true, calls, plain(A), plain(B))
      .backward(of_first.contiguous().view(A.sizes()), of_second.contiguous().view(B.sizes()), dA, dB);
  return {dA, dB};
}

}  // namespace quatrain::ops::cpu
