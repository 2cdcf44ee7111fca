#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/length_batches.h"
#include "quatrain/data/loader.h"
#include "quatrain/data/text_pairs.h"
#include "quatrain/data/vocabulary.h"

namespace quatrain::data {

/// The words of both texts of all pairs, counted as Vocabulary::build does.
QUATRAIN_API Vocabulary vocabulary_of(const std::vector<TextPair>& pairs, Tokenizer tokenizer,
                                      const VocabularyOptions& options = {});

/// A set of text pairs as numbers. Texts longer than max_length are cut off there (0: no limit).
struct QUATRAIN_API EncodedTextPairs {
  Encoded first, second;  ///< labels and groups stand in both
  int64_t size() const { return first.size(); }
};
QUATRAIN_API EncodedTextPairs encode(const std::vector<TextPair>& pairs, Tokenizer tokenizer,
                                     const Vocabulary& vocabulary, int64_t max_length = 0);

/// What a model of pairs is given.
struct QUATRAIN_API TextPairBatch {
  at::Tensor first, second;      ///< (B, L) int64, kPad after the end
  at::Tensor labels;             ///< (B) int64
  std::vector<int64_t> indices;  ///< the pairs' places in their set
  int64_t words = 0;             ///< of both texts, padding not counted
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
};

/// Options of TextPairLoader.
struct QUATRAIN_API TextPairLoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = true;  ///< false: longest first, the same in each epoch
  uint64_t seed = 0;
  /// For each right answer to a question so many of its wrong ones, others in each epoch; 0: all. Questions
  /// without a right answer are left out.
  int64_t negatives = 0;
};

/// Batches of pairs of about equal length. Batch (epoch, index) is a function of the data, the options and
/// these two numbers alone. Not thread-safe.
class QUATRAIN_API TextPairLoader {
 public:
  /// An empty set and a batch size below 1 are errors.
  explicit TextPairLoader(std::shared_ptr<const EncodedTextPairs> set, TextPairLoaderOptions options = {});

  int64_t batches() const { return batches_->batches(); }    ///< in an epoch
  int64_t examples() const { return batches_->examples(); }  ///< in an epoch
  /// 0 <= index < batches().
  TextPairBatch batch(int64_t epoch, int64_t index);

 private:
  void arrange(int64_t epoch);

  std::shared_ptr<const EncodedTextPairs> set_;
  TextPairLoaderOptions options_;
  int64_t epoch_ = 0;           // whose pairs `drawn_` holds
  std::vector<int64_t> drawn_;  // places of the pairs that batches_ numbers
  std::unique_ptr<LengthBatches> batches_;
};

}  // namespace quatrain::data
