#include "nn/resolved_layers.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/attention/cached.h"
#include "ops/engine/activation.h"
#include "ops/linear/resolved.h"

namespace quatrain::nn {

namespace {

using ops::CachedAttention;
using ops::ResolvedLinear;
using Then = ResolvedLinear::Then;
using kernels::cpu::Activation;

constexpr int64_t kValues = 1 << 15;  // of a norm, for one thread

/// Thrown to say that step() serves.
struct NotResolved {};

at::Tensor plain(const at::Tensor& t) {
  if (!t.is_cpu() || t.scalar_type() != at::kFloat) throw NotResolved();
  return t.detach().contiguous();
}

ResolvedLinear resolved(const Linear& layer, int64_t rows, const at::Tensor& alpha = {}) {
  const auto operands = layer->operands(false);
  auto map = ResolvedLinear::of(operands.S, layer->bias, operands.product, layer->options.way(), rows, alpha);
  if (!map) throw NotResolved();
  return std::move(*map);
}

class NormOfRows {
 public:
  NormOfRows(const LayerNorm& norm, int64_t rows)
      : rows_(rows),
        parts_(norm->options.per_component() ? norm->options.n() : 1),
        width_(norm->options.width()),
        eps_(static_cast<float>(norm->options.eps())),
        weight_(plain(norm->weight)),
        bias_(plain(norm->bias)) {}

  /// `to` may be `from`.
  void operator()(const float* from, float* to) const {
    const auto& k = kernels::cpu::active();
    const float *const weight = weight_.const_data_ptr<float>(), *const bias = bias_.const_data_ptr<float>();
    at::parallel_for(0, rows_, std::max<int64_t>(1, kValues / width_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        k.layer_norm(from + row * width_, to + row * width_, parts_, width_ / parts_, weight, bias, eps_);
    });
  }

 private:
  int64_t rows_, parts_, width_;
  float eps_;
  at::Tensor weight_, bias_;
};

/// What all layers of a stack write to, rows of floats.
struct Buffers {
  at::Tensor results[3], normed, heads, mixed, hidden;

  Buffers(int64_t rows, int64_t width) {
    const auto floats = at::TensorOptions(at::kFloat);
    for (at::Tensor& result : results) result = at::empty({rows, width}, floats);
    normed = at::empty({rows, width}, floats);
    heads = at::empty({rows, 3 * width}, floats);  // query, or query, key and value together
    mixed = at::empty({rows, width}, floats);
  }

  /// That of a feed-forward, which those before it with as many values have too.
  at::Tensor hidden_of(int64_t rows, int64_t values) {
    if (!hidden.defined() || hidden.size(1) != values)
      hidden = at::empty({rows, values}, at::TensorOptions(at::kFloat));
    return hidden;
  }

  /// One that holds neither.
  float* free_of(const float* a, const float* b) const {
    for (const at::Tensor& result : results) {
      float* const at = result.mutable_data_ptr<float>();
      if (at != a && at != b) return at;
    }
    TORCH_INTERNAL_ASSERT(false, "three buffers have one that two do not name");
  }
};

class AttentionStep {
 public:
  AttentionStep(const MultiheadAttentionImpl& layer, int64_t rows, bool self, const at::Tensor& alpha,
                const Buffers& buffers)
      : rows_(rows),
        width_(layer.options.width()),
        n_(layer.components()),
        m_(width_ / n_ / layer.options.heads()),
        packed_(layer.options.packed()),
        query_(resolved(packed_ ? layer.packed : layer.query, rows)),
        output_(resolved(layer.output, rows, alpha)),
        attention_(layer.score_algebra(), n_, layer.options.heads(), m_),
        heads_(buffers.heads.mutable_data_ptr<float>()),
        mixed_(buffers.mixed.mutable_data_ptr<float>()) {
    if (!self || packed_) return;
    key_ = resolved(layer.key, rows);
    value_ = resolved(layer.value, rows);
  }

  /// Of the word at `place`, whose key and value go into the cache.
  void over_words(const float* x, int64_t place, const AttentionCache& cache, float* y,
                  const Then& then) const {
    query_.apply(x, heads_);
    if (packed_) {
      keep_part(1, cache.keys, place);
      keep_part(2, cache.values, place);
    } else {
      keep(*key_, x, cache.keys, place);
      keep(*value_, x, cache.values, place);
    }
    attend(cache, y, then);
  }

  void over_memory(const float* x, const AttentionCache& cache, float* y, const Then& then) const {
    query_.apply(x, heads_);
    attend(cache, y, then);
  }

 private:
  static float* words(const at::Tensor& cache, int64_t place) {
    return cache.mutable_data_ptr<float>() + place * cache.stride(1);
  }

  void keep(const ResolvedLinear& map, const float* x, const at::Tensor& cache, int64_t place) const {
    map.apply(x, {words(cache, place), width_ / map.n(), cache.stride(0)}, Then());
  }

  /// A component's query, key and value lie side by side.
  void keep_part(int64_t part, const at::Tensor& cache, int64_t place) const {
    const int64_t size = width_ / n_;
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t c = 0; c < n_; ++c)
        std::copy_n(heads_ + (row * n_ + c) * 3 * size + part * size, size,
                    words(cache, place) + row * cache.stride(0) + c * size);
  }

  void attend(const AttentionCache& cache, float* y, const Then& then) const {
    const int64_t parts = packed_ ? 3 : 1;
    attention_(rows_, {heads_, parts * width_, parts * width_ / n_, m_}, CachedAttention::Places(cache.keys),
               CachedAttention::Places(cache.values),
               {cache.table.const_data_ptr<int32_t>(), cache.table.stride(0), cache.table.size(1),
                cache.lengths.const_data_ptr<int32_t>()},
               mixed_);
    output_.apply(mixed_, y, then);
  }

  int64_t rows_, width_, n_, m_;
  bool packed_;
  ResolvedLinear query_, output_;
  std::optional<ResolvedLinear> key_, value_;
  CachedAttention attention_;
  float *heads_, *mixed_;
};

class FeedForwardStep {
 public:
  FeedForwardStep(const FeedForwardImpl& layer, int64_t rows, const at::Tensor& alpha, Buffers& buffers)
      : linear1_(resolved(layer.linear1, rows)),
        linear2_(resolved(layer.linear2, rows, alpha)),
        activation_(ops::engine::kernel_activation(layer.options.activation())),
        function_(ops::overwriting_activation(layer.options.activation())),
        hidden_(buffers.hidden_of(rows, layer.options.hidden())) {}

  void operator()(const float* x, float* y, const Then& then) const {
    linear1_.apply(x, hidden_.mutable_data_ptr<float>(),
                   {.activation = activation_.value_or(Activation::identity)});
    const at::Tensor activated = activation_ ? hidden_ : function_(hidden_);
    linear2_.apply(activated.const_data_ptr<float>(), y, then);
  }

 private:
  ResolvedLinear linear1_, linear2_;
  std::optional<Activation> activation_;  // none: `function_` comes after the map
  ops::ActivationFunction function_;
  at::Tensor hidden_;
};

class LayerStep {
 public:
  LayerStep(const TransformerEncoderLayerImpl& layer, int64_t rows, Buffers& buffers)
      : LayerStep(layer, layer.norm2, rows, buffers) {}
  LayerStep(const TransformerDecoderLayerImpl& layer, int64_t rows, Buffers& buffers)
      : LayerStep(layer, layer.norm3, rows, buffers) {
    cross_.emplace(*layer.cross_attention, rows, false, layer.alpha, buffers);
    if (layer.norm2) cross_norm_.emplace(layer.norm2, rows);
  }

  const float* operator()(const float* start, int64_t place, const AttentionCache& self,
                          const AttentionCache* cross) const {
    const float* y = sub_layer(norm_, start, start, [&](const float* x, float* to, const Then& then) {
      self_.over_words(x, place, self, to, then);
    });
    if (cross)
      y = sub_layer(cross_norm_, start, y, [&](const float* x, float* to, const Then& then) {
        cross_->over_memory(x, *cross, to, then);
      });
    return sub_layer(last_norm_, start, y, feed_forward_);
  }

 private:
  using Norm = std::optional<NormOfRows>;

  template <class Layer>
  LayerStep(const Layer& layer, const LayerNorm& last, int64_t rows, Buffers& buffers)
      : block_(layer.options.block_settings),
        buffers_(buffers),
        self_(*layer.attention, rows, true, layer.alpha, buffers),
        feed_forward_(*layer.feed_forward, rows, layer.alpha, buffers) {
    if (layer.norm1) norm_.emplace(layer.norm1, rows);
    if (last) last_norm_.emplace(last, rows);
  }

  /// What residual_sum (residual.h) says, with alpha in F's last map and the sum behind it.
  template <class F>
  const float* sub_layer(const Norm& norm, const float* start, const float* y, const F& f) const {
    float* const to = buffers_.free_of(start, y);
    const Then then{.residual = block_.printed ? start : y};
    if (block_.norm == NormStyle::pre) {
      float* const normed = buffers_.normed.mutable_data_ptr<float>();
      (*norm)(y, normed);
      f(normed, to, then);
    } else {
      f(y, to, then);
      if (block_.norm == NormStyle::post) (*norm)(to, to);
    }
    return to;
  }

  BlockSettings block_;
  const Buffers& buffers_;
  AttentionStep self_;
  std::optional<AttentionStep> cross_;
  FeedForwardStep feed_forward_;
  Norm norm_, cross_norm_, last_norm_;
};

class ResolvedLayers {
 public:
  ResolvedLayers(const torch::nn::ModuleList& layers, const LayerNorm& norm, int64_t rows, int64_t width)
      : rows_(rows), width_(width), buffers_(rows, width) {
    layers_.reserve(layers->size());
    for (const auto& layer : *layers)
      if (const auto* decoder = layer->as<TransformerDecoderLayerImpl>())
        layers_.emplace_back(*decoder, rows, buffers_);
      else
        layers_.emplace_back(*layer->as<TransformerEncoderLayerImpl>(), rows, buffers_);
    if (norm) norm_.emplace(norm, rows);
  }

  ResolvedLayers(const ResolvedLayers&) = delete;  // layers refer to the buffers
  ResolvedLayers& operator=(const ResolvedLayers&) = delete;

  at::Tensor operator()(const at::Tensor& x, int64_t place, Caches self, Caches cross) const {
    const float* y = x.const_data_ptr<float>();
    for (size_t i = 0; i < layers_.size(); ++i)
      y = layers_[i](y, place, self[i], cross.empty() ? nullptr : &cross[i]);
    const at::Tensor result = at::empty_like(x);
    float* const to = result.mutable_data_ptr<float>();
    norm_ ? (*norm_)(y, to) : void(std::copy_n(y, rows_ * width_, to));
    return result;
  }

 private:
  int64_t rows_, width_;
  Buffers buffers_;
  std::vector<LayerStep> layers_;
  std::optional<NormOfRows> norm_;
};

}  // namespace

StepOfLayers resolve_layers(const torch::nn::ModuleList& layers, const LayerNorm& norm, int64_t rows,
                            int64_t width) {
  try {
    const auto all = std::make_shared<const ResolvedLayers>(layers, norm, rows, width);
    return [all](const at::Tensor& x, int64_t place, Caches self, Caches cross) {
      return (*all)(x, place, self, cross);
    };
  } catch (const NotResolved&) {
    return nullptr;
  }
}

}  // namespace quatrain::nn
