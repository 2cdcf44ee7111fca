#include "quatrain/models/frame_viterbi.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "models/frames.h"

namespace quatrain::models {
namespace {

std::vector<double> numbers(const at::Tensor& tensor) {
  const auto values = tensor.contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

void check_scale(const char* function, const char* name, double value) {
  TORCH_CHECK_VALUE(std::isfinite(value), function, ": ", name, " must be a finite number, got ", value);
}

}  // namespace

struct FrameViterbi::Tables {
  int64_t classes;
  std::vector<double> starts, ends, priors;  // (C), scaled; infinite priors of what was never seen
  std::vector<double> transitions;           // (C, C), scaled: [to, from]
  std::vector<double> most;                  // (C): of each row of them, without staying
};

// Of each label the best path that ends with it; none before the first frame.
struct FrameViterbi::Paths {
  std::vector<Path> best;
  int64_t frames = 0;

  void advance(const Tables& tables, const double* frame);
};

FrameViterbi::FrameViterbi(const FrameTransitions& transitions, const ViterbiOptions& options)
    : paths_(std::make_unique<Paths>()) {
  check_scale("FrameViterbi", "prior_scale", options.prior_scale);
  check_scale("FrameViterbi", "transition_scale", options.transition_scale);
  check_scale("FrameViterbi", "insertion", options.insertion);
  const auto change = options.insertion * (1 - torch::eye(transitions.classes(), torch::kDouble));
  const auto into = (transitions.log_probabilities() * options.transition_scale + change).t();
  const auto staying = torch::eye(transitions.classes(), torch::kBool);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto most = into.masked_fill(staying, -kInfinity).amax(1);
  const auto priors =
      (transitions.priors() * options.prior_scale).masked_fill(~transitions.seen(), kInfinity);
  tables_ = std::make_unique<Tables>(Tables{
      transitions.classes(), numbers(transitions.starts() * options.transition_scale),
      numbers(transitions.ends() * options.transition_scale), numbers(priors), numbers(into), numbers(most)});
}
FrameViterbi::~FrameViterbi() = default;
FrameViterbi::FrameViterbi(FrameViterbi&&) noexcept = default;
FrameViterbi& FrameViterbi::operator=(FrameViterbi&&) noexcept = default;

void FrameViterbi::Paths::advance(const Tables& tables, const double* frame) {
  const auto classes = static_cast<size_t>(tables.classes);
  std::vector<Path> next(classes);
  // The best first: from one on, no path can reach what another has reached. Few are looked at.
  std::vector<size_t> order(best.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return best[a].score > best[b].score; });
  for (size_t to = 0; to < classes; ++to) {
    const auto label = static_cast<int64_t>(to);
    const double probability = std::exp(frame[to]);
    Path& path = next[to];
    if (best.empty()) {
      path.score = tables.starts[to];
      path.last = {label, frames, frames + 1, probability};
    } else {
      const double* scores = tables.transitions.data() + to * classes;
      size_t from = to;
      double most = best[to].score + scores[to];
      for (const size_t i : order) {
        if (best[i].score + tables.most[to] < most) break;
        const double score = best[i].score + scores[i];
        // Of equals staying is chosen, then the first.
        if (score > most || (score == most && from != to && i < from)) most = score, from = i;
      }
      if (from == to) {
        path = best[to];
        path.stay(frames, probability);
      } else {
        path = best[from].with(label, frames, probability);
      }
      path.score = most;
    }
    path.score += frame[to] - tables.priors[to];
  }
  best = std::move(next);
  ++frames;
}

void FrameViterbi::push(const at::Tensor& log_posteriors) {
  const auto frames = check_frames("FrameViterbi", log_posteriors);
  TORCH_CHECK_VALUE(frames.size(1) == tables_->classes, "FrameViterbi: the transitions are those of ",
                    tables_->classes, " classes, got log-probabilities of ", frames.size(1));
  const double* data = frames.const_data_ptr<double>();
  for (int64_t t = 0; t < frames.size(0); ++t) paths_->advance(*tables_, data + t * tables_->classes);
}

Recognition FrameViterbi::result() const {
  const auto& paths = paths_->best;
  if (paths.empty()) return {};
  const auto best = std::max_element(paths.begin(), paths.end(),
                                     [](const Path& a, const Path& b) { return a.score < b.score; });
  return {best->tokens(), best->score};
}

Recognition FrameViterbi::finish() {
  for (size_t i = 0; i < paths_->best.size(); ++i) paths_->best[i].score += tables_->ends[i];
  Recognition best = result();
  paths_ = std::make_unique<Paths>();
  return best;
}

Recognition viterbi(const at::Tensor& log_posteriors, const FrameTransitions& transitions,
                    const ViterbiOptions& options) {
  FrameViterbi search(transitions, options);
  search.push(log_posteriors);
  return search.finish();
}

at::Tensor scaled_likelihoods(const at::Tensor& log_posteriors, const FrameTransitions& transitions,
                              double prior_scale) {
  check_scale("scaled_likelihoods", "prior_scale", prior_scale);
  TORCH_CHECK(log_posteriors.dim() >= 1 && log_posteriors.size(-1) == transitions.classes() &&
                  log_posteriors.is_floating_point(),
              "scaled_likelihoods: log-posteriors must be floating-point numbers (..., ",
              transitions.classes(), "), got ", log_posteriors.scalar_type(), " of ", log_posteriors.sizes());
  const at::Tensor priors = (transitions.priors() * prior_scale).to(log_posteriors.options());
  return (log_posteriors - priors)
      .masked_fill(~transitions.seen().to(log_posteriors.device()), kUnseenLikelihood);
}

}  // namespace quatrain::models
