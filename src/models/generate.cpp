#include "quatrain/models/generate.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "models/sampler.h"
#include "models/share_out.h"
#include "nn/check.h"
#include "ops/memory/step_memory.h"
#include "quatrain/models/language_model_decoder.h"

namespace quatrain::models {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

constexpr int64_t kMostReserved = 4096;  // tokens that memory is taken for at once

// A text that goes on.
struct Text {
  size_t place;                 // among the prompts
  std::vector<int64_t> tokens;  // the prompt's last ones, and what follows
  size_t given;                 // of the prompt
  std::mt19937_64 random;

  double draw() { return static_cast<double>(random() >> 11) * 0x1p-53; }
};

class Generation {
 public:
  Generation(LanguageModel model, const GenerationOptions& options)
      : model_(std::move(model)),
        options_(options),
        device_(model_->inputs->embedding->parameters().front().device()),
        sampler_(options.sampling) {}

  void operator()(std::vector<Text> texts, std::vector<Continuation>& results) {
    const auto& o = options_;
    const ops::StepMemory memory;
    const ops::StepMemory::Guard of_all_steps(memory);
    LanguageModelDecoder decoder(model_, std::ssize(texts), o.context);
    parents_.resize(texts.size());
    std::iota(parents_.begin(), parents_.end(), 0);
    size_t start = 0;  // of the tokens that the decoder has, in each text
    while (!texts.empty()) {
      if (decoder.length() == o.context) {
        decoder.clear();
        start = texts.front().tokens.size() - static_cast<size_t>(std::max<int64_t>(o.context / 2, 1));
      }
      const size_t next = start + static_cast<size_t>(decoder.length()) + 1;
      const at::Tensor scores = step(decoder, texts, next - 1);
      const auto size = static_cast<size_t>(scores.size(1));
      double* row = scores.mutable_data_ptr<double>();
      parents_.clear();
      for (size_t i = 0; i < texts.size(); ++i, row += size) {
        Text& text = texts[i];
        if (text.tokens.size() == next && !goes_on(text, {row, size}, results[text.place])) continue;
        const size_t place = parents_.size();
        if (place != i) texts[place] = std::move(text);
        parents_.push_back(static_cast<int64_t>(i));
      }
      texts.erase(texts.begin() + std::ssize(parents_), texts.end());
    }
  }

 private:
  // Scores of what follows token `place` of each text, in double, on the CPU.
  at::Tensor step(LanguageModelDecoder& decoder, const std::vector<Text>& texts, size_t place) {
    tokens_.clear();
    for (const Text& text : texts) tokens_.push_back(text.tokens[place]);
    const auto move = [&](const std::vector<int64_t>& t) {
      return torch::tensor(t, torch::kLong).to(device_);
    };
    return decoder.step(move(tokens_), move(parents_)).to(torch::kDouble).cpu().contiguous();
  }

  // False where the text ends. What is never chosen loses its score.
  bool goes_on(Text& text, std::span<double> scores, Continuation& result) {
    for (const int64_t token : options_.never)
      if (token >= 0 && token < std::ssize(scores)) scores[static_cast<size_t>(token)] = kNever;
    const int64_t token = sampler_(scores, text.draw());
    result.finite = token >= 0;
    const bool ends = token < 0 || token == options_.end;
    if (!ends) text.tokens.push_back(token);
    if (!ends && std::ssize(text.tokens) - static_cast<int64_t>(text.given) < options_.tokens) return true;
    result.tokens.assign(text.tokens.begin() + static_cast<std::ptrdiff_t>(text.given), text.tokens.end());
    return false;
  }

  LanguageModel model_;
  const GenerationOptions& options_;
  at::Device device_;
  Sampler sampler_;
  std::vector<int64_t> tokens_, parents_;  // of a step, kept for their memory
};

}  // namespace

std::vector<Continuation> generate(LanguageModel model, const std::vector<std::vector<int64_t>>& prompts,
                                   const std::vector<uint64_t>& seeds, const GenerationOptions& options) {
  nn::require(!model->is_training(), "generate: the model must be in eval mode; call eval()");
  nn::require(seeds.size() == prompts.size(), "generate: there must be a seed for each of the ",
              prompts.size(), " prompts, got ", seeds.size());
  nn::require(options.context >= 1 && options.tokens >= 1,
              "generate: context and tokens must be at least 1, got ", options.context, " and ",
              options.tokens);
  check_sampling(options.sampling, "generate");
  for (const auto& prompt : prompts) nn::require(!prompt.empty(), "generate: every prompt must have a token");
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return prompts[a].size() > prompts[b].size(); });
  std::vector<Continuation> results(prompts.size());
  const auto count = static_cast<int64_t>(prompts.size());
  share_out((count + kExactRows - 1) / kExactRows, [&](int64_t batch) {
    std::vector<Text> texts;
    for (int64_t i = batch * kExactRows; i < std::min(count, (batch + 1) * kExactRows); ++i) {
      const size_t place = order[static_cast<size_t>(i)];
      const auto& prompt = prompts[place];
      const auto kept = std::min(static_cast<int64_t>(prompt.size()), options.context);
      Text& text =
          texts.emplace_back(Text{place, {}, static_cast<size_t>(kept), std::mt19937_64(seeds[place])});
      text.tokens.reserve(static_cast<size_t>(kept + std::min(options.tokens, kMostReserved)));
      text.tokens.assign(prompt.end() - kept, prompt.end());
    }
    Generation(model, options)(std::move(texts), results);
  });
  return results;
}

}  // namespace quatrain::models
