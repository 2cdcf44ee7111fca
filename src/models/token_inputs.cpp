#include "quatrain/models/token_inputs.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "nn/check.h"
#include "ops/transforms.h"
#include "quatrain/models/positions.h"
#include "support/enum_names.h"

namespace quatrain::models {

namespace {

constexpr EnumNames<Positions, 2> kPositions{
    {{Positions::sinusoidal, "sinusoidal"}, {Positions::learned, "learned"}}};

bool is_plain_float(const at::Tensor& t) {
  return ops::is_plain(t) && t.scalar_type() == at::kFloat && t.is_contiguous() &&
         !(at::GradMode::is_enabled() && t.requires_grad());
}

constexpr int64_t kFewValues = 1 << 15;  // that are not worth a thread

/// x scale + places, in x, with the bits of ATen's operators, which round twice: a decoder asks for a few
/// words at each step, and they would be a tenth of its time with a small model.
[[gnu::optimize("fp-contract=off")]] void place_words(at::Tensor& x, float scale, const at::Tensor& places) {
  auto* to = x.mutable_data_ptr<float>();
  const auto* const place = places.const_data_ptr<float>();
  const int64_t texts = x.size(0), values = places.numel();
  for (int64_t text = 0; text < texts; ++text, to += values)
    for (int64_t i = 0; i < values; ++i) {
      const float scaled = to[i] * scale;
      to[i] = scaled + place[i];
    }
}

}  // namespace

const char* name(Positions positions) {
  return name_of(kPositions, positions);
}
Positions parse_positions(std::string_view text) {
  return parse_name(kPositions, "positions", text);
}

TokenInputsImpl::TokenInputsImpl(TokenInputsOptions options) : options(std::move(options)) {
  nn::require(this->options.max_length() >= 1, "TokenInputs: max_length must be at least 1, got ",
              this->options.max_length());
  nn::require_probability("TokenInputs", "dropout", this->options.dropout());
  TokenInputsImpl::reset();
}

void TokenInputsImpl::reset() {
  embedding = register_module(
      "embedding", nn::Embedding(nn::EmbeddingOptions(options.tokens(), options.width()).like(options)));
  if (options.positions() == Positions::sinusoidal) {
    sinusoids_ = sinusoidal_positions(options.max_length(), options.width());
    return;
  }
  positions = register_module("positions", torch::nn::Embedding(options.max_length(), options.width()));
  const at::NoGradGuard no_grad;
  positions->weight.normal_(0, options.scale() ? 1 : 1 / std::sqrt(static_cast<double>(options.width())));
}

void TokenInputsImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::TokenInputs(" << options.tokens() << " x " << options.width()
         << ", positions=" << models::name(options.positions()) << ")";
}

at::Tensor TokenInputsImpl::places(int64_t first, int64_t length) const {
  if (options.positions() == Positions::learned) {
    TORCH_CHECK(first + length <= options.max_length(), "TokenInputs: positions are learned for ",
                options.max_length(), " tokens, got a text of ", first + length,
                "; cut it, or take positions = sinusoidal");
    return positions->weight.narrow(0, first, length);
  }
  if (first + length <= options.max_length()) return sinusoids_.narrow(0, first, length);
  return sinusoidal_positions(length, options.width(), first);
}

at::Tensor TokenInputsImpl::forward(const at::Tensor& tokens, int64_t first) {
  TORCH_CHECK(tokens.dim() == 2, "TokenInputs: tokens must be (batch, length), got ", tokens.sizes());
  at::Tensor x = embedding->forward(tokens);
  const double scale = options.scale() ? std::sqrt(static_cast<double>(options.width())) : 1;
  const at::Tensor of_places = places(first, tokens.size(1));
  const bool watched = ops::in_function_transform() || torch::jit::tracer::isTracing();
  if (!is_training() && !watched && x.numel() <= kFewValues && is_plain_float(x) &&
      is_plain_float(of_places)) {
    place_words(x, static_cast<float>(scale), of_places);
    return x;
  }
  if (options.scale()) x = x * scale;
  x = x + of_places.to(x.options());
  return nn::dropout(x, options.dropout(), is_training());
}

}  // namespace quatrain::models
