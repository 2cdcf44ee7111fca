#include "models/pair_batches.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "models/share_out.h"
#include "nn/check.h"

namespace quatrain::models {
namespace {

// Places of the longer text, of the source and of the target.
using Shape = std::array<int64_t, 3>;

std::vector<std::vector<size_t>> batches(const std::vector<PairSize>& sizes, const Places& places,
                                         const TranslationOptions& options) {
  std::vector<Shape> shapes;
  for (const PairSize& size : sizes) {
    const int64_t source = places(size.source), target = size.target > 0 ? places(size.target) : 0;
    shapes.push_back({std::max(source, target), source, target});
  }
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return places.exact() ? shapes[a] > shapes[b] : shapes[a][0] > shapes[b][0];
  });
  std::vector<std::vector<size_t>> all;
  for (const size_t i : order) {
    const auto fits = [&](const std::vector<size_t>& batch) {
      const auto count = static_cast<int64_t>(batch.size());
      const Shape& first = shapes[batch.front()];
      return count < options.batch && (count + 1) * first[0] <= options.batch_tokens &&
             (!places.exact() || shapes[i] == first);
    };
    if (all.empty() || !fits(all.back())) all.emplace_back();
    all.back().push_back(i);
  }
  return all;
}

}  // namespace

Places::Places(const Ensemble& ensemble, const TranslationOptions& options)
    : exact_(options.exact), most_(std::numeric_limits<int64_t>::max()) {
  for (const Seq2Seq& model : ensemble.models)
    if (model->options.positions() == Positions::learned)
      most_ = std::min(most_, model->options.max_length());
}

int64_t Places::operator()(size_t tokens) const {
  const auto count = static_cast<int64_t>(tokens);
  if (!exact_) return count;
  const int64_t filled = (count + kExactRows - 1) / kExactRows * kExactRows;
  return std::max(count, std::min(filled, most_));
}

Padded pad(const std::vector<Tokens>& texts, const std::vector<size_t>& which, int64_t mark,
           const Places& places, at::Device device) {
  const auto rows = static_cast<int64_t>(which.size());
  int64_t length = 0, least = std::numeric_limits<int64_t>::max();
  for (const size_t i : which) {
    length = std::max(length, places(texts[i].size()));
    least = std::min(least, static_cast<int64_t>(texts[i].size()));
  }
  Padded result{at::full({rows, length}, mark, at::kLong), {}};
  at::Tensor padding = at::ones({rows, length}, at::kBool);
  for (int64_t row = 0; row < rows; ++row) {
    const Tokens& text = texts[which[static_cast<size_t>(row)]];
    std::copy(text.begin(), text.end(), result.tokens.mutable_data_ptr<int64_t>() + row * length);
    std::fill_n(padding.mutable_data_ptr<bool>() + row * length, text.size(), false);
  }
  result.tokens = result.tokens.to(device);
  if (least < length || places.exact()) result.padding = padding.to(device);
  return result;
}

void check_pairs(const char* name, const Ensemble& ensemble, const std::vector<Tokens>& sources,
                 const TranslationOptions& options) {
  for (const Seq2Seq& model : ensemble.models)
    nn::require(!model->is_training(), name, ": the model must be in eval mode; call eval()");
  nn::require(options.batch >= 1 && options.batch_tokens >= 1 && options.longest >= 0 &&
                  options.longest_factor >= 0 && options.longest_offset >= 0,
              name, ": batch and batch_tokens must be at least 1, the limits of length at least 0");
  for (const Tokens& source : sources)
    nn::require(!source.empty(), name, ": every source must have a token, that of its end");
}

void for_each_batch(const std::vector<PairSize>& sizes, const Places& places,
                    const TranslationOptions& options,
                    const std::function<void(const std::vector<size_t>&)>& work,
                    const std::function<void()>& after_batch) {
  const torch::NoGradGuard no_grad;
  const auto all = batches(sizes, places, options);
  if (places.exact()) {
    share_out(
        static_cast<int64_t>(all.size()), [&](int64_t i) { work(all[static_cast<size_t>(i)]); }, after_batch);
    return;
  }
  for (const auto& batch : all) {
    work(batch);
    if (after_batch) after_batch();
  }
}

}  // namespace quatrain::models
