// Both directions of an alignment on a CPU in float32. Their scores are one another's transposes, so that a
// pair's are made once, and so is what they are made of:
//
//   head:  E (n, la, lb) of the mixed words (score_products.h), and its transpose
//     map: softmax of both, each over its own keys, then
//       forward:  times the map's component of the other text
//       backward: as in attention/cpu.cpp; the gradients of both maps of scores add up, and one pass through
//                 the products gives those of the words
//
// A side takes no part where it sees no word, or where no gradient comes: then the words that the other side
// does not see are read by nobody.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "ops/alignment/alignment.h"
#include "ops/attention/tiles.h"

namespace quatrain::ops::cpu {

namespace {

using kernels::cpu::Store;

constexpr int64_t kMostBytes = 3 << 20;  // of a thread: a pair stays in the caches

/// What lies where while a head is made; the last two rows are the backward pass's.
struct Memory {
  float *first_keys, *second_keys;        // biases
  float *queries, *keys_across;           // (products, tile, depth) and (products, depth, filled)
  float* products;                        // (products, tile, filled), where scores are mixed
  float *first_weights, *second_weights;  // (n, tile, filled): scores, then weights
  float *results, *values;                // of one side after the other: (n, tile, m) and (n, filled, m)
  float *keys, *dqueries, *dkeys, *first_scores, *second_scores;
  float *grads, *values_across, *dvalues, *map;
};

/// The sizes of both sides: their queries are one tile each, and what a pair takes stays in the caches.
struct Plan {
  TileSizes first, second;

  static std::optional<Plan> fitting(const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B,
                                     bool with_gradient) {
    const auto first = TileSizes::fitting(calls.first_sees, A, B, with_gradient),
               second = TileSizes::fitting(calls.second_sees, B, A, with_gradient);
    if (!first || !second || first->queries > first->tile || second->queries > second->tile) return {};
    const Plan plan{*first, *second};
    return plan.bytes(with_gradient) <= kMostBytes ? std::optional(plan) : std::nullopt;
  }

  /// take(count) gives memory for so many floats.
  template <class Take>
  Memory memory(bool with_gradient, const Take& take) const {
    const TileSizes &s = first, &t = second;
    const int64_t of_queries = s.tile * s.made_queries, of_keys = s.made_keys * s.filled,
                  results = s.width * std::max(s.tile, t.tile),
                  values = s.width * std::max(s.filled, t.filled);
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
    m.map = take(std::max(s.map(), t.map()));
    return m;
  }
  int64_t bytes(bool with_gradient) const {
    int64_t sum = 0;
    memory(with_gradient, [&](int64_t count) -> float* {
      sum += (4 * count + 63) / 64 * 64;
      return nullptr;
    });
    return sum;
  }
};

class Alignment {
 public:
  Alignment(bool with_gradient, const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B)
      : first_(with_gradient, calls.first_sees, A, B, B),
        second_(with_gradient, calls.second_sees, B, A, A),
        plan_{first_.s_, second_.s_},
        with_gradient_(with_gradient),
        n_(first_.s_.n) {}

  void forward(const at::Tensor& of_first, const at::Tensor& of_second) const {
    const Heads<float> to_first = to_write(of_first), to_second = to_write(of_second);
    for_each_head([&](int64_t b, int64_t h, const Memory& at) {
      const Sides sides = make_weights(b, h, at, true, true);
      write(first_, sides.first, b, h, at, at.first_weights, to_first);
      write(second_, sides.second, b, h, at, at.second_weights, to_second);
    });
  }

  /// Gradients of the results may be undefined.
  void backward(const at::Tensor& of_first, const at::Tensor& of_second, const at::Tensor& dA,
                const at::Tensor& dB) const {
    const Heads<float> to_A = to_write(dA), to_B = to_write(dB);
    for_each_head([&](int64_t b, int64_t h, const Memory& at) {
      const Sides sides = make_weights(b, h, at, of_first.defined(), of_second.defined());
      weigh_back(first_, sides.first, b, h, of_first, at, at.first_weights, at.first_scores, to_B);
      weigh_back(second_, sides.second, b, h, of_second, at, at.second_weights, at.second_scores, to_A);
      if (sides.any()) score_back(sides, b, h, at, to_A, to_B);
    });
  }

 private:
  struct Seen {
    TiledCall::Biases biases;
    TiledCall::Tile tile;
    bool active;  // takes part
  };
  struct Sides {
    Seen first, second;
    bool any() const { return first.active || second.active; }
    /// Words of B that nobody sees are read as zeros.
    TiledCall::Biases of_keys() const {
      return second.active ? TiledCall::Biases{first.biases.keys, false, nullptr} : first.biases;
    }
  };

  template <class Run>
  void for_each_head(const Run& run) const {
    const int64_t heads = plan_.first.heads, needed = plan_.bytes(with_gradient_);
    at::parallel_for(0, plan_.first.texts * heads, 1, [&](int64_t begin, int64_t end) {
      engine::Scratch& scratch = engine::scratch();
      for (int64_t i = begin; i < end; ++i) {
        scratch.begin(needed);
        const auto take = [&](int64_t count) { return scratch.take<float>(count); };
        run(i / heads, i % heads, plan_.memory(with_gradient_, take));
      }
    });
  }

  static Seen seen(const TiledCall& side, int64_t b, int64_t h, float* keys, bool wanted) {
    bool any = false;
    const TiledCall::Biases biases = side.biases_of(b, h, keys, nullptr, any);
    return {biases, side.tile_at(b, h, 0, biases), any && wanted};
  }

  /// The weights of the sides that take part.
  Sides make_weights(int64_t b, int64_t h, const Memory& at, bool first_wanted, bool second_wanted) const {
    const Sides sides{seen(first_, b, h, at.first_keys, first_wanted),
                      seen(second_, b, h, at.second_keys, second_wanted)};
    if (!sides.any()) return sides;
    const TileSizes &s = first_.s_, &t = second_.s_;
    const TiledCall::Tile& tile = sides.first.tile;
    first_.k_.combine_f_f(first_.how_.queries.view(), first_.Q_.at(b, h, 0, n_).data(), first_.Q_.word,
                          first_.parts_of(at.queries, s.products, s.tile).data(), s.depth, s.queries, s.m,
                          nullptr, Store::set);
    first_.clear_rows(at.queries, s.products, s.depth, s.queries, tile.height);
    for (int64_t word = 0; !sides.first.active && word < s.queries; ++word)
      if (sides.second.biases.keys[word] != 0)
        first_.clear_rows(at.queries, s.products, s.depth, word, word + 1);
    first_.gather_transposed(first_.how_.keys.view(), first_.K_, b, h, sides.of_keys(), at.keys_across);
    first_.score(tile, at.queries, at.keys_across, at.products, at.first_weights);

    second_.k_.transpose_f_f(engine::copies_of(n_), static_cast<int32_t>(n_),
                             row_of(at.first_weights, n_, s.map()).data(), s.filled,
                             row_of(at.second_weights, n_, t.map()).data(), t.filled, s.queries, s.keys);
    weigh(first_, sides.first, at.first_weights);
    weigh(second_, sides.second, at.second_weights);
    return sides;
  }

  void weigh(const TiledCall& side, const Seen& seen, float* scores) const {
    if (!seen.active) return;
    const TileSizes& s = side.s_;
    // Scores of what is hidden may be no numbers.
    for (int64_t word = seen.biases.hidden ? 0 : s.keys; word < s.filled; ++word)
      for (int64_t c = 0; seen.biases.keys[word] != 0 && c < n_; ++c)
        for (int64_t row = 0; row < s.queries; ++row) scores[c * s.map() + row * s.filled + word] = 0;
    for (int64_t c = 0; c < n_; ++c) side.weigh(seen.tile, scores + c * s.map());
  }

  void write(const TiledCall& side, const Seen& seen, int64_t b, int64_t h, const Memory& at,
             const float* weights, const Heads<float>& to) const {
    const TileSizes& s = side.s_;
    if (!seen.active) return side.zero_words(to, b, h, 0, s.queries);
    side.gather(engine::copies_of(n_), side.V_, b, h, seen.biases, row_of(at.values, n_, s.filled * s.m),
                s.m);
    for (int64_t c = 0; c < n_; ++c)
      brgemm(seen.tile.height, s.m, s.filled, weights + c * s.map(), s.filled, at.values + c * s.filled * s.m,
             s.m, at.results + c * s.tile * s.m, s.m);
    side.k_.combine_f_f(engine::copies_of(n_), row_of(at.results, n_, s.tile * s.m).data(), s.m,
                        to.at(b, h, 0, n_).data(), to.word, s.queries, s.m, nullptr, Store::set);
  }

  /// The gradients of a side's scores, with zeros behind the last query; and of the words that it weights,
  /// which are written.
  void weigh_back(const TiledCall& side, const Seen& seen, int64_t b, int64_t h, const at::Tensor& of_result,
                  const Memory& at, float* weights, float* dscores, const Heads<float>& to) const {
    const TileSizes& s = side.s_;
    if (!seen.active) {
      std::fill_n(dscores, s.maps, 0.0F);
      return side.zero_words(to, b, h, 0, s.keys);
    }
    const int64_t height = seen.tile.height;
    const Heads<const float> G = to_read(of_result);
    side.k_.combine_f_f(engine::copies_of(n_), G.at(b, h, 0, n_).data(), G.word,
                        row_of(at.grads, n_, s.tile * s.m).data(), s.m, s.queries, s.m, nullptr, Store::set);
    side.clear_rows(at.grads, n_, s.m, s.queries, height);
    side.gather_transposed(engine::copies_of(n_), side.V_, b, h, seen.biases, at.values_across);
    side.clear_rows(weights, n_, s.filled, s.queries, height);
    for (int64_t c = 0; c < n_; ++c) {
      float *const w = weights + c * s.map(), *const dw = dscores + c * s.map();
      const float* const grads = at.grads + c * s.tile * s.m;
      brgemm(height, s.filled, s.m, grads, s.m, at.values_across + c * s.m * s.filled, s.filled, dw,
             s.filled);
      side.k_.softmax_backward(w, s.filled, dw, s.filled, s.queries, s.filled);
      side.transpose_map(seen.tile, w, at.map);
      brgemm(s.filled, s.m, height, at.map, s.tile, grads, s.m, at.dvalues + c * s.filled * s.m, s.m);
    }
    side.clear_rows(dscores, n_, s.filled, s.queries, height);
    side.scatter(engine::copies_of(n_), row_of(at.dvalues, n_, s.filled * s.m), s.m, to, b, h);
  }

  /// Adds the gradients of the words that come through the scores.
  void score_back(const Sides& sides, int64_t b, int64_t h, const Memory& at, const Heads<float>& to_A,
                  const Heads<float>& to_B) const {
    const ScoreProducts& how = first_.how_;
    const TileSizes &s = first_.s_, &t = second_.s_;
    const TiledCall::Tile& tile = sides.first.tile;
    // The weights are read no more: their memory takes the second side's gradients, transposed.
    const std::vector<float*> across = row_of(at.first_weights, n_, s.map());
    first_.k_.transpose_f_f(engine::copies_of(n_), static_cast<int32_t>(n_),
                            row_of(at.second_scores, n_, t.map()).data(), t.filled, across.data(), s.filled,
                            s.keys, s.queries);
    first_.k_.combine_f_f(engine::copies_of(n_), across.data(), s.filled,
                          row_of(at.first_scores, n_, s.map()).data(), s.filled, s.queries, s.keys, nullptr,
                          Store::add);
    if (how.mixed) first_.mix_scores(tile, how.from_scores, at.first_scores, n_, at.products, s.products);

    const int64_t key_products = how.mixed ? s.products : 1;
    first_.gather(how.keys.view(), first_.K_, b, h, sides.of_keys(),
                  first_.parts_of(at.keys, key_products, s.filled), s.depth);
    for (int64_t p = 0; p < s.products; ++p) {
      const float* const ds = (how.mixed ? at.products : at.first_scores) + p * s.map();
      const int64_t key = how.keys_of(p, s.depth * s.filled), query = p * s.tile * s.depth;
      first_.transpose_map(tile, ds, at.map);
      brgemm(s.filled, s.depth, tile.height, at.map, s.tile, at.queries + query, s.depth, at.dkeys + key,
             s.depth, p > 0 && !how.mixed);
      brgemm(tile.height, s.depth, s.filled, ds, s.filled, at.keys + key, s.depth, at.dqueries + query,
             s.depth);
    }
    first_.k_.combine_f_f(how.from_queries.view(), first_.parts_of(at.dqueries, s.products, s.tile).data(),
                          s.depth, to_A.at(b, h, 0, n_).data(), to_A.word, s.queries, s.m, nullptr,
                          Store::add);
    first_.scatter(how.from_keys.view(), first_.parts_of(at.dkeys, key_products, s.filled), s.depth, to_B, b,
                   h, Store::add);
  }

  const TiledCall first_, second_;  // words of A over those of B, and of B over those of A
  const Plan plan_;
  const bool with_gradient_;
  const int64_t n_;
};

}  // namespace

bool aligns_together(const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B,
                     bool with_gradient) {
  return attends_in_tiles(calls.first_sees, A, B, B, with_gradient) &&
         attends_in_tiles(calls.second_sees, B, A, A, with_gradient) && Plan::fitting(calls, A, B, false) &&
         (!with_gradient || Plan::fitting(calls, A, B, true));
}

std::tuple<at::Tensor, at::Tensor> alignment(const AlignmentCalls& calls, const at::Tensor& A,
                                             const at::Tensor& B) {
  const auto result = [](const at::Tensor& words) {
    return at::empty({words.size(0), words.size(1), words.size(2) * words.size(3) * words.size(4)},
                     words.options());
  };
  const at::Tensor of_first = result(A), of_second = result(B);
  Alignment(false, calls, plain(A), plain(B)).forward(of_first.view(A.sizes()), of_second.view(B.sizes()));
  return {of_first, of_second};
}

std::tuple<at::Tensor, at::Tensor> alignment_backward(const AlignmentCalls& calls, const at::Tensor& of_first,
                                                      const at::Tensor& of_second, const at::Tensor& A,
                                                      const at::Tensor& B) {
  const auto heads = [](const at::Tensor& grad, const at::Tensor& like) {
    return grad.defined() ? grad.contiguous().view(like.sizes()) : grad;
  };
  const at::Tensor dA = empty_heads(A), dB = empty_heads(B);
  Alignment(true, calls, plain(A), plain(B)).backward(heads(of_first, A), heads(of_second, B), dA, dB);
  return {dA, dB};
}

}  // namespace quatrain::ops::cpu
