#include "quatrain/data/normalisation.h"

#include <torch/types.h>

#include "support/enum_names.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<NormalisationScale, 2> kScales{
    {{NormalisationScale::component, "component"}, {NormalisationScale::quaternion, "quaternion"}}};

// Beside 1 + mean^2: what is below it is the rounding of features that are constant.
constexpr double kNoVariance = 1e-10;

}  // namespace

const char* name(NormalisationScale scale) {
  return name_of(kScales, scale);
}
NormalisationScale parse_normalisation_scale(std::string_view text) {
  return parse_name(kScales, "normalisation: scale", text);
}

Normalisation::Normalisation(int64_t bands, int64_t components, NormalisationScale scale)
    : bands_(bands), components_(components), kind_(scale) {
  TORCH_CHECK(bands > 0 && components > 0, "normalisation: bands and components must be at least 1, got ",
              bands, " and ", components);
  mean_ = torch::zeros({components, bands}, torch::kDouble);
  squares_ = torch::zeros({components, bands}, torch::kDouble);
}

void Normalisation::check(const char* function, const at::Tensor& features) const {
  TORCH_CHECK(features.dim() == 2 && features.size(1) == components_ * bands_, "Normalisation::", function,
              ": features must be (frames, ", components_ * bands_, "), ", components_, " components of ",
              bands_, " bands, got ", features.sizes());
}

void Normalisation::add(const at::Tensor& features) {
  check("add", features);
  const int64_t count = features.size(0);
  if (count == 0) return;
  const auto x = features.detach().to(torch::kDouble).view({count, components_, bands_});
  const auto mean = x.mean(0);
  const auto difference = mean - mean_;
  const auto before = static_cast<double>(frames_), added = static_cast<double>(count);
  squares_ += (x - mean).square().sum(0) + difference.square() * (before * added / (before + added));
  mean_ += difference * (added / (before + added));
  frames_ += count;
}

at::Tensor Normalisation::mean() const {
  return mean_.flatten();
}

at::Tensor Normalisation::scale() const {
  TORCH_CHECK(frames_ > 0,
              "Normalisation: no frames were added or loaded, so that there is no mean and no scale");
  auto variance = squares_ / static_cast<double>(frames_);
  auto size = 1 + mean_.square();
  if (kind_ == NormalisationScale::quaternion) {
    variance = variance.mean(0, /*keepdim=*/true).expand_as(squares_);
    size = size.mean(0, /*keepdim=*/true);
  }
  return torch::where(variance > kNoVariance * size, variance.rsqrt(), torch::ones_like(variance)).flatten();
}

at::Tensor Normalisation::apply(const at::Tensor& features) const {
  check("apply", features);
  return (features - mean().to(torch::kFloat)) * scale().to(torch::kFloat);
}

std::map<std::string, at::Tensor> Normalisation::state() const {
  return {{"frames", torch::tensor({frames_})}, {"mean", mean_.clone()}, {"squares", squares_.clone()}};
}

void Normalisation::load(const std::map<std::string, at::Tensor>& state) {
  const auto get = [&](const char* name, at::ScalarType type, const std::vector<int64_t>& sizes) {
    const auto found = state.find(name);
    TORCH_CHECK(found != state.end(), "Normalisation::load: there is no tensor '", name, "'");
    const auto& tensor = found->second;
    TORCH_CHECK(tensor.sizes() == sizes && tensor.scalar_type() == type, "Normalisation::load: '", name,
                "' must be ", type, " of ", at::IntArrayRef(sizes), ", got ", tensor.scalar_type(), " of ",
                tensor.sizes());
    return tensor;
  };
  const auto frames = get("frames", torch::kLong, {1}).item<int64_t>();
  const auto mean = get("mean", torch::kDouble, {components_, bands_});
  const auto squares = get("squares", torch::kDouble, {components_, bands_});
  TORCH_CHECK(frames >= 0 && mean.isfinite().all().item<bool>() && squares.isfinite().all().item<bool>() &&
                  (squares >= 0).all().item<bool>(),
              "Normalisation::load: the tensors are no sums over frames: frames is ", frames,
              ", or a mean is not finite, or a sum of squares is negative or not finite");
  frames_ = frames;
  mean_ = mean.clone();
  squares_ = squares.clone();
}

}  // namespace quatrain::data
