#include "ops/recurrent/gate_maps.h"

namespace quatrain::ops {

using engine::Blocks;
using engine::Columns;
using engine::kColumns;

namespace {

constexpr int64_t kFew = 8;  // steps beside which combining weights costs something

// Of blocks that are numbered through maps of the same width, those of map k.
Columns columns_of(Range blocks, int64_t k, int64_t width) {
  const int64_t each = (width + kColumns - 1) / kColumns;
  const auto at = [&](int64_t block) { return std::clamp<int64_t>(block - k * each, 0, each) * kColumns; };
  return {at(blocks.begin), std::min(at(blocks.end), width)};
}

}  // namespace

GateMaps::GateMaps(const std::vector<at::Tensor>& S, const std::vector<Call>& maps, int64_t gates,
                   const Optional& bias, int64_t rows, int64_t times, BilinearMap::Pass pass)
    : n_(S[0].size(0)), gates_(gates), q_(S[0].size(2)) {
  const bool backward = pass == BilinearMap::Pass::backward;
  // As for one thread, whatever there are: results do not depend on it.
  const BilinearMap::Use use{.often = times > kFew, .on_one_thread = true};
  const size_t count = static_cast<int64_t>(S.size()) < gates ? 1 : static_cast<size_t>(gates);
  p_ = S[0].size(1) * static_cast<int64_t>(count) / gates;
  for (size_t k = 0; k < count; ++k) {
    maps_.emplace_back(S[k], maps[k], rows, at::kFloat, pass, use);
    // The mixed way goes back through H, of which the factors' products read and multiply R/n^2.
    if (backward && maps_.back().way() == Way::mixed && maps[k].rank() > 0) {
      Call factored = maps[k];
      factored.way = Way::factored;
      maps_.back() = BilinearMap(S[k], factored, rows, at::kFloat, pass, use);
    }
    on_engine_ = on_engine_ && maps_.back().on_engine();
    splits_ = splits_ && maps_.back().splits_columns(backward);
    if (!backward || k == 0) blocks_ += ((backward ? q_ : maps_.back().m()) + kColumns - 1) / kColumns;
  }
  if (!on_engine_) return;
  // The factored way mixes its weights in each application, which is as good for a single one.
  for (BilinearMap& map : maps_)
    if (times > 1 || maps[0].constant || map.way() != Way::factored) map.prepare(backward, use.often);
  if (bias) bias_ = bias->view({n_, static_cast<int64_t>(count), -1}).transpose(0, 1).contiguous();
}

void GateMaps::apply(Range rows, Range blocks, const float* x, float* gates) const {
  const int64_t in = n_ * q_, out = n_ * p_ * gates_;
  const engine::Piece from{Blocks{const_cast<float*>(x) + rows.begin * in, q_, in}, q_};
  for (size_t k = 0; k < maps_.size(); ++k) {
    const auto number = static_cast<int64_t>(k), m = maps_[k].m();
    BilinearMap::Output output;
    output.columns = columns_of(blocks, number, m);
    if (bias_.defined()) output.epilogue.bias = bias_.const_data_ptr<float>() + number * n_ * m;
    maps_[k].apply(rows.end - rows.begin, {&from, 1}, gates_at(gates + rows.begin * out, k), output);
  }
}

void GateMaps::apply_transposed(Range rows, Range blocks, float* dr, float* dh, const float* mask,
                                float* through) const {
  const int64_t width = n_ * q_;
  const Columns columns = columns_of(blocks, 0, q_);
  for (size_t k = 0; k < maps_.size(); ++k)
    maps_[k].apply_transposed(rows.end - rows.begin, gates_at(dr + rows.begin * n_ * p_ * gates_, k),
                              Blocks{(mask ? through : dh) + rows.begin * width, q_, width}, !mask || k > 0,
                              nullptr, {}, columns);
  if (!mask) return;
  for (int64_t part = rows.begin * n_; part < rows.end * n_; ++part)
    for (int64_t q = part * q_ + columns.begin; q < part * q_ + columns.end; ++q)
      dh[q] += through[q] * mask[q];
}

StateMaps::StateMaps(const RecurrenceCall& call, int64_t rows, int64_t steps, BilinearMap::Pass pass)
    : gates(call.S, call.maps, ops::gates(call.cell), call.bias, rows, steps, pass) {
  if (call.projects())
    projection.emplace(std::vector{call.S.back()}, std::vector{call.maps.back()}, 1, std::nullopt, rows,
                       steps, pass);
}

Split::Split(const Steps& steps, const StateMaps& maps, int64_t n, bool splits)
    : n_(n), blocks_(maps.gates.blocks()) {
  // Of a thread: rows from which its products are as fast as with all, and products of values in a step that
  // are worth waiting for another.
  constexpr int64_t kRows = 16, kWork = 1 << 16;
  const int64_t most = engine::Team::most(), batch = steps.count() ? steps.sizes[0] : 0;
  if (most == 1 || !maps.splits() || !splits) return;
  by_rows_ = batch >= kRows * most;
  threads_ =
      by_rows_ ? most : std::clamp<int64_t>(maps.gates.work(batch) / kWork, 1, std::min(most, blocks_));
  if (by_rows_) cuts_ = steps.cuts(threads_);
}

Split::Part Split::part(const engine::Team::Member& member, int64_t rows) const {
  if (!by_rows_) return {{0, rows}, member.share(blocks_), member.share(rows * n_)};
  const Range parts = member.parts();
  const int64_t begin = std::min(cuts_[static_cast<size_t>(parts.begin)], rows),
                end = std::min(cuts_[static_cast<size_t>(parts.end)], rows);
  return {{begin, end}, {0, blocks_}, {begin * n_, end * n_}};
}

}  // namespace quatrain::ops
