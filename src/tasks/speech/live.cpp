#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "ops/memory/step_memory.h"
#include "support/stopwatch.h"
#include "tasks/speech/model.h"
#include "tasks/speech/news.h"
#include "tasks/speech/recogniser.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kAgain = "= ";  // before an answer of which told words are others now

class SpeechLive : public Live {
 public:
  SpeechLive(SpeechModel& model, int64_t rate)
      : model_(model),
        rate_(rate),
        training_(model.training_normalisation()),
        recogniser_(model, rate, model.own().normalise == NormaliseBy::training ? &training_ : nullptr) {}
  std::vector<std::string> push(const at::Tensor& samples) override {
    const Stopwatch work;
    const ops::StepMemory::Guard memory(memory_);
    std::vector<std::string> lines;
    const bool pauses = model_.own().decode.endpoint > 0;  // which are looked for ten times a second
    for (const at::Tensor& part :
         samples.split(std::max<int64_t>(1, pauses ? rate_ / 10 : samples.size(0)))) {
      samples_ += part.size(0);
      recogniser_.push(part);
      const auto heard = recogniser_.heard();
      if (std::string news = told_of(heard); !news.empty()) lines.push_back(std::move(news));
      if (!pauses || !is_over(heard)) continue;
      lines.push_back(model_.written(recogniser_.end_utterance(), length()));
      lines.emplace_back();
      told_.clear();
      ended_ = true;
    }
    model_.count(static_cast<double>(samples.size(0)) / static_cast<double>(rate_), work.seconds());
    return lines;
  }
  std::string finish() override {
    const Stopwatch work;
    const auto heard = recogniser_.finish();
    const bool silent = heard.front().tokens.empty();
    if (silent) model_.require_heard("the sound", samples_);
    std::string answer = silent && ended_ ? "" : model_.written(heard, length());
    model_.count(0, work.seconds());
    told_.clear();
    samples_ = 0;
    ended_ = false;
    return answer;
  }

 private:
  double length() const { return static_cast<double>(samples_) / static_cast<double>(rate_); }

  // That something was said, and then nothing for the seconds of decode.endpoint.
  bool is_over(const std::vector<HeardToken>& heard) const {
    const auto last =
        std::find_if(heard.rbegin(), heard.rend(), [](const auto& one) { return !one.is_gap(); });
    if (last == heard.rend()) return false;
    const auto& own = model_.own();
    const int64_t silent = recogniser_.end() - last->end;
    return static_cast<double>(silent) * own.row_seconds() >= own.decode.endpoint;
  }

  // Not the whole answer, which would be repeated as long as somebody speaks.
  std::string told_of(const std::vector<HeardToken>& heard) {
    const auto now = settled(heard);
    auto [tokens, again] =
        news_of(told_, now, [this](const HeardToken& a, const HeardToken& b) { return same(a, b); });
    if (!again && model_.own().of_characters()) {
      const auto first = std::ranges::find_if_not(tokens, &HeardToken::is_gap);
      tokens = tokens.subspan(static_cast<size_t>(first - tokens.begin()));
    }
    std::string line = again ? kAgain : "";
    if (again || !tokens.empty()) line += model_.written(tokens, length());
    told_.assign(now.begin(), now.end());
    return line;
  }

  // What may still grow waits for what follows it: a word of characters, and the time of a token.
  std::span<const HeardToken> settled(std::span<const HeardToken> heard) const {
    size_t waiting = 0;
    if (model_.own().of_characters())
      waiting = static_cast<size_t>(std::ranges::find_if(heard.rbegin(), heard.rend(), &HeardToken::is_gap) -
                                    heard.rbegin()) +
                1;
    else if (model_.own().decode.times && model_.own().objective != Objective::utterance)
      waiting = 1;
    return heard.first(heard.size() - std::min(waiting, heard.size()));
  }

  // That two tokens read the same in an answer.
  bool same(const HeardToken& a, const HeardToken& b) const {
    constexpr double kWritten = 1e4;  // of a probability
    const auto& own = model_.own();
    return a.text == b.text && (!own.decode.times || (a.begin == b.begin && a.end == b.end)) &&
           (own.objective != Objective::utterance ||
            std::llround(a.confidence * kWritten) == std::llround(b.confidence * kWritten));
  }

  SpeechModel& model_;
  int64_t rate_;
  int64_t samples_ = 0;           // so far
  bool ended_ = false;            // an utterance, before the recording
  std::vector<HeardToken> told_;  // of the answer
  data::Normalisation training_;
  ops::StepMemory memory_;  // of a push: features, network and scores
  Recogniser recogniser_;
};

}  // namespace

std::unique_ptr<Live> SpeechModel::listen(int64_t rate) {
  if (own().source.stored_features)
    throw RecipeError("a run of stored features (features.source) cannot hear sound");
  if (own().model.bidirectional())
    throw RecipeError(
        "a bidirectional model needs the end of a recording before it can answer: train one with "
        "model.bidirectional = false, or pass the whole file");
  if (own().normalise != NormaliseBy::training && own().normalise != NormaliseBy::none)
    throw RecipeError("features.normalise = " + std::string(name(own().normalise)) +
                      " needs the whole recording before it can answer: train with features.normalise = "
                      "training, or pass the whole file");
  return std::make_unique<SpeechLive>(*this, rate > 0 ? rate : own().bank.rate);
}

}  // namespace quatrain::tasks
