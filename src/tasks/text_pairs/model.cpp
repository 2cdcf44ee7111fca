#include "tasks/text_pairs/model.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>

#include "quatrain/nn/parameters.h"
#include "quatrain/train/session.h"
#include "support/numbers.h"
#include "tasks/text_pairs/options.h"
#include "tasks/words.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAnsweredPairs = 128;

models::PairAttention make_attention(const PairModelOptions& own, int64_t words, int64_t word_width,
                                     int64_t classes) {
  return models::PairAttention(models::PairAttentionOptions(words, classes)
                                   .width(own.width)
                                   .layers(own.layers)
                                   .word_width(word_width)
                                   .train_words(own.train_words)
                                   .attention(own.attention)
                                   .shared_comparison(own.shared_comparison)
                                   .dropout(own.dropout)
                                   .algebra(own.algebra)
                                   .initialiser(own.initialiser)
                                   .padding_id(data::Vocabulary::kPad));
}

models::PairEncoder make_encoder(const PairModelOptions& own, int64_t words, int64_t word_width,
                                 int64_t classes) {
  models::PairEncoderOptions options(words, classes, word_width, own.width);
  options.train_words(own.train_words)
      .compared(own.compared)
      .classifier_width(own.classifier_width)
      .classifier_dropout(own.dropout)
      .padding_id(data::Vocabulary::kPad);
  options.algebra(own.algebra);
  options.initialiser(own.initialiser);
  options.dropout(own.dropout);
  options.sizes.layers = own.layers;
  options.sizes.bidirectional = own.bidirectional;
  return models::PairEncoder(options);
}

}  // namespace

TextPairModel::TextPairModel(Recipe recipe, data::Vocabulary words, std::vector<std::string> names,
                             int64_t word_width)
    : Model(std::move(recipe)),
      vocabulary(std::move(words)),
      labels(std::move(names)),
      word_width_(word_width) {
  const PairModelOptions& own = recipe_.own<TextPairTaskOptions>().model;
  const int64_t classes = ranked() ? 1 : static_cast<int64_t>(labels.size());
  if (own.network == PairNetwork::attention)
    attention_ = make_attention(own, vocabulary.size(), word_width, classes);
  else
    encoder_ = make_encoder(own, vocabulary.size(), word_width, classes);
}

bool TextPairModel::ranked() const {
  return recipe_.own<TextPairTaskOptions>().ranked();
}

data::Tokenizer TextPairModel::tokenizer() const {
  return recipe_.own<TextPairTaskOptions>().source.tokenizer.value_or(data::Tokenizer::whitespace);
}

int64_t TextPairModel::layer_parameters() const {
  if (encoder_) return nn::parameter_report(*encoder_->encoder).total;
  const nn::ParameterReport all = nn::parameter_report(*attention_);
  return all.total - all.embeddings;
}

torch::nn::Module& TextPairModel::module() {
  if (attention_) return *attention_;
  return *encoder_;
}

at::Tensor TextPairModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(
      input.size() == 2,
      "text_pairs: the input must be the words of the first and of the second texts (B, L), got ",
      input.size(), " tensors");
  return attention_ ? attention_->forward(input[0], input[1]) : encoder_->forward(input[0], input[1]);
}

void TextPairModel::set_words(const at::Tensor& vectors) {
  if (attention_)
    attention_->set_words(vectors);
  else
    encoder_->set_words(vectors);
}

at::Tensor TextPairModel::logits(std::shared_ptr<const data::EncodedTextPairs> pairs,
                                 const std::function<void()>& after_batch) {
  data::TextPairLoaderOptions options;
  options.batch_size = kAnsweredPairs;
  options.shuffle = false;
  at::Tensor all = at::empty({pairs->size(), ranked() ? 1 : static_cast<int64_t>(labels.size())});
  data::TextPairLoader loader(std::move(pairs), options);
  const at::Device device = train::device_of(module());
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const auto batch = loader.batch(0, i);
    const at::Tensor found = forward({batch.first.to(device), batch.second.to(device)});
    all.index_copy_(0, at::tensor(batch.indices, at::kLong), found.to(at::kFloat).cpu());
    if (after_batch) after_batch();
  }
  return all;
}

std::string TextPairModel::line_problem(const std::string& line) const {
  if (const auto tabs = std::count(line.begin(), line.end(), '\t'); tabs != 1)
    return "a line must be two texts with one tab between, got " + counted(tabs, "tab");
  const size_t tab = line.find('\t');
  if (const auto problem = data::word_problem(line.substr(0, tab), tokenizer()); !problem.empty())
    return "the first text " + problem;
  if (const auto problem = data::word_problem(line.substr(tab + 1), tokenizer()); !problem.empty())
    return "the second text " + problem;
  return {};
}

std::shared_ptr<const data::EncodedTextPairs> TextPairModel::encode(
    const std::vector<std::string>& lines) const {
  std::vector<data::TextPair> pairs;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (const std::string problem = line_problem(lines[i]); !problem.empty()) throw LineError(i, problem);
    const size_t tab = lines[i].find('\t');
    data::TextPair& pair = pairs.emplace_back();
    pair.first = lines[i].substr(0, tab);
    pair.second = lines[i].substr(tab + 1);
  }
  return std::make_shared<data::EncodedTextPairs>(
      data::encode(pairs, tokenizer(), vocabulary, recipe_.own<TextPairTaskOptions>().max_length));
}

std::vector<at::Tensor> TextPairModel::inputs(const std::vector<std::string>& lines) {
  const auto pairs = encode(lines);
  std::vector<std::vector<int64_t>> first, second;
  for (int64_t i = 0; i < pairs->size(); ++i) {
    first.push_back(pairs->first.text(i));
    second.push_back(pairs->second.text(i));
  }
  const at::Device device = train::device_of(module());
  return {data::collate(first).tokens.to(device), data::collate(second).tokens.to(device)};
}

std::vector<std::string> TextPairModel::predict(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  at::Tensor all = logits(encode(lines));
  all = ranked() ? at::cat({(-all).sigmoid(), all.sigmoid()}, 1) : all.softmax(1);
  require_finite(all);
  return labelled(all, labels);
}

void TextPairModel::store(const fs::path& folder) const {
  store_words(folder, vocabulary, labels);
}

std::vector<std::string> TextPairModel::keeps_own(const fs::path& checkpoint) const {
  auto modules = head_of_other_labels(labels, checkpoint / kLabelsFile);
  if (!recipe_.own<TextPairTaskOptions>().model.train_words)
    modules.emplace_back("words.embedding");  // which are the data's, with the run's vectors among them
  return modules;
}

std::vector<int64_t> TextPairModel::head_rows(const fs::path& checkpoint) const {
  return ranked() ? std::vector<int64_t>{} : rows_of_labels(labels, checkpoint / kLabelsFile);
}

// Behind attention the numbers a and b are compared as a, b, ab and a - b: another algebra has other
// products, in other places, which no weight makes up for.
std::unique_ptr<Model> TextPairModel::in_algebra(const std::string& algebra) const {
  if (attention_)
    throw std::invalid_argument(
        "a model with model.network = attention cannot be converted to another algebra, because the words' "
        "products are others there: train one with --set 'model.algebra=" +
        algebra + "'");
  Recipe recipe = recipe_alone();
  recipe.own<TextPairTaskOptions>().model.algebra = algebra;
  check(recipe);
  return std::make_unique<TextPairModel>(std::move(recipe), vocabulary, labels, word_width_);
}

}  // namespace quatrain::tasks
