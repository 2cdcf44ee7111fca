#include "tasks/language_model/task.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "quatrain/models/score_text.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/train/session.h"

namespace quatrain::tasks {

LanguageTask::LanguageTask(std::shared_ptr<TextPredictor> model, std::shared_ptr<const TextSets> sets,
                           std::shared_ptr<const Checksums> checksums, bool only_scored)
    : model_(std::move(model)), sets_(std::move(sets)), checksums_(std::move(checksums)) {
  const auto train = sets_->find("train");
  if (train != sets_->end() && !only_scored)
    loader_.emplace(train->second.text, model_->recipe().batch, model_->own().windows.window);
}

train::BatchLoss LanguageTask::loss(int64_t epoch, int64_t index) {
  const auto batch = loader_->batch(epoch, index).to(train::device_of(model_->module()));
  auto& network = model_->network;
  const at::Tensor scores = network->scores(network->hidden(batch.tokens).flatten(0, 1));
  return {torch::nn::functional::cross_entropy(scores, batch.following.flatten()), batch.tokens.numel()};
}

std::string LanguageTask::describe_batch(int64_t epoch, int64_t index) {
  const int64_t window = model_->own().windows.window, columns = model_->recipe().batch;
  const int64_t last = std::min((index + 1) * window, loader_->tokens() / columns) - 1;
  return train::Task::describe_batch(epoch, index) + ": tokens " + std::to_string(index * window) + " to " +
         std::to_string(last) + " of each of the training text's " + std::to_string(columns) + " columns";
}

train::Selection LanguageTask::selection() const {
  return selection_by(model_->recipe().selecting());
}

train::Evaluation LanguageTask::evaluate(std::string_view split, const std::function<void()>& after_batch) {
  const auto found = sets_->find(split);
  TORCH_CHECK(found != sets_->end(), "language_model: the data have no '", split, "' set");
  const TextSet& set = found->second;
  const auto score = models::score_text(model_->network, (*set.text)[0], model_->own().windows, after_batch);
  train::Evaluation result;
  result.figures["loss"] = -score.log_probability / static_cast<double>(score.tokens);
  result.figures["perplexity"] = std::exp(result.figures["loss"]);
  result.figures["count"] = static_cast<double>(score.tokens);
  if (!data::is_of_words(model_->pieces.kind()))  // else perplexities are of words already
    result.figures["word_perplexity"] = std::exp(-score.log_probability / static_cast<double>(set.words));
  return result;
}

void LanguageTask::store(const std::filesystem::path& folder) const {
  model_->store(folder);
  store_checksums(*checksums_, folder);
}

train::Figures LanguageTask::facts() {
  const nn::ParameterReport report = nn::parameter_report(model_->module());
  const auto train = sets_->find("train");
  return {{"encoder_parameters", static_cast<double>(report.encoder)},
          {"vocabulary_size", static_cast<double>(model_->pieces.size())},
          {"train_tokens", static_cast<double>(train == sets_->end() ? 0 : train->second.text->numbers())}};
}

}  // namespace quatrain::tasks
