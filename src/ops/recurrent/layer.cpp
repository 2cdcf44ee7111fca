// The operator `recurrent_layer`: `linear` of all inputs, then `recurrence`. A CPU has a kernel of its own
// for what needs no gradient.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <torch/library.h>

#include "ops/linear/schema.h"
#include "ops/recurrent/schema.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace composed {

LayerStates recurrent_layer(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                            const Optional& c0) {
  at::Tensor z;
  if (inputs.S.size() == 1) {
    z = dispatch_linear(inputs.x, inputs.S[0], inputs.bias, inputs.maps[0]);
  } else {
    std::vector<at::Tensor> parts;
    for (size_t k = 0; k < inputs.S.size(); ++k)
      parts.push_back(dispatch_linear(inputs.x, inputs.S[k], std::nullopt, inputs.maps[k])
                          .unflatten_symint(-1, {inputs.S[k].sym_size(0), 1, inputs.S[k].sym_size(1)}));
    z = at::cat(parts, -2).flatten(-3);
    if (inputs.bias) z = z + *inputs.bias;
  }
  const auto [y, h, c, kept] = dispatch_recurrence(call, z, h0, c0, false);
  return {y, h, c};
}

}  // namespace composed

namespace {

LayerStates recurrent_layer_autograd(const RecurrenceCall& call, const InputCall& inputs,
                                     const at::Tensor& h0, const Optional& c0) {
  if (in_function_transform() || any_of(call, inputs, h0, c0, &has_tangent) ||
      (at::GradMode::is_enabled() && any_of(call, inputs, h0, c0, &wants_grad))) {
    check_recurrent_layer(call, inputs, h0, c0);
    return composed::recurrent_layer(call, inputs, h0, c0);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch_recurrent_layer(call, inputs, h0, c0);
}

LayerStates recurrent_layer_composed(const RecurrenceCall& call, const InputCall& inputs,
                                     const at::Tensor& h0, const Optional& c0) {
  check_recurrent_layer(call, inputs, h0, c0);
  return composed::recurrent_layer(call, inputs, h0, c0);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("recurrent_layer", &recurrent_layer_schema<&recurrent_layer_autograd>);
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("recurrent_layer", &recurrent_layer_schema<&recurrent_layer_composed>);
}

TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("recurrent_layer", &recurrent_layer_schema<&composed::recurrent_layer>);
}

// Each of the two is cast as it wants to be.
TORCH_LIBRARY_IMPL(quatrain, AutocastCPU, m) {
  m.impl("recurrent_layer", &recurrent_layer_schema<&composed::recurrent_layer>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCUDA, m) {
  m.impl("recurrent_layer", &recurrent_layer_schema<&composed::recurrent_layer>);
}

}  // namespace quatrain::ops
