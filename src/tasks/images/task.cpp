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
constexpr const char* kConfusions = ".confusions.tsv";

// Pictures of each class that were taken for each class: wrong answers before right ones, the most frequent
// first. What is not in it did not occur.
std::string confusion_table(const at::Tensor& counts, const std::vector<std::string>& classes) {
  const auto count = counts.accessor<int64_t, 2>();
  struct Line {
    bool right;
    int64_t count;
    std::string text;
  };
  std::vector<Line> lines;
  for (int64_t i = 0; i < counts.size(0); ++i)
    for (int64_t j = 0; j < counts.size(1); ++j)
      if (count[i][j] > 0)
        lines.push_back({i == j, count[i][j],
                         classes[static_cast<size_t>(i)] + "\t" + classes[static_cast<size_t>(j)] + "\t" +
                             std::to_string(count[i][j]) + "\n"});
  std::ranges::stable_sort(lines, {}, [](const Line& line) { return std::pair(line.right, -line.count); });
  std::string text = "class\tanswer\tcount\n";
  for (const auto& line : lines) text += line.text;
  return text;
}

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

double share(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
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
  return {F::cross_entropy(model_->forward({batch.images}), batch.labels), batch.size()};
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
  const at::Tensor counts = torch::zeros({classes, classes}, torch::kLong);
  auto count = counts.accessor<int64_t, 2>();
  train::Evaluation result;
  double loss = 0;
  int64_t near = 0;
  for (int64_t b = 0; b < loader.batches(); ++b) {
    const data::ImageBatch batch = loader.batch(0, b);
    const at::Tensor scores = model_->score(batch.images.to(train::device_of(model_->module()))).cpu();
    const at::Tensor wanted = batch.labels.unsqueeze(1);
    loss -= scores.gather(1, wanted).sum().item<double>();
    if (classes > kTop) near += (std::get<1>(scores.topk(kTop)) == wanted).sum().item<int64_t>();
    const at::Tensor best = scores.argmax(1);
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto target = batch.labels[i].item<int64_t>(), answer = best[i].item<int64_t>();
      result.targets.push_back(target);
      result.predictions.push_back(answer);
      ++count[target][answer];
    }
    if (after_batch) after_batch();
  }
  const int64_t all = loader.examples();
  auto& figures = result.figures;
  figures = {{"accuracy", share(counts.trace().item<int64_t>(), all)},
             {"loss", loss / static_cast<double>(all)},
             {"count", static_cast<double>(all)}};
  if (classes > kTop) figures["top5"] = share(near, all);
  for (int64_t i = 0; i < classes; ++i) {
    const auto of_class = counts[i].sum().item<int64_t>();
    if (of_class == 0) continue;
    const std::string group = "/class=" + model_->classes[static_cast<size_t>(i)];
    figures["accuracy" + group] = share(count[i][i], of_class);
    figures["count" + group] = static_cast<double>(of_class);
  }
  if (split == "test")
    result.files["test" + std::string(kConfusions)] = confusion_table(counts, model_->classes);
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
