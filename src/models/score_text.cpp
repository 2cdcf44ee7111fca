#include "quatrain/models/score_text.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "models/share_out.h"
#include "nn/check.h"
#include "support/parts.h"

namespace quatrain::models {
namespace {

constexpr int64_t kBatchTokens = 4096;       // of the windows that are read together
constexpr int64_t kBatchScores = 1LL << 22;  // 16 MiB: scores that are in memory together

// It reads the tokens from `begin` to `end`, and scores what follows those from `first` on.
struct Window {
  int64_t begin, first, end;
  bool like(const Window& other) const {
    return end - begin == other.end - other.begin && first - begin == other.first - other.begin;
  }
};

// The windows of a text. They are not kept: with a stride of 1 there are as many as tokens.
class Windows {
 public:
  Windows(int64_t predicted, const WindowOptions& options)
      : predicted_(predicted),
        window_(options.window),
        stride_(options.stride > 0 ? options.stride : options.window) {}

  int64_t size() const {
    if (predicted_ == 0) return 0;
    return 1 + count_parts(std::max<int64_t>(predicted_ - window_, 0), stride_);
  }
  Window operator[](int64_t i) const { return {i * stride_, i == 0 ? 0 : end(i - 1), end(i)}; }

 private:
  int64_t end(int64_t i) const { return std::min(i * stride_ + window_, predicted_); }

  int64_t predicted_, window_, stride_;
};

double score_windows(LanguageModel& model, std::span<const int32_t> text, std::span<const Window> windows) {
  const auto rows = static_cast<int64_t>(windows.size());
  const int64_t length = windows[0].end - windows[0].begin, scored = windows[0].end - windows[0].first;
  const at::Tensor tokens = torch::empty({rows, length}, torch::kLong),
                   following = torch::empty({rows, scored}, torch::kLong);
  const auto copy = [&](const at::Tensor& to, int64_t row, int64_t from, int64_t count) {
    const auto part = text.subspan(static_cast<size_t>(from), static_cast<size_t>(count));
    std::copy(part.begin(), part.end(), to.mutable_data_ptr<int64_t>() + row * count);
  };
  for (int64_t row = 0; row < rows; ++row) {
    const Window& window = windows[static_cast<size_t>(row)];
    copy(tokens, row, window.begin, length);
    copy(following, row, window.first + 1, scored);
  }
  const at::Device device = model->inputs->embedding->parameters().front().device();
  const at::Tensor hidden = model->hidden(tokens.to(device)).narrow(1, length - scored, scored);
  at::Tensor scores = model->scores(hidden.flatten(0, 1));
  if (scores.scalar_type() != torch::kDouble) scores = scores.to(torch::kFloat);
  const at::Tensor chosen = scores.gather(1, following.view({-1, 1}).to(device)).squeeze(1);
  // In place: another tensor of this size would be memory that the system gives and takes back each time.
  const at::Tensor best = scores.amax(1, /*keepdim=*/true);
  const at::Tensor sums = scores.sub_(best).exp_().sum(1).log() + best.squeeze(1);
  return (chosen - sums).sum(torch::kDouble).item<double>();
}

}  // namespace

TextScore score_text(LanguageModel model, std::span<const int32_t> text, const WindowOptions& options,
                     const std::function<void()>& after_batch) {
  nn::require(!model->is_training(), "score_text: the model must be in eval mode; call eval()");
  nn::require(options.window >= 1 && options.stride >= 0 && options.stride <= options.window,
              "score_text: window must be at least 1 and stride between 0 and window, got ", options.window,
              " and ", options.stride);
  const torch::NoGradGuard no_grad;
  TextScore result;
  result.tokens = std::max<int64_t>(static_cast<int64_t>(text.size()) - 1, 0);
  const Windows windows(result.tokens, options);
  for (int64_t i = 0; i < windows.size();) {
    std::vector<Window> some{windows[i++]};
    const int64_t length = some[0].end - some[0].begin, scored = some[0].end - some[0].first;
    const int64_t most = std::max<int64_t>(
        std::min(kBatchTokens / length, kBatchScores / (scored * model->options.vocabulary_size())), 1);
    while (std::ssize(some) < most && i < windows.size() && windows[i].like(some[0]))
      some.push_back(windows[i++]);
    result.log_probability += score_windows(model, text, some);
    if (after_batch) after_batch();
  }
  return result;
}

std::vector<TextScore> score_texts(LanguageModel model, const std::vector<std::vector<int32_t>>& texts,
                                   const WindowOptions& options) {
  std::vector<TextScore> results(texts.size());
  share_out(static_cast<int64_t>(texts.size()), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    results[place] = score_text(model, texts[place], options);
  });
  return results;
}

}  // namespace quatrain::models
