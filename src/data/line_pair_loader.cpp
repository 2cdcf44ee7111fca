#include "quatrain/data/line_pair_loader.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <span>

namespace quatrain::data {
namespace {

using Ids = std::span<const int32_t>;

/// Rows of ids, each with a mark before or behind it, and their padding.
struct PaddedRows {
  PaddedRows(int64_t rows, int64_t width)
      : ids(torch::full({rows, width}, Pieces::kPad, torch::kInt64)),
        padding(torch::ones({rows, width}, torch::kBool)) {}

  /// Returns how many of the row are filled.
  int64_t fill(int64_t row, int64_t before, Ids text, int64_t behind) {
    int64_t* to = ids.data_ptr<int64_t>() + row * ids.size(1);
    int64_t* at = to;
    if (before >= 0) *at++ = before;
    at = std::copy(text.begin(), text.end(), at);
    if (behind >= 0) *at++ = behind;
    std::fill_n(padding.data_ptr<bool>() + row * ids.size(1), at - to, false);
    return at - to;
  }
  at::Tensor ids, padding;
};

constexpr int64_t kNone = -1;

/// Both from functions of the row; sources have their end mark.
template <class Source, class Target>
LinePairBatch pad_pairs(int64_t rows, bool has_targets, const Source& source, const Target& target) {
  int64_t source_width = 0, target_width = 0;
  for (int64_t row = 0; row < rows; ++row) {
    source_width = std::max(source_width, static_cast<int64_t>(source(row).size()));
    if (has_targets) target_width = std::max(target_width, static_cast<int64_t>(target(row).size()) + 1);
  }
  LinePairBatch batch;
  PaddedRows from(rows, source_width);
  for (int64_t row = 0; row < rows; ++row) from.fill(row, kNone, source(row), kNone);
  batch.source = from.ids;
  batch.source_padding = from.padding;
  if (has_targets) {
    PaddedRows to(rows, target_width), following(rows, target_width);
    for (int64_t row = 0; row < rows; ++row) {
      to.fill(row, Pieces::kBegin, target(row), kNone);
      batch.tokens += following.fill(row, kNone, target(row), Pieces::kEnd);
    }
    batch.target = to.ids;
    batch.following = following.ids;
    batch.target_padding = to.padding;
  }
  batch.indices.resize(static_cast<size_t>(rows));
  std::iota(batch.indices.begin(), batch.indices.end(), 0);
  return batch;
}

/// True for a pair that is left out, and counted.
bool leave_out(int64_t source, int64_t target, const LinePairLimits& limits, PairsBeyond& beyond) {
  const auto longer = static_cast<double>(std::max(source, target));
  const auto shorter = static_cast<double>(std::min(source, target));
  if (limits.max_source > 0 && source > limits.max_source) return ++beyond.max_source;
  if (limits.max_target > 0 && target > limits.max_target) return ++beyond.max_target;
  if (limits.max_ratio > 0 && longer > limits.max_ratio * shorter) return ++beyond.max_ratio;
  return false;
}

// Of the longer side, then of either, with marks.
std::vector<LengthBatches::Lengths> lengths_of(const EncodedLinePairs* set,
                                               const LinePairLoaderOptions& options) {
  TORCH_CHECK(set && set->size() > 0, "LinePairLoader: the set must hold at least one pair, got none");
  TORCH_CHECK(
      options.batch_size >= 0 && options.batch_tokens >= 0 && options.batch_size + options.batch_tokens > 0,
      "LinePairLoader: batch_size or batch_tokens must be positive, and the other may be 0 for no limit, "
      "got ",
      options.batch_size, " and ", options.batch_tokens);
  std::vector<LengthBatches::Lengths> all;
  for (int64_t i = 0; i < set->size(); ++i) {
    const int64_t source = set->source.length(i), target = set->target.length(i) + 1;
    all.push_back({std::max(source, target), target, source});
  }
  return all;
}

LengthBatchOptions length_options(const LinePairLoaderOptions& options) {
  return {options.batch_size, options.batch_tokens, options.shuffle, options.seed};
}

}  // namespace

EncodedLinePairs encode(LinePairReader& reader, const Pieces& source, const Pieces& target,
                        const LinePairLimits& limits) {
  TORCH_CHECK(limits.max_source >= 0 && limits.max_target >= 0,
              "encode: max_source and max_target must be positive, or 0 for no limit, got ",
              limits.max_source, " and ", limits.max_target);
  TORCH_CHECK(limits.max_ratio == 0 || limits.max_ratio >= 1,
              "encode: max_ratio must be at least 1, or 0 for no limit, got ", limits.max_ratio);
  EncodedLinePairs set;
  bool grouped = false;
  for (LinePair pair; reader.next(pair);) {
    auto from = source.encode(pair.source);
    const auto to = target.encode(pair.target);
    if (limits.cut_sources && limits.max_source > 0 && std::ssize(from) > limits.max_source) {
      from.resize(static_cast<size_t>(limits.max_source));
      ++set.cut;
    }
    if (leave_out(static_cast<int64_t>(from.size()), static_cast<int64_t>(to.size()), limits, set.left_out))
      continue;
    from.push_back(Pieces::kEnd);
    set.source.append(from);
    set.target.append(to);
    grouped |= pair.group >= 0;
    set.groups.push_back(pair.group);
  }
  const PairsBeyond& beyond = set.left_out;
  TORCH_CHECK(set.size() > 0 || beyond.all() == 0, "data: up to ", reader.place(),
              " no pair is left; beyond max_source are ", beyond.max_source, ", beyond max_target ",
              beyond.max_target, " and beyond max_ratio ", beyond.max_ratio, ": raise these");
  TORCH_CHECK(set.size() > 0, "data: up to ", reader.place(),
              " there is no pair that can be used: are all of them bad?");
  if (!grouped) set.groups = {};
  set.source.finish();
  set.target.finish();
  return set;
}

LinePairBatch LinePairBatch::to(at::Device device) const {
  LinePairBatch moved = *this;
  for (at::Tensor* tensor :
       {&moved.source, &moved.source_padding, &moved.target, &moved.following, &moved.target_padding})
    if (tensor->defined()) *tensor = tensor->to(device);
  return moved;
}

LinePairBatch collate_line_pairs(const std::vector<std::vector<int32_t>>& sources,
                                 const std::vector<std::vector<int32_t>>& targets) {
  TORCH_CHECK(targets.empty() || targets.size() == sources.size(),
              "collate_line_pairs: there must be as many targets as sources, or none, got ", targets.size(),
              " for ", sources.size());
  auto ended = sources;
  for (auto& ids : ended) ids.push_back(Pieces::kEnd);
  return pad_pairs(
      static_cast<int64_t>(ended.size()), !targets.empty(),
      [&](int64_t row) { return Ids(ended[static_cast<size_t>(row)]); },
      [&](int64_t row) { return Ids(targets[static_cast<size_t>(row)]); });
}

LinePairLoader::LinePairLoader(std::shared_ptr<const EncodedLinePairs> set, LinePairLoaderOptions options)
    : set_(std::move(set)), order_(lengths_of(set_.get(), options), length_options(options)) {}

LinePairBatch LinePairLoader::batch(int64_t epoch, int64_t index) {
  const auto pairs = order_.batch(epoch, index);
  const auto pair = [&](int64_t row) { return pairs[static_cast<size_t>(row)]; };
  LinePairBatch batch = pad_pairs(
      static_cast<int64_t>(pairs.size()), true, [&](int64_t row) { return set_->source[pair(row)]; },
      [&](int64_t row) { return set_->target[pair(row)]; });
  batch.indices.assign(pairs.begin(), pairs.end());
  return batch;
}

}  // namespace quatrain::data
