#include "tasks/text_pairs/task.h"

#include <torch/enum.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <array>
#include <cmath>
#include <cstdio>

#include "quatrain/nn/parameters.h"
#include "quatrain/scores/ranking.h"
#include "quatrain/train/session.h"

namespace quatrain::tasks {
namespace {

namespace F = torch::nn::functional;

constexpr int64_t kWhole = 1'000'000'000;  // shares of a question are counted in billionths

struct Question {
  std::string name;
  std::vector<scores::Candidate> candidates;
};

// In the data's order.
std::map<int64_t, Question> by_question(const TextPairSets::Set& set, const at::Tensor& logits) {
  std::map<int64_t, Question> questions;
  const auto score = logits.accessor<float, 2>();
  for (int64_t i = 0; i < set.encoded->size(); ++i) {
    const auto place = static_cast<size_t>(i);
    Question& question = questions[set.encoded->first.groups[place]];
    question.name = set.questions[place];
    question.candidates.push_back({score[i][0], set.encoded->first.labels[place] == 1, set.documents[place]});
  }
  return questions;
}

void add_ranking(const TextPairSets::Set& set, const at::Tensor& logits, const std::string& split,
                 train::Evaluation& result) {
  struct Figure {
    const char *name, *of_a_question;
    double scores::RankingScores::*value;
    double sum = 0;
    train::ExampleCounts counts{{of_a_question, "units"}, {}};
  };
  std::array<Figure, 3> figures{{{"map", "average_precision", &scores::RankingScores::average_precision},
                                 {"mrr", "reciprocal_rank", &scores::RankingScores::reciprocal_rank},
                                 {"precision_at_1", "precision", &scores::RankingScores::precision_at_1}}};
  std::string lines = "question\tdocument\trelevance\tscore\n";
  const auto questions = by_question(set, logits);
  for (const auto& [number, question] : questions) {
    const auto scores = scores::score_ranking(question.candidates);
    for (auto& figure : figures) {
      figure.sum += scores.*figure.value;
      figure.counts.examples.push_back({std::llround(scores.*figure.value * kWhole), kWhole});
    }
    for (const auto& candidate : question.candidates) {
      std::array<char, 64> score{};
      std::snprintf(score.data(), score.size(), "\t%d\t%.9g\n", candidate.relevant ? 1 : 0,
                    static_cast<double>(candidate.score));
      lines += question.name + "\t" + candidate.document + score.data();
    }
  }
  const auto count = static_cast<double>(questions.size());
  for (auto& figure : figures) {
    result.figures[figure.name] = figure.sum / count;
    result.counts[figure.name] = std::move(figure.counts);
  }
  result.figures["questions"] = count;
  result.files[split + ".ranking.tsv"] = std::move(lines);
}

}  // namespace

TextPairTask::TextPairTask(std::shared_ptr<TextPairModel> model, std::shared_ptr<const TextPairSets> sets)
    : model_(std::move(model)), sets_(std::move(sets)) {
  if (const auto train = sets_->sets.find("train"); train != sets_->sets.end())
    loader_.emplace(train->second.encoded, training_pairs(model_->recipe()));
}

at::Tensor TextPairTask::losses(const at::Tensor& logits, const at::Tensor& labels) const {
  if (model_->ranked())
    return at::binary_cross_entropy_with_logits(logits.squeeze(1), labels.to(logits.scalar_type()), {}, {},
                                                at::Reduction::None);
  return F::cross_entropy(logits, labels, F::CrossEntropyFuncOptions().reduction(torch::kNone));
}

train::BatchLoss TextPairTask::loss(int64_t epoch, int64_t index) {
  const auto batch = loader_->batch(epoch, index);
  const at::Device device = train::device_of(model());
  const at::Tensor logits = model_->forward({batch.first.to(device), batch.second.to(device)});
  return {losses(logits.to(at::kFloat), batch.labels.to(device)).mean(), batch.size()};
}

std::string TextPairTask::describe_batch(int64_t epoch, int64_t index) {
  return train::Task::describe_batch(epoch, index) + ": training pairs " +
         list_of(loader_->batch(epoch, index).indices);
}

train::Selection TextPairTask::selection() const {
  return selection_by(model_->recipe().selecting());
}

train::Evaluation TextPairTask::evaluate(std::string_view split, const std::function<void()>& after_batch) {
  const auto found = sets_->sets.find(split);
  TORCH_CHECK(found != sets_->sets.end(), "text_pairs: the data have no '", split, "' set");
  const TextPairSets::Set& set = found->second;
  const std::vector<int64_t>& targets = set.encoded->first.labels;
  const std::vector<int64_t>& groups = set.encoded->first.groups;
  const at::Tensor logits = model_->logits(set.encoded, after_batch);
  const at::Tensor answers = model_->ranked() ? logits.squeeze(1).gt(0).to(at::kLong) : logits.argmax(1);
  const auto* answer = answers.const_data_ptr<int64_t>();

  train::Evaluation result;
  result.predictions.assign(answer, answer + answers.numel());
  result.targets = targets;
  add_label_figures(result, split, sets_->labels);
  const data::Majority majority = data::majority(targets, groups);
  auto& figures = result.figures;
  figures["loss"] = losses(logits, at::tensor(targets, at::kLong)).mean().item<double>();
  figures["majority"] = majority.overall.share();
  if (!sets_->groups.empty())  // of ranked answers a group is a question
    add_group_figures(result, groups, majority, [&](int64_t group) {
      return sets_->group_name + "=" + sets_->groups[static_cast<size_t>(group)];
    });
  if (model_->ranked()) add_ranking(set, logits, std::string(split), result);
  return result;
}

void TextPairTask::store(const std::filesystem::path& folder) const {
  model_->store(folder);
  store_checksums(sets_->checksums, folder);
}

train::Figures TextPairTask::facts() {
  const auto train = sets_->sets.find("train");
  return {
      {"encoder_parameters", static_cast<double>(model_->layer_parameters())},
      {"vocabulary_size", static_cast<double>(model_->vocabulary.size())},
      {"train_pairs", static_cast<double>(train == sets_->sets.end() ? 0 : train->second.encoded->size())}};
}

}  // namespace quatrain::tasks
