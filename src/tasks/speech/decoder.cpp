#include "tasks/speech/decoder.h"

#include <torch/types.h>

#include <set>
#include <string>
#include <vector>

namespace quatrain::tasks {
namespace {

class Ctc : public SpeechDecoder {
 public:
  Ctc(const SpeechModel& model, bool best_path) : model_(model), decoder_(model.ctc_options(best_path)) {}

  void push(const at::Tensor& scores) override { decoder_.push(scores.to(torch::kFloat).log_softmax(1)); }
  std::vector<HeardToken> heard() const override { return named(decoder_.best()); }
  std::vector<HeardAnswer> finish() override {
    std::vector<HeardAnswer> all;
    std::set<std::vector<std::string>> read;
    for (const auto& found : decoder_.finish()) {
      auto tokens = named(found);
      if (!tokens.empty() && is_gap(tokens.back())) tokens.pop_back();
      if (read.insert(texts_of(tokens)).second) all.push_back({std::move(tokens), found.score});
      if (static_cast<int64_t>(all.size()) == model_.own().decode.best) break;
    }
    return all;
  }

 private:
  // Between two characters one gap is as good as several, and before the first there is none.
  std::vector<HeardToken> named(const models::Recognition& found) const {
    std::vector<HeardToken> all;
    for (const auto& token : found.tokens) {
      HeardToken heard{model_.parts.classes.name(token.token), token.begin, token.end, token.confidence};
      if (!is_gap(heard) || !(all.empty() || is_gap(all.back()))) all.push_back(std::move(heard));
    }
    return all;
  }
  bool is_gap(const HeardToken& token) const { return model_.own().of_characters() && token.is_gap(); }
  const SpeechModel& model_;
  models::CtcDecoder decoder_;
};

class Frames : public SpeechDecoder {
 public:
  explicit Frames(const SpeechModel& model)
      : model_(model),
        search_(*model.parts.transitions, {.prior_scale = model.own().decode.prior_scale,
                                           .transition_scale = model.own().decode.transition_scale,
                                           .insertion = model.own().decode.insertion}) {}

  void push(const at::Tensor& scores) override { search_.push(scores.to(torch::kFloat).log_softmax(1)); }
  std::vector<HeardToken> heard() const override { return named(search_.result()); }
  std::vector<HeardAnswer> finish() override {
    const auto found = search_.finish();
    return {{named(found), found.score}};
  }

 private:
  std::vector<HeardToken> named(const models::Recognition& best) const {
    std::vector<HeardToken> all;
    for (const auto& token : best.tokens) {
      std::string text = SpeechClasses::scored(model_.own(), model_.parts.classes.name(token.token));
      if (!text.empty()) all.push_back({std::move(text), token.begin, token.end, token.confidence});
    }
    return all;
  }
  const SpeechModel& model_;
  models::FrameViterbi search_;
};

class Label : public SpeechDecoder {
 public:
  explicit Label(const SpeechModel& model) : model_(model) {}

  void push(const at::Tensor& scores) override {
    const at::Tensor sum = scores.to(torch::kDouble).sum(0);
    sum_ = sum_.defined() ? sum_ + sum : sum;
    frames_ += scores.size(0);
  }
  std::vector<HeardToken> heard() const override {
    if (frames_ == 0) return {};
    const auto [share, label] = (sum_ / static_cast<double>(frames_)).softmax(0).max(0);
    return {{model_.parts.classes.name(label.item<int64_t>()), 0, frames_, share.item<double>()}};
  }
  std::vector<HeardAnswer> finish() override {
    std::vector<HeardAnswer> all{{heard()}};
    sum_ = at::Tensor();
    frames_ = 0;
    return all;
  }

 private:
  const SpeechModel& model_;
  at::Tensor sum_;
  int64_t frames_ = 0;
};

}  // namespace

std::unique_ptr<SpeechDecoder> make_decoder(const SpeechModel& model, bool best_path) {
  switch (model.own().objective) {
    case Objective::ctc:
      return std::make_unique<Ctc>(model, best_path);
    case Objective::frames:
      return std::make_unique<Frames>(model);
    case Objective::utterance:
      break;
  }
  return std::make_unique<Label>(model);
}

}  // namespace quatrain::tasks
