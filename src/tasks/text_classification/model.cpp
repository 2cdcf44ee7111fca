#include "tasks/text_classification/model.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "quatrain/data/loader.h"
#include "quatrain/train/session.h"
#include "support/text.h"
#include "tasks/task_parts.h"
#include "tasks/text_classification/options.h"
#include "tasks/words.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLeastPositions = 512;
constexpr int64_t kBatchTexts = 128;    // largest batch of predict() ..
constexpr int64_t kBatchTokens = 8192;  // .. and its padded size

}  // namespace

TextModel::TextModel(Recipe recipe, data::Vocabulary words, std::vector<std::string> names,
                     int64_t pretrained_width)
    : Model(std::move(recipe)), vocabulary(std::move(words)), labels(std::move(names)) {
  const auto& own = recipe_.own<TextOptions>();
  auto options = own.model;
  options.vocabulary_size(vocabulary.size())
      .classes(static_cast<int64_t>(labels.size()))
      .max_length(std::max(kLeastPositions, own.task.max_length))
      .pretrained_width(pretrained_width);
  classifier = models::TextClassifier(options);
}

at::Tensor TextModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(input.size() == 1 || input.size() == 2,
                    "text_classification: the input must be tokens (B, L), and padding (B, L) or none, got ",
                    input.size(), " tensors");
  return classifier->forward(input[0], input.size() == 2 ? input[1] : at::Tensor());
}

// (texts, labels), in their order. Texts of about equal length go together.
at::Tensor TextModel::probabilities(const std::vector<std::vector<int64_t>>& texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].size() < texts[b].size(); });
  at::Tensor result = at::empty({static_cast<int64_t>(texts.size()), static_cast<int64_t>(labels.size())});
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::vector<std::vector<int64_t>> batch;
    std::vector<int64_t> places;
    for (; end < order.size(); ++end) {
      const auto count = static_cast<int64_t>(batch.size());
      const auto length = static_cast<int64_t>(texts[order[end]].size());
      if (count > 0 && (count >= kBatchTexts || (count + 1) * length > kBatchTokens)) break;
      batch.push_back(texts[order[end]]);
      places.push_back(static_cast<int64_t>(order[end]));
    }
    const auto collated = data::collate(batch).to(train::device_of(*classifier));
    const at::Tensor logits = classifier->forward(collated.tokens, collated.padding);
    result.index_copy_(0, at::tensor(places, at::kLong), logits.to(at::kFloat).softmax(1).cpu());
  }
  return result;
}

std::vector<std::vector<int64_t>> TextModel::encode(const std::vector<std::string>& lines) const {
  const auto& own = recipe_.own<TextOptions>();
  const auto tokenizer = own.source.tokenizer.value_or(data::Tokenizer::whitespace);
  const auto longest = static_cast<size_t>(own.task.max_length);
  std::vector<std::vector<int64_t>> texts;
  for (const std::string& line : lines) {
    texts.push_back(vocabulary.encode(data::split(line, tokenizer)));
    if (longest > 0 && texts.back().size() > longest) texts.back().resize(longest);
  }
  return texts;
}

std::vector<at::Tensor> TextModel::inputs(const std::vector<std::string>& lines) {
  const auto batch = data::collate(encode(lines)).to(train::device_of(*classifier));
  return {batch.tokens, batch.padding};
}

std::vector<std::string> TextModel::predict(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  const at::Tensor all = probabilities(encode(lines));
  require_finite(all);
  return labelled(all, labels);
}

void TextModel::store(const fs::path& folder) const {
  store_words(folder, vocabulary, labels);
}

std::vector<std::string> TextModel::keeps_own(const fs::path& checkpoint) const {
  return head_of_other_labels(labels, checkpoint / kLabelsFile);
}

std::vector<int64_t> TextModel::head_rows(const fs::path& checkpoint) const {
  return rows_of_labels(labels, checkpoint / kLabelsFile);
}

// The weights of component-wise attention mean something else than those of real attention.
std::unique_ptr<Model> TextModel::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_alone();
  recipe.own<TextOptions>().model.algebra(algebra).attention(nn::AttentionKind::real);
  check(recipe);
  return std::make_unique<TextModel>(std::move(recipe), vocabulary, labels,
                                     classifier->options.pretrained_width());
}

}  // namespace quatrain::tasks
