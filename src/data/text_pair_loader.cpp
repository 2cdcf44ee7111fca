#include "quatrain/data/text_pair_loader.h"

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <algorithm>
#include <map>

#include "data/random.h"

namespace quatrain::data {
namespace {

Example example_of(const TextPair& pair, const std::string& text) {
  return {text, pair.label, pair.group};
}

// Every right answer with so many wrong ones to the same question.
std::vector<int64_t> drawn_answers(const Encoded& set, int64_t negatives, uint64_t seed, int64_t epoch) {
  struct Question {
    std::vector<int64_t> right, wrong;
  };
  std::map<int64_t, Question> questions;
  for (int64_t i = 0; i < set.size(); ++i) {
    Question& question = questions[set.groups[static_cast<size_t>(i)]];
    (set.labels[static_cast<size_t>(i)] == 1 ? question.right : question.wrong).push_back(i);
  }
  Random random(seed, static_cast<uint64_t>(epoch));
  std::vector<int64_t> drawn;
  for (auto& [number, question] : questions) {
    random.shuffle(question.wrong);
    const size_t count =
        std::min(question.wrong.size(), question.right.size() * static_cast<size_t>(negatives));
    drawn.insert(drawn.end(), question.right.begin(), question.right.end());
    drawn.insert(drawn.end(), question.wrong.begin(), question.wrong.begin() + static_cast<int64_t>(count));
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace

Vocabulary vocabulary_of(const std::vector<TextPair>& pairs, Tokenizer tokenizer,
                         const VocabularyOptions& options) {
  std::vector<Example> texts;
  texts.reserve(2 * pairs.size());
  for (const auto& pair : pairs)
    for (const std::string* text : {&pair.first, &pair.second}) texts.push_back(example_of(pair, *text));
  return Vocabulary::build(texts, tokenizer, options);
}

EncodedTextPairs encode(const std::vector<TextPair>& pairs, Tokenizer tokenizer, const Vocabulary& vocabulary,
                        int64_t max_length) {
  std::vector<Example> first, second;
  for (const auto& pair : pairs) {
    first.push_back(example_of(pair, pair.first));
    second.push_back(example_of(pair, pair.second));
  }
  return {encode(first, tokenizer, vocabulary, max_length),
          encode(second, tokenizer, vocabulary, max_length)};
}

TextPairLoader::TextPairLoader(std::shared_ptr<const EncodedTextPairs> set, TextPairLoaderOptions options)
    : set_(std::move(set)), options_(options) {
  TORCH_CHECK(set_->size() > 0, "TextPairLoader: the set must hold at least one pair, got none");
  TORCH_CHECK(options_.batch_size >= 1, "TextPairLoader: batch_size must be at least 1, got ",
              options_.batch_size);
  arrange(0);
}

void TextPairLoader::arrange(int64_t epoch) {
  if (batches_ && (options_.negatives == 0 || epoch == epoch_)) return;
  if (options_.negatives > 0) {
    drawn_ = drawn_answers(set_->first, options_.negatives, options_.seed, epoch);
    TORCH_CHECK(!drawn_.empty(), "TextPairLoader: no question has a right answer to be trained with");
  } else {
    drawn_.resize(static_cast<size_t>(set_->size()));
    for (size_t i = 0; i < drawn_.size(); ++i) drawn_[i] = static_cast<int64_t>(i);
  }
  std::vector<LengthBatches::Lengths> lengths;
  for (const int64_t i : drawn_) {
    const int64_t first = set_->first.length(i), second = set_->second.length(i);
    lengths.push_back({std::max(first, second), first, second});
  }
  LengthBatchOptions batching;
  batching.most = options_.batch_size;
  batching.shuffle = options_.shuffle;
  batching.seed = options_.seed;
  batches_ = std::make_unique<LengthBatches>(lengths, batching);
  epoch_ = epoch;
}

TextPairBatch TextPairLoader::batch(int64_t epoch, int64_t index) {
  arrange(epoch);
  TextPairBatch batch;
  std::vector<std::vector<int64_t>> first, second;
  std::vector<int64_t> labels;
  for (const int64_t place : batches_->batch(epoch, index)) {
    const int64_t i = drawn_[static_cast<size_t>(place)];
    batch.indices.push_back(i);
    first.push_back(set_->first.text(i));
    second.push_back(set_->second.text(i));
    labels.push_back(set_->first.labels[static_cast<size_t>(i)]);
    batch.words += set_->first.length(i) + set_->second.length(i);
  }
  batch.first = collate(first).tokens;
  batch.second = collate(second).tokens;
  batch.labels = torch::tensor(labels, torch::kInt64);
  return batch;
}

}  // namespace quatrain::data
