#include "quatrain/data/pair_loader.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>

#include "data/random.h"

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
PairBatch pad_pairs(int64_t rows, bool has_targets, const Source& source, const Target& target) {
  int64_t source_width = 0, target_width = 0;
  for (int64_t row = 0; row < rows; ++row) {
    source_width = std::max(source_width, static_cast<int64_t>(source(row).size()));
    if (has_targets) target_width = std::max(target_width, static_cast<int64_t>(target(row).size()) + 1);
  }
  PairBatch batch;
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

bool is_beyond(int64_t source, int64_t target, const PairLimits& limits) {
  const auto longer = static_cast<double>(std::max(source, target));
  const auto shorter = static_cast<double>(std::min(source, target));
  return (limits.max_source > 0 && source > limits.max_source) ||
         (limits.max_target > 0 && target > limits.max_target) ||
         (limits.max_ratio > 0 && longer > limits.max_ratio * shorter);
}

}  // namespace

EncodedPairs encode(PairReader& reader, const Pieces& source, const Pieces& target,
                    const PairLimits& limits) {
  TORCH_CHECK(limits.max_source >= 0 && limits.max_target >= 0,
              "encode: max_source and max_target must be positive, or 0 for no limit, got ",
              limits.max_source, " and ", limits.max_target);
  TORCH_CHECK(limits.max_ratio == 0 || limits.max_ratio >= 1,
              "encode: max_ratio must be at least 1, or 0 for no limit, got ", limits.max_ratio);
  EncodedPairs set;
  bool grouped = false;
  for (LinePair pair; reader.next(pair);) {
    auto from = source.encode(pair.source);
    const auto to = target.encode(pair.target);
    if (is_beyond(static_cast<int64_t>(from.size()), static_cast<int64_t>(to.size()), limits)) {
      ++set.left_out;
      continue;
    }
    from.push_back(Pieces::kEnd);
    set.source.append(from);
    set.target.append(to);
    grouped |= pair.group >= 0;
    set.groups.push_back(pair.group);
  }
  TORCH_CHECK(set.size() > 0 || set.left_out == 0, "encode: no pair is left, ", set.left_out,
              " were left out; raise max_source, max_target or max_ratio");
  TORCH_CHECK(set.size() > 0, "encode: up to ", reader.place(),
              " there is no pair that can be used: are all of them bad?");
  if (!grouped) set.groups = {};
  set.source.finish();
  set.target.finish();
  return set;
}

PairBatch PairBatch::to(at::Device device) const {
  PairBatch moved = *this;
  for (at::Tensor* tensor :
       {&moved.source, &moved.source_padding, &moved.target, &moved.following, &moved.target_padding})
    if (tensor->defined()) *tensor = tensor->to(device);
  return moved;
}

PairBatch collate_pairs(const std::vector<std::vector<int32_t>>& sources,
                        const std::vector<std::vector<int32_t>>& targets) {
  TORCH_CHECK(targets.empty() || targets.size() == sources.size(),
              "collate_pairs: there must be as many targets as sources, or none, got ", targets.size(),
              " for ", sources.size());
  auto ended = sources;
  for (auto& ids : ended) ids.push_back(Pieces::kEnd);
  return pad_pairs(
      static_cast<int64_t>(ended.size()), !targets.empty(),
      [&](int64_t row) { return Ids(ended[static_cast<size_t>(row)]); },
      [&](int64_t row) { return Ids(targets[static_cast<size_t>(row)]); });
}

PairLoader::PairLoader(std::shared_ptr<const EncodedPairs> set, PairLoaderOptions options)
    : set_(std::move(set)), options_(options) {
  TORCH_CHECK(set_ && set_->size() > 0, "PairLoader: the set must hold at least one pair, got none");
  TORCH_CHECK(
      options_.batch_size >= 0 && options_.batch_tokens >= 0 &&
          options_.batch_size + options_.batch_tokens > 0,
      "PairLoader: batch_size or batch_tokens must be positive, and the other may be 0 for no limit, got ",
      options_.batch_size, " and ", options_.batch_tokens);
  order_.resize(static_cast<size_t>(examples()));
  std::iota(order_.begin(), order_.end(), 0);
  Random random(options_.seed);
  if (options_.shuffle) random.shuffle(order_);
  const auto lengths = [this](int64_t i) {
    const int64_t source = set_->source.length(i), target = set_->target.length(i) + 1;
    return std::tuple(std::max(source, target), target, source);
  };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int64_t a, int64_t b) { return lengths(a) > lengths(b); });

  const auto no_limit = std::numeric_limits<int64_t>::max();
  const int64_t most = options_.batch_size > 0 ? options_.batch_size : no_limit;
  const int64_t room = options_.batch_tokens > 0 ? options_.batch_tokens : no_limit;
  for (int64_t begin = 0; begin < examples();) {
    // The first pair is the longest one, up to whose length the others are padded.
    const int64_t longest = std::get<0>(lengths(order_[static_cast<size_t>(begin)]));
    starts_.push_back(begin);
    begin += std::min({most, std::max<int64_t>(room / longest, 1), examples() - begin});
  }
  starts_.push_back(examples());
  shuffled_.resize(starts_.size() - 1);
  std::iota(shuffled_.begin(), shuffled_.end(), 0);
}

int64_t PairLoader::batches() const {
  return static_cast<int64_t>(shuffled_.size());
}

int64_t PairLoader::examples() const {
  return set_->size();
}

void PairLoader::arrange(int64_t epoch) {
  if (!options_.shuffle || epoch_ == epoch) return;
  constexpr uint64_t kEpochStreams = 1;  // after the one that arranged the pairs
  std::iota(shuffled_.begin(), shuffled_.end(), 0);
  Random(options_.seed, kEpochStreams + static_cast<uint64_t>(epoch)).shuffle(shuffled_);
  epoch_ = epoch;
}

PairBatch PairLoader::batch(int64_t epoch, int64_t index) {
  TORCH_CHECK(epoch >= 0, "PairLoader::batch: epoch must not be negative, got ", epoch);
  TORCH_CHECK(index >= 0 && index < batches(), "PairLoader::batch: index must be from 0 to ", batches() - 1,
              ", got ", index);
  arrange(epoch);
  const auto number = static_cast<size_t>(shuffled_[static_cast<size_t>(index)]);
  const auto begin = static_cast<size_t>(starts_[number]), end = static_cast<size_t>(starts_[number + 1]);
  const auto pair = [&](int64_t row) { return order_[begin + static_cast<size_t>(row)]; };
  PairBatch batch = pad_pairs(
      static_cast<int64_t>(end - begin), true, [&](int64_t row) { return set_->source[pair(row)]; },
      [&](int64_t row) { return set_->target[pair(row)]; });
  for (size_t row = 0; row < batch.indices.size(); ++row) batch.indices[row] = order_[begin + row];
  return batch;
}

}  // namespace quatrain::data
