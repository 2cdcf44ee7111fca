// The schemas of `recurrence`, and the kernels that serve every device.

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/recurrent/schema.h"

namespace quatrain::ops {

namespace {

template <class Signature>
auto operator_of(const char* schema) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(schema, "").typed<Signature>();
}

std::vector<at::Tensor> structures(const RecurrenceCall& call) {
  std::vector<at::Tensor> all;
  for (const Call& map : call.maps)
    if (map.learned()) all.push_back(*map.A);
  return all;
}

// Of all maps, or none where one has none.
std::vector<at::Tensor> factors(const RecurrenceCall& call) {
  std::vector<at::Tensor> all;
  for (const Call& map : call.maps) {
    if (map.factors.empty()) return {};
    all.insert(all.end(), map.factors.begin(), map.factors.end());
  }
  return all;
}

}  // namespace

RecurrenceCall make_recurrence_call(const at::Tensor& batch_sizes, at::TensorList S, std::string_view algebra,
                                    at::TensorList A, at::TensorList factors, const Optional& bias,
                                    const Optional& mask, std::string_view cell, bool reverse,
                                    bool constant) {
  TORCH_CHECK(!S.empty() && (A.empty() || A.size() == S.size()) &&
                  (factors.empty() || factors.size() == 3 * S.size()),
              "recurrence: there must be an S, no A or one for each S, and no factors or three for each S, "
              "got ",
              S.size(), ", ", A.size(), " and ", factors.size());
  RecurrenceCall call{.batch_sizes = batch_sizes,
                      .S = S.vec(),
                      .maps = {},
                      .bias = bias && bias->defined() ? bias : std::nullopt,
                      .mask = mask && mask->defined() ? mask : std::nullopt,
                      .cell = parse_cell(cell),
                      .reverse = reverse};
  for (size_t k = 0; k < S.size(); ++k)
    call.maps.push_back(make_call(algebra, A.empty() ? std::nullopt : Optional(A[k]),
                                  factors.empty() ? factors : factors.slice(3 * k, 3), "auto", std::nullopt,
                                  constant));
  return call;
}

States dispatch_recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                           const Optional& c0, bool keep) {
  static const auto op =
      operator_of<decltype(recurrence_schema<&composed::recurrence>)>("quatrain::recurrence");
  return op.call(z, call.batch_sizes, h0, c0, call.S, call.maps[0].algebra, structures(call), factors(call),
                 call.bias, call.mask, name(call.cell), call.reverse, call.maps[0].constant, keep);
}

StateGradients dispatch_recurrence_backward(const RecurrenceCall& call, const Upstream& grads,
                                            const at::Tensor& y, const at::Tensor& kept, const at::Tensor& h0,
                                            const Optional& c0) {
  static const auto op = operator_of<decltype(recurrence_backward_schema<&composed::recurrence_backward>)>(
      "quatrain::recurrence_backward");
  return op.call(grads.y, grads.h, grads.c, y, kept, call.batch_sizes, h0, c0, call.S, call.maps[0].algebra,
                 structures(call), factors(call), call.mask, name(call.cell), call.reverse);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrence(const at::Tensor& z, const at::Tensor& batch_sizes,
                                                          const at::Tensor& h0, const at::Tensor& c0,
                                                          const std::vector<StateMap>& maps,
                                                          const at::Tensor& bias, const at::Tensor& mask,
                                                          const RecurrenceOptions& options) {
  const auto optional = [](const at::Tensor& t) { return t.defined() ? Optional(t) : std::nullopt; };
  RecurrenceCall call{.batch_sizes = batch_sizes,
                      .S = {},
                      .maps = {},
                      .bias = optional(bias),
                      .mask = optional(mask),
                      .cell = options.cell,
                      .reverse = options.reverse};
  TORCH_CHECK(!maps.empty(), "recurrence: there must be one map for all gates, or one for each, got none");
  for (const StateMap& map : maps) {
    call.S.push_back(map.S);
    call.maps.push_back(make_call(map.product));
    call.maps.back().constant = options.constant;
  }
  const auto [y, h, c, kept] = dispatch_recurrence(call, z, h0, optional(c0), false);
  return {y, h, has_memory(options.cell) ? c : at::Tensor()};
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "recurrence(Tensor z, Tensor batch_sizes, Tensor h0, Tensor? c0, Tensor[] S, str algebra, "
      "Tensor[] A, Tensor[] factors, Tensor? bias=None, Tensor? mask=None, str cell=\"lstm\", bool "
      "reverse=False, bool constant=False, bool keep=False) -> (Tensor, Tensor, Tensor, Tensor)",
      tags);
  m.def(
      "recurrence_backward(Tensor? dy, Tensor? dh, Tensor? dc, Tensor y, Tensor kept, Tensor batch_sizes, "
      "Tensor h0, Tensor? c0, Tensor[] S, str algebra, Tensor[] A, Tensor[] factors, Tensor? mask=None, str "
      "cell=\"lstm\", bool reverse=False) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
      tags);
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("recurrence", &recurrence_schema<&composed::recurrence>);
  m.impl("recurrence_backward", &recurrence_backward_schema<&composed::recurrence_backward>);
}

// vmap sees what they are composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("recurrence", &recurrence_schema<&composed::recurrence>);
  m.impl("recurrence_backward", &recurrence_backward_schema<&composed::recurrence_backward>);
}

}  // namespace quatrain::ops
