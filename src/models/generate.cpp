#include "quatrain/models/generate.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "models/share_out.h"
#include "nn/check.h"
#include "ops/memory/step_memory.h"
#include "quatrain/models/language_model_decoder.h"

namespace quatrain::models {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void check(const SamplingOptions& options, const char* function) {
  nn::require(options.temperature >= 0, function, ": temperature must be at least 0, got ",
              options.temperature);
  nn::require(options.top_k >= 0, function, ": top_k must be at least 0, got ", options.top_k);
  nn::require(options.top_p > 0 && options.top_p <= 1, function,
              ": top_p must be above 0 and at most 1, got ", options.top_p);
}

// A text that goes on.
struct Text {
  size_t place;                 // among the prompts
  std::vector<int64_t> tokens;  // the prompt's last ones, and what follows
  std::mt19937_64 random;

  double draw() { return static_cast<double>(random() >> 11) * 0x1p-53; }
};

class Generation {
 public:
  Generation(LanguageModel model, const GenerationOptions& options)
      : model_(std::move(model)),
        options_(options),
        device_(model_->inputs->embedding->parameters().front().device()) {}

  void operator()(std::vector<Text> texts, std::vector<Continuation>& results) {
    const auto& o = options_;
    const ops::StepMemory memory;
    const ops::StepMemory::Guard of_all_steps(memory);
    const auto rows = static_cast<int64_t>(texts.size());
    LanguageModelDecoder decoder(model_, rows, o.context);
    std::vector<int64_t> parents(texts.size());
    std::iota(parents.begin(), parents.end(), 0);
    size_t start = 0;  // of the tokens that the decoder has, in each text
    while (!texts.empty()) {
      if (decoder.length() == o.context) {
        decoder = LanguageModelDecoder(model_, rows, o.context);
        start = texts.front().tokens.size() - static_cast<size_t>(std::max<int64_t>(o.context / 2, 1));
      }
      const size_t next = start + static_cast<size_t>(decoder.length()) + 1;
      const at::Tensor scores = step(decoder, texts, parents, next - 1);
      const double* row = scores.const_data_ptr<double>();
      parents.clear();
      std::vector<Text> living;
      for (size_t i = 0; i < texts.size(); ++i, row += scores.size(1)) {
        Text& text = texts[i];
        if (text.tokens.size() == next && !goes_on(text, row, scores.size(1), results[text.place])) continue;
        parents.push_back(static_cast<int64_t>(i));
        living.push_back(std::move(text));
      }
      texts = std::move(living);
    }
  }

 private:
  // Scores of what follows token `place` of each text, in double, on the CPU.
  at::Tensor step(LanguageModelDecoder& decoder, const std::vector<Text>& texts,
                  const std::vector<int64_t>& parents, size_t place) const {
    std::vector<int64_t> tokens;
    for (const Text& text : texts) tokens.push_back(text.tokens[place]);
    const auto move = [&](const std::vector<int64_t>& t) {
      return torch::tensor(t, torch::kLong).to(device_);
    };
    return decoder.step(move(tokens), move(parents)).to(torch::kDouble).cpu().contiguous();
  }

  // False where the text ends.
  bool goes_on(Text& text, const double* row, int64_t size, Continuation& result) const {
    std::vector<double> scores(row, row + size);
    for (const int64_t token : options_.never)
      if (token >= 0 && token < size) scores[static_cast<size_t>(token)] = kNever;
    const int64_t token = sample(scores, options_.sampling, text.draw());
    result.finite = token >= 0;
    if (token < 0 || token == options_.end) return false;
    text.tokens.push_back(token);
    result.tokens.push_back(token);
    return static_cast<int64_t>(result.tokens.size()) < options_.tokens;
  }

  LanguageModel model_;
  const GenerationOptions& options_;
  at::Device device_;
};

}  // namespace

int64_t sample(const std::vector<double>& scores, const SamplingOptions& options, double draw) {
  check(options, "sample");
  for (const double score : scores)
    if (std::isnan(score) || score == -kNever) return -1;
  const auto best = std::max_element(scores.begin(), scores.end());
  if (best == scores.end() || *best == kNever) return -1;
  if (options.temperature == 0) return best - scores.begin();
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](int64_t token) { return scores[static_cast<size_t>(token)]; };
  const auto better = [&](int64_t a, int64_t b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(order.size())) {
    std::nth_element(order.begin(), order.begin() + options.top_k, order.end(), better);
    order.resize(static_cast<size_t>(options.top_k));
  }
  std::sort(order.begin(), order.end(), better);
  std::vector<double> sums;  // of the weights, the best first
  double sum = 0;
  for (const int64_t token : order)
    sums.push_back(sum += std::exp((score(token) - *best) / options.temperature));
  const auto below = [&](double limit) {  // the place of the first that reaches it
    return std::min(std::lower_bound(sums.begin(), sums.end(), limit), sums.end() - 1);
  };
  if (options.top_p < 1) sums.erase(below(options.top_p * sum) + 1, sums.end());
  const auto chosen = std::upper_bound(sums.begin(), sums.end(), draw * sums.back());
  return order[static_cast<size_t>(std::min(chosen, sums.end() - 1) - sums.begin())];
}

std::vector<Continuation> generate(LanguageModel model, const std::vector<std::vector<int64_t>>& prompts,
                                   const std::vector<uint64_t>& seeds, const GenerationOptions& options) {
  nn::require(!model->is_training(), "generate: the model must be in eval mode; call eval()");
  nn::require(seeds.size() == prompts.size(), "generate: there must be a seed for each of the ",
              prompts.size(), " prompts, got ", seeds.size());
  nn::require(options.context >= 1 && options.tokens >= 1,
              "generate: context and tokens must be at least 1, got ", options.context, " and ",
              options.tokens);
  check(options.sampling, "generate");
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
      texts.push_back({place, {prompt.end() - kept, prompt.end()}, std::mt19937_64(seeds[place])});
    }
    Generation(model, options)(std::move(texts), results);
  });
  return results;
}

}  // namespace quatrain::models
