#include "tasks/speech/recogniser.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "quatrain/train/session.h"

namespace quatrain::tasks {
namespace {

void shift(std::vector<HeardToken>& tokens, int64_t rows) {
  for (auto& token : tokens) token.begin += rows, token.end += rows;
}

}  // namespace

ScoreStream::ScoreStream(SpeechModel& model) : model_(&model) {
  const auto& own = model.own();
  piece_ = std::max<int64_t>(1, std::llround(own.decode.piece / own.row_seconds()));
  context_ = std::llround(own.decode.context / own.row_seconds());
  features_ = torch::zeros({0, own.components() * own.bank.bands}, torch::kFloat);
  rows_ = data::RecentRows(own.inputs());
}

at::Tensor ScoreStream::push(const at::Tensor& features) {
  features_ = torch::cat({features_, features});
  const int64_t stack = model_->own().stack, whole = features_.size(0) / stack * stack;
  const at::Tensor rows = model_->stacked(features_.narrow(0, 0, whole));
  features_ = features_.narrow(0, whole, features_.size(0) - whole).clone();
  if (!model_->network->options.bidirectional()) return score(rows);
  rows_.append(rows);
  return score_pieces(/*last=*/false);
}

at::Tensor ScoreStream::finish() {
  const at::Tensor rest = model_->stacked(features_);  // filled up with zeros
  at::Tensor scores;
  if (model_->network->options.bidirectional()) {
    rows_.append(rest);
    scores = score_pieces(/*last=*/true);
  } else {
    scores = score(rest);
  }
  *this = ScoreStream(*model_);
  return scores;
}

at::Tensor ScoreStream::score(const at::Tensor& rows) {
  const at::Tensor x = rows.to(train::device_of(*model_->network));
  if (rows.size(0) == 0) return torch::zeros({0, model_->network->options.classes()});
  return model_->network->advance(x, state_).cpu();
}

at::Tensor ScoreStream::score_pieces(bool last) {
  std::vector<at::Tensor> all{torch::zeros({0, model_->network->options.classes()})};
  for (;;) {
    const int64_t end = rows_.end();
    const bool rest = last && end <= scored_ + piece_ + context_;
    if (scored_ == end || (!rest && end <= scored_ + piece_ + context_)) break;
    const int64_t until = rest ? end : scored_ + piece_;
    const int64_t from = std::max(rows_.begin(), scored_ - context_), to = std::min(end, until + context_);
    const at::Tensor heard = rows_.kept()
                                 .narrow(0, from - rows_.begin(), to - from)
                                 .unsqueeze(1)
                                 .to(train::device_of(*model_->network));
    const at::Tensor scores = model_->network->forward(heard).squeeze(1).cpu();
    all.push_back(scores.narrow(0, scored_ - from, until - scored_).to(torch::kFloat));
    scored_ = until;
    rows_.forget_before(scored_ - context_);
  }
  return torch::cat(all);
}

Recogniser::Recogniser(SpeechModel& model, int64_t rate, const data::Normalisation* by)
    : model_(model), by_(by), features_(model.own(), rate), scores_(model), decoder_(make_decoder(model)) {}

void Recogniser::hear(const at::Tensor& features) {
  decode(scores_.push(by_ ? by_->apply(features) : features));
}

void Recogniser::decode(const at::Tensor& scores) {
  if (scores.size(0) == 0) return;
  require_finite(scores.unsqueeze(0));
  rows_ += scores.size(0);
  decoder_->push(scores);
}

void Recogniser::push(const at::Tensor& samples) {
  features_.push(samples, [this](const at::Tensor& features) { hear(features); });
}

std::vector<HeardAnswer> Recogniser::finish() {
  features_.finish([this](const at::Tensor& features) { hear(features); });
  decode(scores_.finish());
  auto answers = end_utterance();
  before_ = 0;
  return answers;
}

std::vector<HeardToken> Recogniser::heard() const {
  auto tokens = decoder_->heard();
  shift(tokens, before_);
  return tokens;
}

std::vector<HeardAnswer> Recogniser::end_utterance() {
  auto answers = decoder_->finish();
  for (auto& answer : answers) shift(answer.tokens, before_);
  before_ += std::exchange(rows_, 0);
  scores_.forget();
  return answers;
}

}  // namespace quatrain::tasks
