#include "tasks/copy_memory/data.h"

#include <torch/enum.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "quatrain/train/session.h"
#include "support/parts.h"
#include "tasks/copy_memory/kind.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

constexpr int64_t kScored = 200;  // sequences scored at a time

// Streams of numbers that have nothing to do with each other: dev, test, and every batch of training.
enum class Stream : uint64_t { dev, test, train };

// Symbols (recall, count), a function of the arguments alone.
at::Tensor draw(const CopyMemoryOptions& own, Stream stream, uint64_t number, int64_t count) {
  const uint64_t seed = (own.seed * 3 + static_cast<uint64_t>(stream)) * 0x9e3779b97f4a7c15u + number;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return torch::randint(own.symbols, {count, own.recall}, generator, torch::kLong).t();
}

bool is_split(std::string_view name) {
  return name == "train" || name == "dev" || name == "test";
}

at::Tensor split_of(const CopyMemoryOptions& own, std::string_view split) {
  if (split == "train") return draw(own, Stream::train, 0, std::min<int64_t>(own.train, kScored));
  return split == "dev" ? draw(own, Stream::dev, 0, own.dev) : draw(own, Stream::test, 0, own.test);
}

class CopyMemory : public train::Task {
 public:
  explicit CopyMemory(std::shared_ptr<CopyMemoryModel> model) : model_(std::move(model)) {}

  torch::nn::Module& model() override { return model_->module(); }

  int64_t batches() const override {
    const int64_t size = model_->recipe().batch;
    return count_parts(model_->own().train, size);
  }

  train::BatchLoss loss(int64_t epoch, int64_t index) override {
    const int64_t size = model_->recipe().batch, count = std::min(size, model_->own().train - index * size);
    const auto number = static_cast<uint64_t>(epoch * batches() + index);
    const at::Tensor symbols =
        draw(model_->own(), Stream::train, number, count).to(train::device_of(model_->module()));
    const at::Tensor scores = model_->forward({symbols});
    return {torch::nn::functional::cross_entropy(scores.flatten(0, 1).to(at::kFloat),
                                                 model_->targets(symbols).flatten()),
            count};
  }

  bool has(std::string_view split) const override { return is_split(split); }

  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override {
    const auto& own = model_->own();
    const at::Tensor all = split_of(own, split);
    double loss = 0;
    train::Evaluation result;
    auto& counts = result.counts["accuracy"];
    counts.columns = {"right", "symbols"};
    int64_t right = 0;
    for (const at::Tensor& part : all.split(kScored, 1)) {
      const at::Tensor symbols = part.to(train::device_of(model_->module()));
      const at::Tensor scores = model_->forward({symbols}).to(at::kFloat), wanted = model_->targets(symbols);
      loss += torch::nn::functional::cross_entropy(
                  scores.flatten(0, 1), wanted.flatten(),
                  torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
                  .item<double>();
      const at::Tensor hits =
          (scores.narrow(0, own.steps() - own.recall, own.recall).argmax(2) == symbols).sum(0).cpu();
      for (int64_t i = 0; i < hits.size(0); ++i) {
        counts.examples.push_back({hits[i].item<int64_t>(), own.recall});
        right += counts.examples.back()[0];
      }
      if (after_batch) after_batch();
    }
    const auto sequences = static_cast<double>(all.size(1));
    result.figures = {
        {"accuracy", static_cast<double>(right) / (sequences * static_cast<double>(own.recall))},
        {"loss", loss / (sequences * static_cast<double>(own.steps()))},
        {"count", sequences}};
    return result;
  }

  train::Selection selection() const override { return selection_by(copy_memory().about().figures.front()); }
  std::string recipe() const override { return to_toml(model_->recipe()); }

 private:
  std::shared_ptr<CopyMemoryModel> model_;
};

}  // namespace

bool CopyMemoryData::has(std::string_view split) const {
  return is_split(split);
}

std::vector<Input> CopyMemoryData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                          int64_t count) const {
  const auto& own = recipe.own<CopyMemoryOptions>();
  std::vector<Input> inputs;
  for (const at::Tensor& part : split_of(own, split).split(size, 1))
    if (static_cast<int64_t>(inputs.size()) < count) inputs.push_back({{part}, part.size(1) * own.steps()});
  return inputs;
}

std::unique_ptr<Model> CopyMemoryData::make_model(const Recipe& recipe) const {
  return std::make_unique<CopyMemoryModel>(recipe);
}

std::unique_ptr<train::Task> CopyMemoryData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<CopyMemory>(std::dynamic_pointer_cast<CopyMemoryModel>(std::move(model)));
}

}  // namespace quatrain::tasks
