#include "quatrain/nn/layer.h"

#include <torch/nn/module.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>
#include <torch/types.h>

#include "nn/algebra_metadata.h"

namespace quatrain::nn {

namespace {

// Beside the parameters of a layer in an archive of torch::save.
constexpr const char* kArchived = "quatrain_algebra";

}  // namespace

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

void HypercomplexLayer::write_algebra(torch::serialize::OutputArchive& archive) const {
  archive.write(kArchived, c10::IValue(describe(algebra())));
}

// Torch's load() takes what has the parameter's name: weights of another algebra, other shapes, and the bytes
// of other types as if they were of this one.
void HypercomplexLayer::check_archive(torch::serialize::InputArchive& archive) const {
  c10::IValue stored;
  if (archive.try_read(kArchived, stored) && stored.isString()) {
    const std::string other = difference("a layer of the archive", algebra(), stored.toStringRef());
    TORCH_CHECK(other.empty(), "load: ", other, " (build the model with that algebra)");
  }
  for (const auto& item : dynamic_cast<const torch::nn::Module&>(*this).named_parameters(false)) {
    at::Tensor there;
    if (!archive.try_read(item.key(), there)) continue;
    const at::Tensor& here = item.value();
    TORCH_CHECK(there.sizes() == here.sizes() && there.scalar_type() == here.scalar_type(), "load: '",
                item.key(), "' is ", there.scalar_type(), " ", there.sizes(), " in the archive and ",
                here.scalar_type(), " ", here.sizes(),
                " in the model (build the model with these sizes, and move it to this type before)");
  }
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
