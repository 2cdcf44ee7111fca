#include <torch/types.h>

#include <cmath>

#include "quatrain/models/frame_viterbi.h"

namespace quatrain::models {

FrameTransitions::FrameTransitions(int64_t classes, double smoothing)
    : classes_(classes), smoothing_(smoothing) {
  TORCH_CHECK_VALUE(classes > 0, "FrameTransitions: classes must be at least 1, got ", classes);
  TORCH_CHECK_VALUE(smoothing > 0 && std::isfinite(smoothing),
                    "FrameTransitions: smoothing must be a finite number above 0, got ", smoothing);
  transitions_ = torch::zeros({classes, classes}, torch::kLong);
  starts_ = torch::zeros({classes}, torch::kLong);
  ends_ = torch::zeros({classes}, torch::kLong);
  of_class_ = torch::zeros({classes}, torch::kLong);
}

void FrameTransitions::add(std::span<const int64_t> labels) {
  if (labels.empty()) return;
  for (size_t t = 0; t < labels.size(); ++t)
    TORCH_CHECK_INDEX(labels[t] >= 0 && labels[t] < classes_,
                      "FrameTransitions::add: labels must be from 0 to ", classes_ - 1, ", got ", labels[t],
                      " in frame ", t);
  auto* transitions = transitions_.mutable_data_ptr<int64_t>();
  for (size_t t = 1; t < labels.size(); ++t) ++transitions[labels[t - 1] * classes_ + labels[t]];
  ++starts_.mutable_data_ptr<int64_t>()[labels.front()];
  ++ends_.mutable_data_ptr<int64_t>()[labels.back()];
  auto* of_class = of_class_.mutable_data_ptr<int64_t>();
  for (const int64_t label : labels) ++of_class[label];
}

int64_t FrameTransitions::frames() const {
  return of_class_.sum().item<int64_t>();
}

// A class is followed by one of C classes, or by the end.
at::Tensor FrameTransitions::log_probabilities() const {
  const auto sums = of_class_.to(torch::kDouble) + smoothing_ * static_cast<double>(classes_ + 1);
  return ((transitions_.to(torch::kDouble) + smoothing_) / sums.unsqueeze(1)).log();
}

at::Tensor FrameTransitions::ends() const {
  const auto sums = of_class_.to(torch::kDouble) + smoothing_ * static_cast<double>(classes_ + 1);
  return ((ends_.to(torch::kDouble) + smoothing_) / sums).log();
}

at::Tensor FrameTransitions::starts() const {
  const auto smoothed = starts_.to(torch::kDouble) + smoothing_;
  return (smoothed / smoothed.sum()).log();
}

at::Tensor FrameTransitions::priors() const {
  const auto smoothed = of_class_.to(torch::kDouble) + smoothing_;
  return (smoothed / smoothed.sum()).log();
}

at::Tensor FrameTransitions::seen() const {
  return frames() > 0 ? of_class_ > 0 : torch::ones_like(of_class_, torch::kBool);
}

std::map<std::string, at::Tensor> FrameTransitions::state() const {
  return {{"transitions", transitions_.clone()}, {"starts", starts_.clone()}, {"ends", ends_.clone()}};
}

void FrameTransitions::load(const std::map<std::string, at::Tensor>& state) {
  const auto get = [&](const char* name, const std::vector<int64_t>& sizes) {
    const auto found = state.find(name);
    TORCH_CHECK(found != state.end(), "FrameTransitions::load: there is no tensor '", name, "'");
    const auto& tensor = found->second;
    TORCH_CHECK(tensor.sizes() == sizes && tensor.scalar_type() == torch::kLong, "FrameTransitions::load: '",
                name, "' must be ", torch::kLong, " of ", at::IntArrayRef(sizes), ", got ",
                tensor.scalar_type(), " of ", tensor.sizes());
    TORCH_CHECK((tensor >= 0).all().item<bool>(), "FrameTransitions::load: '", name, "' must be counts, got ",
                tensor.min().item<int64_t>());
    return tensor.to(torch::kCPU).clone(at::MemoryFormat::Contiguous);
  };
  const auto transitions = get("transitions", {classes_, classes_});
  const auto starts = get("starts", {classes_}), ends = get("ends", {classes_});
  // Each frame has a frame or the start before it, and a frame or the end behind it.
  const auto before = transitions.sum(0) + starts, behind = transitions.sum(1) + ends;
  if (!before.equal(behind)) {
    const auto label = (before != behind).nonzero()[0][0].item<int64_t>();
    TORCH_CHECK(false, "FrameTransitions::load: the tensors are no counts of utterances: label ", label,
                " comes in ", before[label].item<int64_t>(), " frames by what is before it, and in ",
                behind[label].item<int64_t>(), " by what is behind");
  }
  transitions_ = transitions;
  starts_ = starts;
  ends_ = ends;
  of_class_ = behind;
}

}  // namespace quatrain::models
