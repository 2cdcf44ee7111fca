#include "nn/layer_steps.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/util/hash.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "ops/engine/options.h"
#include "ops/map/prepared.h"

namespace quatrain::nn {

namespace {

bool is_plain(const at::Tensor& t) {
  return t.is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous();
}

bool reads(const AttentionCache& cache) {
  const auto dense = [](const at::Tensor& t) {
    return t.is_cpu() && t.scalar_type() == at::kFloat && t.stride(-1) == 1;
  };
  return dense(cache.keys) && dense(cache.values) && cache.table.is_cpu() && cache.table.stride(1) == 1 &&
         cache.lengths.is_cpu() && cache.lengths.is_contiguous();
}
// The values of a word lie together.
bool writes(const AttentionCache& cache) {
  const auto together = [](const at::Tensor& t) {
    const int64_t values = t.size(2) * t.size(3) * t.size(4);
    return t.stride(3) == t.size(4) && t.stride(2) == t.size(3) * t.size(4) &&
           (t.size(0) == 1 || t.stride(0) >= values);
  };
  return reads(cache) && together(cache.keys) && together(cache.values);
}

void check_rows(const at::Tensor& x, const AttentionCache& cache) {
  TORCH_CHECK(cache.table.size(0) == x.size(0) && cache.lengths.size(0) == x.size(0) &&
                  cache.table.size(1) <= cache.keys.size(1) && cache.values.sizes() == cache.keys.sizes() &&
                  cache.keys.size(2) * cache.keys.size(3) * cache.keys.size(4) == x.size(1),
              "LayerSteps: a cache for ", x.sizes(),
              " must have a table (rows, length) and lengths (rows), got ", cache.table.sizes(), " and ",
              cache.lengths.sizes(), " of keys ", cache.keys.sizes());
}

}  // namespace

LayerSteps::LayerSteps(torch::nn::ModuleList layers, LayerNorm norm)
    : layers_(std::move(layers)),
      norm_(std::move(norm)),
      across_(layers_[0]->as<TransformerDecoderLayerImpl>() != nullptr),
      parameters_(layers_->parameters()) {
  if (norm_)
    for (const at::Tensor& parameter : norm_->parameters()) parameters_.push_back(parameter);
}

LayerSteps::Resolved LayerSteps::resolved_for(const at::Tensor& x) const {
  size_t versions = 0;
  for (const at::Tensor& parameter : parameters_)
    versions = c10::hash_combine(versions,
                                 reinterpret_cast<size_t>(parameter.const_data_ptr()) + parameter._version());
  return {.rows = x.size(0),
          .width = x.size(1),
          .threads = at::get_num_threads(),
          .planned = ops::requested_rows(),
          .traffic = ops::requested_traffic(),
          .way = ops::requested_way(ops::Way::automatic),
          .versions = versions,
          .forgotten = ops::times_forgotten()};
}

const StepOfLayers& LayerSteps::step_for(const Resolved& what) {
  for (const Kept& kept : kept_)
    if (kept.what == what) return kept.step;
  if (kept_.empty() || kept_.back().what.versions != what.versions ||
      kept_.back().what.forgotten != what.forgotten) {
    kept_.clear();
    met_.clear();
    for (const at::Tensor& parameter : parameters_) met_.push_back(parameter.detach());
  }
  keep_few();
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
  kept_.push_back({what, resolve_layers(layers_, norm_, what.rows, what.width)});
  return kept_.back().step;
}

void LayerSteps::keep_few() {
  std::erase_if(kept_, [](const Kept& kept) { return kept.step && !kept.what.is_few(); });
}

at::Tensor LayerSteps::operator()(const at::Tensor& x, int64_t place, Caches self, Caches cross) {
  const at::Tensor y = apply_kernels(x, place, self, cross);
  return y.defined() ? y : by_operators(x, place, self, cross);
}

at::Tensor LayerSteps::apply_kernels(const at::Tensor& x, int64_t place, Caches self, Caches cross) {
  by_kernels_ = false;
  TORCH_CHECK(x.dim() == 2 && self.size() == layers_->size() && cross.size() == (across_ ? self.size() : 0),
              "LayerSteps: x must be (rows, width), with a cache for each of the ", layers_->size(),
              " layers, got ", x.sizes(), " and ", self.size(), " and ", cross.size(), " caches");
  const auto is_inference = [](const at::Tensor& parameter) { return parameter.is_inference(); };
  if (!is_plain(x) || x.size(0) == 0 || at::autocast::is_autocast_enabled(at::kCPU) ||
      !std::all_of(self.begin(), self.end(), writes) || !std::all_of(cross.begin(), cross.end(), reads) ||
      std::any_of(parameters_.begin(), parameters_.end(), is_inference))  // they have no version
    return {};
  for (const AttentionCache& cache : self) {
    check_rows(x, cache);
    TORCH_CHECK(place >= 0 && place < cache.keys.size(1) && x.size(0) <= cache.keys.size(0),
                "LayerSteps: place must be from 0 to ", cache.keys.size(1) - 1, ", with at most ",
                cache.keys.size(0), " rows, got ", place, " and ", x.size(0));
  }
  for (const AttentionCache& cache : cross) check_rows(x, cache);
  const StepOfLayers& step = step_for(resolved_for(x));
  by_kernels_ = static_cast<bool>(step);
  return by_kernels_ ? step(x, place, self, cross) : at::Tensor();
}

at::Tensor LayerSteps::by_operators(at::Tensor x, int64_t place, Caches self, Caches cross) {
  for (size_t i = 0; i < layers_->size(); ++i) {
    const auto layer = layers_[i];
    x = cross.empty() ? layer->as<TransformerEncoderLayerImpl>()->step(x, place, self[i])
                      : layer->as<TransformerDecoderLayerImpl>()->step(x, place, self[i], cross[i]);
  }
  return norm_ ? norm_->forward(x) : x;
}

}  // namespace quatrain::nn
