#include "quatrain/data/loader.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "data/random.h"
#include "support/parts.h"

namespace quatrain::data {
namespace {

/// Tokens and padding of texts, each a range of numbers.
template <class Text>
Batch pad(int64_t count, const Text& text) {
  int64_t longest = 0;
  for (int64_t row = 0; row < count; ++row)
    longest = std::max(longest, static_cast<int64_t>(text(row).size()));
  Batch batch;
  batch.tokens = torch::full({count, longest}, Vocabulary::kPad, torch::kInt64);
  batch.padding = torch::ones({count, longest}, torch::kBool);
  batch.labels = torch::full({count}, -1, torch::kInt64);
  batch.groups = torch::full({count}, -1, torch::kInt64);
  batch.indices.resize(static_cast<size_t>(count));
  std::iota(batch.indices.begin(), batch.indices.end(), 0);
  auto* tokens = batch.tokens.template data_ptr<int64_t>();
  auto* padding = batch.padding.template data_ptr<bool>();
  for (int64_t row = 0; row < count; ++row) {
    const auto& ids = text(row);
    std::copy(ids.begin(), ids.end(), tokens + row * longest);
    std::fill_n(padding + row * longest, ids.size(), false);
  }
  return batch;
}

/// Part of the flat array.
struct Range {
  const int32_t *first, *last;
  const int32_t* begin() const { return first; }
  const int32_t* end() const { return last; }
  size_t size() const { return static_cast<size_t>(last - first); }
};

}  // namespace

Batch Batch::to(at::Device device) const {
  return {tokens.to(device), padding.to(device), labels.to(device), groups, indices};
}

Batch collate(const std::vector<std::vector<int64_t>>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    TORCH_CHECK(!texts[i].empty(), "collate: a text must have at least one word, text ", i,
                " has none; Vocabulary::encode gives <unk> for an empty line");
  }
  return pad(static_cast<int64_t>(texts.size()),
             [&](int64_t row) -> const std::vector<int64_t>& { return texts[static_cast<size_t>(row)]; });
}

Encoded encode(const std::vector<Example>& examples, Tokenizer tokenizer, const Vocabulary& vocabulary,
               int64_t max_length) {
  TORCH_CHECK(max_length >= 0, "encode: max_length must be positive, or 0 for no limit, got ", max_length);
  TORCH_CHECK(vocabulary.size() <= std::numeric_limits<int32_t>::max(),
              "encode: a vocabulary must have fewer than 2^31 words, got ", vocabulary.size());
  Encoded set;
  set.offsets.reserve(examples.size() + 1);
  set.labels.reserve(examples.size());
  set.groups.reserve(examples.size());
  for (const auto& example : examples) {
    auto ids = vocabulary.encode(split(example.text, tokenizer));
    if (max_length > 0 && static_cast<int64_t>(ids.size()) > max_length)
      ids.resize(static_cast<size_t>(max_length));
    set.ids.insert(set.ids.end(), ids.begin(), ids.end());
    set.offsets.push_back(static_cast<int64_t>(set.ids.size()));
    set.labels.push_back(example.label);
    set.groups.push_back(example.group);
  }
  set.ids.shrink_to_fit();
  return set;
}

Loader::Loader(Encoded set, LoaderOptions options) : set_(std::move(set)), options_(options) {
  TORCH_CHECK(set_.size() > 0, "Loader: the set must hold at least one example, got none");
  TORCH_CHECK(options_.batch_size >= 1, "Loader: batch_size must be at least 1, got ", options_.batch_size);
  TORCH_CHECK(options_.bucket >= 1, "Loader: bucket must be at least 1, got ", options_.bucket);
}

int64_t Loader::examples() const {
  return set_.size();
}

int64_t Loader::batches() const {
  return count_parts(examples(), options_.batch_size);
}

void Loader::arrange(int64_t epoch) {
  if (epoch_ == epoch || (epoch_ >= 0 && !options_.shuffle)) return;
  order_.resize(static_cast<size_t>(examples()));
  std::iota(order_.begin(), order_.end(), 0);
  Random random(options_.seed, static_cast<uint64_t>(epoch));
  if (options_.shuffle) random.shuffle(order_);

  const auto shorter = [this](int64_t a, int64_t b) { return set_.length(a) < set_.length(b); };
  const int64_t bucket =
      options_.shuffle ? std::min(examples(), options_.batch_size * std::min(options_.bucket, batches()))
                       : examples();
  for (int64_t begin = 0; begin < examples(); begin += bucket) {
    const int64_t end = std::min(begin + bucket, examples());
    std::stable_sort(order_.begin() + begin, order_.begin() + end, shorter);
  }

  starts_.resize(static_cast<size_t>(batches()));
  for (int64_t i = 0; i < batches(); ++i) starts_[static_cast<size_t>(i)] = i * options_.batch_size;
  if (options_.shuffle) random.shuffle(starts_);
  epoch_ = epoch;
}

Batch Loader::batch(int64_t epoch, int64_t index) {
  TORCH_CHECK(epoch >= 0, "Loader::batch: epoch must not be negative, got ", epoch);
  TORCH_CHECK(index >= 0 && index < batches(), "Loader::batch: index must be from 0 to ", batches() - 1,
              ", got ", index);
  arrange(epoch);
  const int64_t start = starts_[static_cast<size_t>(index)];
  const int64_t count = std::min(options_.batch_size, examples() - start);
  const auto example = [&](int64_t row) { return order_[static_cast<size_t>(start + row)]; };
  Batch batch = pad(count, [&](int64_t row) {
    const auto i = static_cast<size_t>(example(row));
    return Range{set_.ids.data() + set_.offsets[i], set_.ids.data() + set_.offsets[i + 1]};
  });
  auto* labels = batch.labels.data_ptr<int64_t>();
  auto* groups = batch.groups.data_ptr<int64_t>();
  for (int64_t row = 0; row < count; ++row) {
    const auto i = static_cast<size_t>(example(row));
    batch.indices[static_cast<size_t>(row)] = static_cast<int64_t>(i);
    labels[row] = set_.labels[i];
    groups[row] = set_.groups[i];
  }
  return batch;
}

}  // namespace quatrain::data
