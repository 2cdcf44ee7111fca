#include "tasks/images/task.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "quatrain/nn/parameters.h"
#include "quatrain/train/session.h"
#include "tasks/images/kind.h"

namespace quatrain::tasks {
namespace {

namespace F = torch::nn::functional;

constexpr int64_t kTop = 5;
constexpr int64_t kReduction = 8;  // rows of a picture for one of the last stage

// A batch norm needs two values of each channel. One picture gives the last stage so many as it has pixels.
void check_last_batch(const ImageModel& model, int64_t pictures) {
  const Recipe& recipe = model.recipe();
  const int64_t side = model.own().side(), last = (pictures - 1) % recipe.batch + 1;
  if (last == 1 && side <= kReduction && model.own().model.residual() != models::Residual::fixup)
    recipe.refuse("train.batch",
                  "= " + std::to_string(recipe.batch) + " leaves one of the " + std::to_string(pictures) +
                      " pictures alone in the last batch, and where pictures have at most " +
                      std::to_string(kReduction) + " rows a batch norm needs two; take another number");
}

// A line for each picture; a name may hold what ends a column or a line.
std::string answers_of(const train::Evaluation& found, const std::vector<std::string>& files,
                       const std::vector<std::string>& classes) {
  std::string lines = "file\tclass\tanswer\n";
  for (size_t i = 0; i < files.size(); ++i) {
    std::string file = files[i];
    std::ranges::replace_if(
        file, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    lines += file + "\t" + classes[static_cast<size_t>(found.targets[i])] + "\t" +
             classes[static_cast<size_t>(found.predictions[i])] + "\n";
  }
  return lines;
}

}  // namespace

ImageTask::ImageTask(std::shared_ptr<ImageModel> model, std::shared_ptr<const ImageSets> sets,
                     Checksums checksums)
    : model_(std::move(model)), sets_(std::move(sets)), checksums_(std::move(checksums)) {
  const auto train = sets_->find("train");
  if (train == sets_->end()) return;
  check_last_batch(*model_, train->second.size());
  train_.emplace(train->second, loading(model_->recipe(), model_->scale(), /*training=*/true));
}

train::BatchLoss ImageTask::loss(int64_t epoch, int64_t index) {
  const data::ImageBatch batch = train_->batch(epoch, index).to(train::device_of(model_->module()));
  const auto options = F::CrossEntropyFuncOptions().label_smoothing(model_->own().label_smoothing);
  return {F::cross_entropy(model_->forward({batch.images}), batch.labels, options), batch.size()};
}

std::string ImageTask::describe_batch(int64_t epoch, int64_t index) {
  return train::Task::describe_batch(epoch, index) + ": training pictures " +
         list_of(train_->batch(epoch, index).indices);
}

train::Selection ImageTask::selection() const {
  return selection_by(images().about().figures.front());
}

train::Evaluation ImageTask::evaluate(std::string_view split, const std::function<void()>& after_batch) {
  const auto found = sets_->find(split);
  TORCH_CHECK(found != sets_->end(), "images: the data have no '", split, "' set");
  data::ImageLoader loader(found->second, loading(model_->recipe(), model_->scale(), /*training=*/false));
  const auto classes = static_cast<int64_t>(model_->classes.size());
  train::Evaluation result;
  double loss = 0;
  int64_t near = 0;
  for (int64_t b = 0; b < loader.batches(); ++b) {
    const data::ImageBatch batch = loader.batch(0, b);
    const at::Tensor scores = model_->score(batch.images.to(train::device_of(model_->module()))).cpu();
    const at::Tensor wanted = batch.labels.unsqueeze(1);
    loss -= scores.gather(1, wanted).sum().item<double>();
    if (classes > kTop) near += (std::get<1>(scores.topk(kTop)) == wanted).sum().item<int64_t>();
    const at::Tensor best = scores.argmax(1), labels = batch.labels.contiguous();
    const auto append = [](std::vector<int64_t>& to, const at::Tensor& numbers) {
      to.insert(to.end(), numbers.const_data_ptr<int64_t>(),
                numbers.const_data_ptr<int64_t>() + numbers.numel());
    };
    append(result.predictions, best);
    append(result.targets, labels);
    if (after_batch) after_batch();
  }
  add_label_figures(result, split, model_->classes, "class");
  const bool training = train_ && split == "dev";
  if (const auto& files = found->second.names; !training && !files.empty())
    result.files[std::string(split) + ".answers.tsv"] = answers_of(result, files, model_->classes);
  const auto all = static_cast<double>(std::max<int64_t>(loader.examples(), 1));
  result.figures["loss"] = loss / all;
  if (classes > kTop) result.figures["top5"] = static_cast<double>(near) / all;
  return result;
}

void ImageTask::store(const std::filesystem::path& folder) const {
  model_->store(folder);
  store_checksums(checksums_, folder);
}

train::Figures ImageTask::facts() {
  const int64_t layers =
      nn::parameter_report(model_->module()).total - nn::parameter_report(*model_->network->head).total;
  return {{"encoder_parameters", static_cast<double>(layers)},
          {"classes", static_cast<double>(model_->classes.size())},
          {"train_examples", static_cast<double>(train_ ? train_->examples() : 0)}};
}

}  // namespace quatrain::tasks
