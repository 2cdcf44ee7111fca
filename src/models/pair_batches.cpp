#include "models/pair_batches.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/share_out.h"
#include "nn/check.h"

namespace quatrain::models {
namespace {

std::vector<std::vector<size_t>> batches(const std::vector<size_t>& lengths,
                                         const TranslationOptions& options) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<size_t>> all;
  for (const size_t i : order) {
    const bool fits =
        !all.empty() && static_cast<int64_t>(all.back().size()) < options.batch &&
        static_cast<int64_t>((all.back().size() + 1) * lengths[all.back().front()]) <= options.batch_tokens;
    if (!fits) all.emplace_back();
    all.back().push_back(i);
  }
  return all;
}

}  // namespace

Padded pad(const std::vector<Tokens>& texts, const std::vector<size_t>& which, int64_t mark, int64_t shortest,
           at::Device device) {
  const auto rows = static_cast<int64_t>(which.size());
  int64_t length = shortest, least = std::numeric_limits<int64_t>::max();
  for (const size_t i : which) {
    length = std::max(length, static_cast<int64_t>(texts[i].size()));
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
  if (least < length) result.padding = padding.to(device);
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

void for_each_batch(const std::vector<size_t>& lengths, const TranslationOptions& options,
                    const std::function<void(const std::vector<size_t>&)>& work,
                    const std::function<void()>& after_batch) {
  const torch::NoGradGuard no_grad;
  const auto all = batches(lengths, options);
  if (options.exact) {
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
