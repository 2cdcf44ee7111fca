#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/example.h"
#include "quatrain/data/vocabulary.h"

namespace quatrain::data {

/// What a model is given.
struct QUATRAIN_API Batch {
  at::Tensor tokens;             ///< (B, L) int64, kPad after the end
  at::Tensor padding;            ///< (B, L) bool, true where padded
  at::Tensor labels;             ///< (B) int64
  at::Tensor groups;             ///< (B) int64, -1 where there is none
  std::vector<int64_t> indices;  ///< the examples' places in their set
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
  /// Moves the tensors that a model and a loss read to another device; groups and indices stay on the CPU.
  Batch to(at::Device device) const;
};

/// Texts without labels as a batch, for prediction: labels and groups are -1, indices 0, 1, ..
QUATRAIN_API Batch collate(const std::vector<std::vector<int64_t>>& texts);

/// A set as numbers: four bytes a word, one array for all.
struct QUATRAIN_API Encoded {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets{0};  ///< text i is ids[offsets[i]] .. ids[offsets[i + 1]]
  std::vector<int64_t> labels, groups;
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  std::vector<int64_t> text(int64_t i) const {
    return {ids.begin() + offsets[i], ids.begin() + offsets[i + 1]};
  }
};

/// Encodes a set. Texts longer than max_length are cut off there (0: no limit).
QUATRAIN_API Encoded encode(const std::vector<Example>& examples, Tokenizer tokenizer,
                            const Vocabulary& vocabulary, int64_t max_length = 0);

/// Options of Loader.
struct QUATRAIN_API LoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = true;  ///< false: by length, shortest first, the same in each epoch
  uint64_t seed = 0;
  int64_t bucket = 50;  ///< batches' worth of examples that are sorted by length together when shuffling
};

/// Batches of texts of about equal length, made when they are asked for. Batch (epoch, index) is a function
/// of the data, the options and these two numbers alone: a resumed run asks for the next one. Every example
/// occurs once in an epoch; one batch may be smaller than the others. Not thread-safe.
class QUATRAIN_API Loader {
 public:
  /// An empty set and a batch size below 1 are errors.
  explicit Loader(Encoded set, LoaderOptions options = {});

  int64_t batches() const;   ///< in an epoch
  int64_t examples() const;  ///< in an epoch
  const Encoded& set() const { return set_; }
  /// 0 <= index < batches().
  Batch batch(int64_t epoch, int64_t index);

 private:
  void arrange(int64_t epoch);

  Encoded set_;
  LoaderOptions options_;
  int64_t epoch_ = -1;           // whose order `order_` and `starts_` hold
  std::vector<int64_t> order_;   // examples, batch after batch
  std::vector<int64_t> starts_;  // of the batches in order_
};

}  // namespace quatrain::data
