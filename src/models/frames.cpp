#include "models/frames.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

namespace quatrain::models {
namespace {

// By so much a sum of rounded probabilities may be above 1.
constexpr double kRounding = 1e-2;

}  // namespace

at::Tensor check_frames(const char* function, const at::Tensor& log_probabilities) {
  TORCH_CHECK(log_probabilities.dim() == 2 && log_probabilities.size(1) > 0, function,
              ": log-probabilities must be (frames, classes), got ", log_probabilities.sizes());
  TORCH_CHECK(log_probabilities.is_floating_point(), function,
              ": log-probabilities must be floating-point numbers, got ", log_probabilities.scalar_type());
  const auto scores = log_probabilities.detach().to(torch::kCPU, torch::kDouble).contiguous();
  if (scores.size(0) == 0) return scores;
  const auto finite = scores.isfinite();
  if (!finite.all().item<bool>()) {
    const auto place = (~finite).nonzero()[0];
    TORCH_CHECK(false, function, ": log-probabilities must be finite, got ",
                scores[place[0]][place[1]].item<double>(), " for class ", place[1].item<int64_t>(),
                " in frame ", place[0].item<int64_t>(), "; did the model's training diverge?");
  }
  const double most = scores.max().item<double>();
  TORCH_CHECK(most <= kRounding, function, ": log-probabilities must be at most 0, got ", most,
              "; apply log_softmax to logits");
  return scores;
}

Link::Link(RecognisedToken token, std::shared_ptr<Link> before) : token(token), before(std::move(before)) {}

// One by one: a long list would otherwise need a deep stack.
Link::~Link() {
  while (before && before.use_count() == 1) before = std::exchange(before->before, nullptr);
}

void Path::stay(int64_t frame, double probability) {
  last.end = frame + 1;
  last.confidence += probability;
}

Path Path::with(int64_t token, int64_t frame, double probability) const {
  return {score,
          {token, frame, frame + 1, probability},
          last.token < 0 ? nullptr : std::make_shared<Link>(last, before)};
}

std::vector<RecognisedToken> Path::tokens() const {
  std::vector<RecognisedToken> all;
  if (last.token >= 0) all.push_back(last);
  for (const Link* link = before.get(); link; link = link->before.get()) all.push_back(link->token);
  std::reverse(all.begin(), all.end());
  for (RecognisedToken& token : all)
    token.confidence = std::min(1.0, token.confidence / static_cast<double>(token.end - token.begin));
  return all;
}

}  // namespace quatrain::models
