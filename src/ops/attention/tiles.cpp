#include "ops/attention/tiles.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "ops/attention/dropout.h"
#include "ops/draws.h"

namespace quatrain::ops {

namespace {

using kernels::cpu::Store;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

constexpr int64_t kRows = 64;               // of a tile
constexpr int64_t kScoreBytes = 1 << 18;    // of a tile's scores: they stay close
constexpr int64_t kForwardBytes = 1 << 22;  // of a thread; a head of more would leave the caches: composed
constexpr int64_t kBackwardBytes = 3 << 20;
// The same where the composed form would write out which keys each query sees: slower outside the caches, but
// such a mask grows with the square of the length.
constexpr int64_t kMaskedForwardBytes = int64_t{1} << 32;
constexpr int64_t kLargeMask = 1 << 24;  // entries
// A causal tile skips keys in multiples of this number, because each length of a product needs its own
// kernel.
constexpr int64_t kColumns = 64;

/// True where the composed form writes out which keys each query sees.
bool needs_mask(const AttentionCall& call, const at::Tensor& query) {
  return call.options.causal && !call.plainly_causal(query);
}

at::Tensor of_known_type(const at::Tensor& mask) {
  return !mask.defined() || mask.scalar_type() == at::kBool ? mask : mask.to(at::kFloat);
}

}  // namespace

at::Tensor plain(const at::Tensor& heads) {
  return heads.stride(-1) == 1 || heads.size(-1) == 1 ? heads : heads.contiguous();
}
at::Tensor empty_heads(const at::Tensor& like) {
  return at::empty(like.sizes(), like.options());
}

void brgemm(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb,
            float* C, int64_t ldc, bool add) {
  at::native::cpublas::brgemm(M, N, K, lda, ldb, ldc, add, A, B, C);
}

TileSizes::TileSizes(const AttentionCall& call, bool mixed, const at::Tensor& Q, const at::Tensor& K)
    : texts(Q.size(0)),
      queries(Q.size(1)),
      keys(K.size(1)),
      n(call.algebra->n() == 1 ? 1 : Q.size(2)),
      heads(Q.size(3)),
      m(Q.size(2) * Q.size(4) / n),
      width(n * m),
      filled(filled_up(keys)),
      tile(kRows),
      mixed(mixed),
      products(mixed ? call.algebra->factors().rank : n),
      depth(mixed ? m : width),
      made_queries(products * depth),
      made_keys(mixed ? made_queries : width),
      maps_across((n + products) * filled < made_queries + width) {
  const int64_t scores = n + (mixed ? products : 0);
  while (tile > 8 && scores * tile * filled * 4 > kScoreBytes) tile /= 2;
  maps = n * tile * filled, made_scores = (scores - n) * tile * filled;
  biases = filled + (call.differs_by_query() ? tile * filled : 0);
}
int64_t TileSizes::forward_bytes() const {
  return 4 * ((made_keys + width) * filled + tile * (made_queries + width) + maps + made_scores + biases) +
         640;
}
int64_t TileSizes::backward_bytes() const {
  const int64_t across = maps_across ? tile * filled : tile * (made_queries + width);
  return 4 * ((3 * made_keys + 2 * width) * filled + tile * (2 * made_queries + width) + across + 2 * maps +
              made_scores + biases) +
         1152;
}
std::optional<TileSizes> TileSizes::fitting(const AttentionCall& call, const at::Tensor& query,
                                            const at::Tensor& key, bool with_gradient) {
  const int64_t forward = needs_mask(call, query) ? kMaskedForwardBytes : kForwardBytes;
  if (key.size(1) > kForwardBytes || query.size(2) * query.size(4) > kForwardBytes) return {};
  for (const bool mixed : {true, false}) {
    if (mixed && !ScoreProducts::pay(*call.algebra, query.size(4))) continue;
    const TileSizes sizes(call, mixed, query, key);
    if (with_gradient ? sizes.backward_bytes() <= kBackwardBytes : sizes.forward_bytes() <= forward)
      return sizes;
  }
  return {};
}

MaskView::MaskView(const at::Tensor& mask, const TileSizes& s) {
  if (!mask.defined()) return;
  const at::Tensor whole = mask.expand({s.texts, s.heads, s.queries, s.keys});
  if (mask.scalar_type() == at::kBool)
    allowed = whole.const_data_ptr<bool>();
  else
    added = whole.const_data_ptr<float>();
  shared = mask.dim() < 2 || mask.size(-2) == 1;
  text = whole.stride(0), head = whole.stride(1), query = shared ? 0 : whole.stride(2), key = whole.stride(3);
}

TiledCall::TiledCall(bool with_gradient, const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K,
                     const at::Tensor& V)
    : s_(TileSizes::fitting(call, Q, K, with_gradient).value()),
      how_(call, call.scale(Q), s_.mixed),
      Q_(to_read(Q)),
      K_(to_read(K)),
      V_(to_read(V)),
      causal_(call.options.causal),
      padding_(call.options.padding.defined() ? call.options.padding.contiguous() : at::Tensor()),
      mask_(of_known_type(call.options.mask)),
      padded_(padding_.defined() ? padding_.const_data_ptr<bool>() : nullptr),
      view_(mask_, s_),
      offset_(call.place(Q, K).guard_int(__FILE__, __LINE__)),
      dropout_(call.options.dropout),
      seed_(call.seed.defined() ? call.seed.item<int64_t>() : 0) {}

void TiledAttention::run() const {
  at::parallel_for(0, s_.texts * s_.heads, 1, [&](int64_t begin, int64_t end) {
    engine::Scratch& memory = engine::scratch();
    for (int64_t i = begin; i < end; ++i) {
      memory.begin(scratch_bytes());
      float* const keys = memory.take<float>(s_.filled);
      float* const rows = s_.biases > s_.filled ? memory.take<float>(s_.biases - s_.filled) : nullptr;
      const int64_t b = i / s_.heads, h = i % s_.heads;
      bool any = false;
      const Biases biases = biases_of(b, h, keys, rows, any);
      any ? run_head(b, h, biases, memory) : zero(b, h);
    }
  });
}

TiledCall::Biases TiledCall::biases_of(int64_t b, int64_t h, float* keys, float* rows, bool& any) const {
  std::fill_n(keys, s_.filled, kHidden);
  for (int64_t s = 0; s < s_.keys; ++s)
    if (!padded_ || !padded_[b * s_.keys + s]) keys[s] = 0;
  if (view_.defined() && view_.shared) {
    const int64_t start = view_.at(b, h, 0);
    for (int64_t s = 0; s < s_.keys; ++s) {
      if (keys[s] == kHidden) continue;
      const int64_t place = start + s * view_.key;
      keys[s] = view_.added ? view_.added[place] : view_.allowed[place] ? 0 : kHidden;
    }
  }
  const auto hidden = std::count(keys, keys + s_.keys, kHidden);
  any = hidden < s_.keys;
  return {keys, hidden > 0, rows};
}

/// One query's biases from those of all queries.
void TiledCall::fill_row(int64_t b, int64_t h, int64_t l, int64_t columns, const float* of_keys,
                         float* row) const {
  // The columns added to fill up are hidden already.
  const int64_t seen = causal_ ? std::clamp<int64_t>(offset_ + l + 1, 0, columns) : columns;
  std::copy_n(of_keys, seen, row);
  std::fill(row + seen, row + columns, kHidden);
  if (!view_.defined() || view_.shared) return;
  const int64_t last = std::min(seen, s_.keys), key = view_.key;
  if (view_.allowed) {
    const bool* const allowed = view_.allowed + view_.at(b, h, l);
    for (int64_t s = 0; s < last; ++s) row[s] = allowed[s * key] ? row[s] : kHidden;
  } else {
    const float* const added = view_.added + view_.at(b, h, l);
    for (int64_t s = 0; s < last; ++s) row[s] = row[s] == kHidden ? kHidden : added[s * key];
  }
}

TiledCall::Tile TiledCall::tile_at(int64_t b, int64_t h, int64_t first, const Biases& biases) const {
  Tile tile{first, std::min(s_.tile, s_.queries - first), s_.tile, s_.filled, biases.keys, 0, {}};
  // Few shapes, since each needs its own kernel.
  while (tile.height / 2 >= tile.rows) tile.height /= 2;
  if (causal_) {
    const int64_t seen = std::max<int64_t>(offset_ + first + tile.rows, 0);
    tile.columns = std::min((seen + kColumns - 1) / kColumns * kColumns, s_.filled);
  }
  if (!biases.rows) {
    if (!biases.hidden && !(view_.defined()) && s_.keys == s_.filled) tile.bias = nullptr;
    return tile;
  }
  tile.bias = biases.rows;
  tile.bias_row = s_.filled;
  for (int64_t row = 0; row < tile.rows && tile.columns > 0; ++row) {
    float* const bias = biases.rows + row * s_.filled;
    fill_row(b, h, first + row, tile.columns, biases.keys, bias);
    if (std::count(bias, bias + tile.columns, kHidden) == tile.columns) tile.blind.push_back(row);
  }
  return tile;
}

void TiledCall::gather(const kernels::cpu::Mix& mix, const Heads<const float>& from, int64_t b, int64_t h,
                       const Biases& biases, const std::vector<float*>& to, int64_t row) const {
  k_.combine_f_f(mix, from.at(b, h, 0, s_.n).data(), from.word, to.data(), row, s_.keys, s_.m, nullptr,
                 Store::set);
  for (int64_t s = biases.hidden ? 0 : s_.keys; s < s_.filled; ++s)
    if (biases.keys[s] == kHidden)
      for (float* const matrix : to) std::fill_n(matrix + s * row, s_.m, 0.0F);
}

void TiledCall::gather_transposed(const kernels::cpu::Mix& mix, const Heads<const float>& from, int64_t b,
                                  int64_t h, const Biases& biases, float* to) const {
  k_.transpose_f_f(mix, static_cast<int32_t>(s_.n), from.at(b, h, 0, s_.n).data(), from.word,
                   row_of(to, mix.outputs, s_.m * s_.filled).data(), s_.filled, s_.keys, s_.m);
  for (int64_t row = 0; row < mix.outputs * s_.m; ++row) {
    float* const values = to + row * s_.filled;
    std::fill(values + s_.keys, values + s_.filled, 0.0F);
    if (!biases.hidden) continue;
    for (int64_t s = 0; s < s_.keys; ++s)
      if (biases.keys[s] == kHidden) values[s] = 0;
  }
}

void TiledCall::scatter(const kernels::cpu::Mix& mix, const std::vector<float*>& from, int64_t row,
                        const Heads<float>& to, int64_t b, int64_t h, Store how) const {
  k_.combine_f_f(mix, from.data(), row, to.at(b, h, 0, s_.n).data(), to.word, s_.keys, s_.m, nullptr, how);
}

void TiledCall::transpose_map(const Tile& tile, const float* map, float* to) const {
  k_.transpose_f_f(engine::copies_of(1), 1, &map, s_.filled, &to, s_.tile, tile.height, tile.columns);
}

void TiledCall::clear_rows(float* matrices, int64_t count, int64_t width, int64_t begin, int64_t end) const {
  for (int64_t i = 0; begin < end && i < count; ++i)
    std::fill(matrices + (i * s_.tile + begin) * width, matrices + (i * s_.tile + end) * width, 0.0F);
}

std::vector<float*> TiledCall::parts_of(float* matrices, int64_t count, int64_t rows) const {
  std::vector<float*> parts;
  for (int64_t p = 0; p < count; ++p)
    for (int64_t j = 0; j < how_.parts; ++j) parts.push_back(matrices + p * rows * s_.depth + j * s_.m);
  return parts;
}

void TiledCall::score(const Tile& tile, const float* queries, const float* keys, float* products,
                      float* scores) const {
  float* const to = how_.mixed ? products : scores;
  for (int64_t p = 0; p < s_.products; ++p)
    brgemm(tile.height, tile.columns, s_.depth, queries + p * s_.tile * s_.depth, s_.depth,
           keys + how_.keys_of(p, s_.depth * s_.filled), s_.filled, to + p * s_.tile * s_.filled, s_.filled);
  if (how_.mixed) mix_scores(tile, how_.scores, products, s_.products, scores, s_.n);
}

void TiledCall::mix_scores(const Tile& tile, const engine::Mixing& mixing, const float* from, int64_t inputs,
                           float* to, int64_t outputs) const {
  // Rows without a gap are one long row.
  const bool whole = tile.columns == s_.filled;
  k_.combine_f_f(mixing.view(), row_of(from, inputs, s_.tile * s_.filled).data(), s_.filled,
                 row_of(to, outputs, s_.tile * s_.filled).data(), s_.filled, whole ? 1 : tile.height,
                 whole ? tile.height * tile.columns : tile.columns, nullptr, Store::set);
}

void TiledCall::weigh(const Tile& tile, float* scores) const {
  k_.softmax(scores, s_.filled, tile.rows, tile.columns, tile.bias, tile.bias_row);
  for (const int64_t row : tile.blind) std::fill_n(scores + row * s_.filled, tile.columns, 0.0F);
}

void TiledCall::drop(const Tile& tile, int64_t b, int64_t h, int64_t c, float* weights) const {
  if (dropout_ == 0) return;
  const int64_t row = ((b * s_.heads + h) * s_.n + c) * s_.queries + tile.first;
  k_.drop_f(weights, s_.filled, weights, s_.filled, tile.rows, tile.columns, drop_of(dropout_, seed_, row));
}

void TiledCall::zero_words(const Heads<float>& heads, int64_t b, int64_t h, int64_t first,
                           int64_t end) const {
  for (int64_t l = first; l < end; ++l)
    for (float* part : heads.at(b, h, l, s_.n)) std::fill_n(part, s_.m, 0.0F);
}

bool attends_in_tiles(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                      const at::Tensor& value, bool with_gradient) {
  if (query.dim() != 5 || key.dim() != 5) return false;
  for (const at::Tensor* t : {&query, &key, &value})
    if (!t->device().is_cpu() || t->scalar_type() != at::kFloat || t->sym_numel().maybe_as_int() == 0)
      return false;
  const bool one_map = call.algebra->n() == 1;  // ATen's fused attention is faster, as long as it can be had
  for (const at::Tensor* t : {&query, &key})
    for (const c10::SymInt& size : t->sym_sizes())
      if (size.is_heap_allocated()) return !one_map;  // one that a trace leaves open: what runs it will see
  if (one_map && (with_gradient || !needs_mask(call, query) || query.size(1) * key.size(1) < kLargeMask))
    return false;
  return TileSizes::fitting(call, query, key, with_gradient).has_value();
}

}  // namespace quatrain::ops
