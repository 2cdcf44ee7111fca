#include "quatrain/nn/layer.h"

namespace quatrain::nn {

HypercomplexLayer::~HypercomplexLayer() = default;

std::vector<const HypercomplexWeight*> HypercomplexLayer::weights() const {
  const auto held = const_cast<HypercomplexLayer*>(this)->weights();
  return {held.begin(), held.end()};
}

const AlgebraSpec& HypercomplexLayer::algebra() const {
  const auto held = weights();
  const AlgebraSpec& spec = held.front()->spec();
  for (const HypercomplexWeight* weight : held)
    TORCH_CHECK(weight->spec().text() == spec.text(),
                "HypercomplexLayer: the weights of a layer are of one algebra, got ", spec.text(), " and ",
                weight->spec().text(), " (make the others' layer a child)");
  return spec;
}

void HypercomplexLayer::weights_changed() {
  for (const HypercomplexWeight* weight : weights()) weight->drop_prepared();
}

void HypercomplexLayer::before_move() {
  for (HypercomplexWeight* weight : weights()) weight->before_move();
}

void HypercomplexLayer::after_move() {
  for (HypercomplexWeight* weight : weights()) weight->after_move();
}

void HypercomplexLayer::take_states(const HypercomplexLayer& other) {
  const auto from = other.weights();
  const auto to = weights();
  for (size_t i = 0; i < to.size(); ++i) to[i]->take_state(*from[i]);
}

}  // namespace quatrain::nn
