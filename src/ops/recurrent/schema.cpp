// The schemas of `recurrent_layer` and `recurrence`, and the kernels that serve every device.

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/one_by_one.h"
#include "ops/recurrent/schema.h"

namespace quatrain::ops {

namespace {

template <class Signature>
auto operator_of(const char* schema) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(schema, "").typed<Signature>();
}

std::vector<at::Tensor> structures(const std::vector<Call>& maps) {
  std::vector<at::Tensor> all;
  for (const Call& map : maps)
    if (map.learned()) all.push_back(*map.A);
  return all;
}

// Of all maps, or none where one has none.
std::vector<at::Tensor> factors(const std::vector<Call>& maps) {
  std::vector<at::Tensor> all;
  for (const Call& map : maps) {
    if (map.factors.empty()) return {};
    all.insert(all.end(), map.factors.begin(), map.factors.end());
  }
  return all;
}

Optional or_nothing(const Optional& t) {
  return t && t->defined() ? t : std::nullopt;
}

// One for each S.
std::vector<Call> make_maps(const char* function, at::TensorList S, std::string_view algebra,
                            at::TensorList A, at::TensorList factors, std::string_view way, bool constant) {
  TORCH_CHECK(!S.empty() && (A.empty() || A.size() == S.size()) &&
                  (factors.empty() || factors.size() == 3 * S.size()),
              function,
              ": there must be an S, no A or one for each S, and no factors or three for each S, got ",
              S.size(), ", ", A.size(), " and ", factors.size());
  std::vector<Call> maps;
  for (size_t k = 0; k < S.size(); ++k)
    maps.push_back(make_call(algebra, A.empty() ? std::nullopt : Optional(A[k]),
                             factors.empty() ? factors : factors.slice(3 * k, 3), way, std::nullopt,
                             constant));
  return maps;
}

}  // namespace

RecurrenceCall make_recurrence_call(const at::Tensor& batch_sizes, at::TensorList S, std::string_view algebra,
                                    at::TensorList A, at::TensorList factors, const Optional& bias,
                                    const Optional& mask, std::string_view cell, bool reverse,
                                    bool constant) {
  return {.batch_sizes = batch_sizes,
          .S = S.vec(),
          .maps = make_maps("recurrence", S, algebra, A, factors, "auto", constant),
          .bias = or_nothing(bias),
          .mask = or_nothing(mask),
          .cell = parse_cell(cell),
          .reverse = reverse};
}

InputCall make_input_call(const at::Tensor& x, at::TensorList S, std::string_view algebra, at::TensorList A,
                          at::TensorList factors, const Optional& bias, std::string_view way, bool constant) {
  return {.x = x,
          .S = S.vec(),
          .maps = make_maps("recurrent_layer: inputs", S, algebra, A, factors, way, constant),
          .bias = or_nothing(bias)};
}

LayerStates dispatch_recurrent_layer(const RecurrenceCall& call, const InputCall& inputs,
                                     const at::Tensor& h0, const Optional& c0) {
  static const auto op =
      operator_of<decltype(recurrent_layer_schema<&composed::recurrent_layer>)>("quatrain::recurrent_layer");
  const Call& first = inputs.maps[0];
  return op.call(inputs.x, call.batch_sizes, h0, c0, inputs.S, call.S, first.algebra, structures(inputs.maps),
                 structures(call.maps), factors(inputs.maps), factors(call.maps), inputs.bias, call.bias,
                 call.mask, name(call.cell), name(first.way), call.reverse, first.constant);
}

States dispatch_recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                           const Optional& c0, bool keep) {
  static const auto op =
      operator_of<decltype(recurrence_schema<&composed::recurrence>)>("quatrain::recurrence");
  return op.call(z, call.batch_sizes, h0, c0, call.S, call.maps[0].algebra, structures(call.maps),
                 factors(call.maps), call.bias, call.mask, name(call.cell), call.reverse,
                 call.maps[0].constant, keep);
}

StateGradients dispatch_recurrence_backward(const RecurrenceCall& call, const Upstream& grads,
                                            const at::Tensor& y, const at::Tensor& kept, const at::Tensor& h0,
                                            const Optional& c0) {
  static const auto op = operator_of<decltype(recurrence_backward_schema<&composed::recurrence_backward>)>(
      "quatrain::recurrence_backward");
  return op.call(grads.y, grads.h, grads.c, y, kept, call.batch_sizes, h0, c0, call.S, call.maps[0].algebra,
                 structures(call.maps), factors(call.maps), call.mask, name(call.cell), call.reverse);
}

namespace {

void take(const char* function, const std::vector<RecurrentMap>& from, Way way, bool constant,
          std::vector<at::Tensor>& S, std::vector<Call>& maps) {
  TORCH_CHECK(!from.empty(), function, ": there must be one map for all gates, or one for each, got none");
  for (const RecurrentMap& map : from) {
    S.push_back(map.S);
    maps.push_back(make_call(map.product));
    maps.back().way = way, maps.back().constant = constant;
  }
}

RecurrenceCall call_of(const at::Tensor& batch_sizes, const std::vector<RecurrentMap>& maps,
                       const at::Tensor& bias, const at::Tensor& mask, const RecurrenceOptions& options) {
  RecurrenceCall call{.batch_sizes = batch_sizes,
                      .S = {},
                      .maps = {},
                      .bias = or_nothing(bias),
                      .mask = or_nothing(mask),
                      .cell = options.cell,
                      .reverse = options.reverse};
  take("recurrence", maps, Way::automatic, options.constant, call.S, call.maps);
  return call;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrence(const at::Tensor& z, const at::Tensor& batch_sizes,
                                                          const at::Tensor& h0, const at::Tensor& c0,
                                                          const std::vector<RecurrentMap>& maps,
                                                          const at::Tensor& bias, const at::Tensor& mask,
                                                          const RecurrenceOptions& options) {
  const auto [y, h, c, kept] =
      dispatch_recurrence(call_of(batch_sizes, maps, bias, mask, options), z, h0, or_nothing(c0), false);
  return {y, h, has_memory(options.cell) ? c : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrent_layer(const RecurrentInputs& inputs,
                                                               const at::Tensor& batch_sizes,
                                                               const at::Tensor& h0, const at::Tensor& c0,
                                                               const std::vector<RecurrentMap>& maps,
                                                               const at::Tensor& bias, const at::Tensor& mask,
                                                               const RecurrenceOptions& options) {
  InputCall of_x{.x = inputs.x, .S = {}, .maps = {}, .bias = or_nothing(inputs.bias)};
  take("recurrent_layer: inputs", inputs.maps, inputs.way, options.constant, of_x.S, of_x.maps);
  const auto [y, h, c] =
      dispatch_recurrent_layer(call_of(batch_sizes, maps, bias, mask, options), of_x, h0, or_nothing(c0));
  return {y, h, has_memory(options.cell) ? c : at::Tensor()};
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "recurrent_layer(Tensor x, Tensor batch_sizes, Tensor h0, Tensor? c0, Tensor[] S_x, Tensor[] S, str "
      "algebra, Tensor[]? A_x, Tensor[]? A, Tensor[]? factors_x, Tensor[]? factors, Tensor? bias_x=None, "
      "Tensor? bias=None, Tensor? mask=None, str cell=\"lstm\", str way=\"auto\", bool reverse=False, bool "
      "constant=False) -> (Tensor, Tensor, Tensor)",
      tags);
  m.def(
      "recurrence(Tensor z, Tensor batch_sizes, Tensor h0, Tensor? c0, Tensor[] S, str algebra, "
      "Tensor[]? A, Tensor[]? factors, Tensor? bias=None, Tensor? mask=None, str cell=\"lstm\", bool "
      "reverse=False, bool constant=False, bool keep=False) -> (Tensor, Tensor, Tensor, Tensor)",
      tags);
  m.def(
      "recurrence_backward(Tensor? dy, Tensor? dh, Tensor? dc, Tensor y, Tensor kept, Tensor batch_sizes, "
      "Tensor h0, Tensor? c0, Tensor[] S, str algebra, Tensor[]? A, Tensor[]? factors, Tensor? mask=None, "
      "str cell=\"lstm\", bool reverse=False) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
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

TORCH_LIBRARY_IMPL(quatrain, Batched, m) {
  m.impl("recurrence", one_by_one());
  m.impl("recurrence_backward", one_by_one());
}

}  // namespace quatrain::ops
