#pragma once

#include "quatrain/nn/encoder.h"

namespace quatrain::nn {

/// A sub-layer F around which a Transformer's layer puts a norm and a residual sum. `start`: what the layer
/// got; `y`: what the sub-layers before made of it.
///
///   post   norm(y + F(y));  printed: norm(start + F(y)), PHYDI (4)
///   pre    y + F(norm(y))
///   phydi  y + alpha F(y);  printed: start + alpha F(y), PHYDI (5)
template <class SubLayer>
at::Tensor residual_sum(const BlockSettings& block, LayerNorm& norm, const at::Tensor& alpha,
                        const at::Tensor& start, const at::Tensor& y, const SubLayer& F) {
  switch (block.norm) {
    case NormStyle::post:
      return norm->forward((block.printed ? start : y) + F(y));
    case NormStyle::pre:
      return y + F(norm->forward(y));
    case NormStyle::phydi:
      break;
  }
  return (block.printed ? start : y) + alpha * F(y);
}

/// The norm of a sub-layer, or of the end of a stack.
template <class Options>
LayerNorm make_norm(const Options& options) {
  return LayerNorm(
      LayerNormOptions(options.width()).n(options.algebra().n).per_component(options.norm_per_component()));
}

/// The feed-forward of a layer: real where the scope is partial.
template <class Options>
FeedForward make_feed_forward(const Options& options) {
  auto feed = FeedForwardOptions(options.width(), options.feed_forward()).like(options);
  if (options.scope() == Scope::partial) feed.algebra(AlgebraSpec());
  return FeedForward(feed);
}

/// Refuses what no layer of a Transformer can be.
template <class Options>
void check_block(const char* layer, const Options& options) {
  require_probability(layer, "dropout", options.dropout());
  require(!options.printed() || options.norm() != NormStyle::pre, layer,
          ": printed is a form of norm = post or phydi, got norm = pre");
}

}  // namespace quatrain::nn
