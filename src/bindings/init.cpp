// Initialisers as operators: the same draws for the layers of both languages; and the library's version.

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "quatrain/models/positions.h"
#include "quatrain/nn/init.h"
#include "quatrain/recurrent_ops.h"
#include "support/version.h"

namespace quatrain::bindings {

namespace {

using Generator = std::optional<at::Generator>;

void weight_(at::Tensor S, std::string_view initialiser, double power, int64_t maps, Generator generator) {
  nn::initialise_weight_(S, nn::parse_initialiser(initialiser), power, std::move(generator), maps);
}

void structure_(at::Tensor A, std::string_view algebra, Generator generator) {
  nn::initialise_structure_(A, algebra::Spec::parse(algebra), std::move(generator));
}

/// `structure`: A, or the factors that are trained in its place.
void layer_(at::Tensor S, const std::optional<at::Tensor>& structure, std::string_view algebra,
            std::string_view initialiser, int64_t maps, Generator generator) {
  const algebra::Spec spec = algebra::Spec::parse(algebra);
  double power = nn::structure_power(spec.learned ? "real" : spec.name);
  if (structure && spec.trained_rank > 0) {
    nn::initialise_factors_(*structure, spec, generator);
    power = nn::factors_power(*structure);
  } else if (structure) {
    nn::initialise_structure_(*structure, spec, generator);
    power = nn::structure_power(*structure);
  }
  weight_(std::move(S), initialiser, power, maps, std::move(generator));
}

void gate_biases_(at::Tensor bias, int64_t n, std::string_view cell, double forget_bias, int64_t chrono,
                  Generator generator) {
  nn::initialise_gate_biases_(bias, n, ops::parse_cell(cell), forget_bias, chrono, std::move(generator));
}

std::tuple<double, double> real_fans(const at::Tensor& S, int64_t maps) {
  const nn::Fans fans = nn::real_fans(S, maps);
  return {fans.in, fans.out};
}

double power_of(std::string_view algebra) {
  return nn::structure_power(algebra);
}

// Tensors without values: nothing is to be drawn.
void weight_meta_(at::Tensor, std::string_view, double, int64_t, Generator) {}
void structure_meta_(at::Tensor, std::string_view, Generator) {}
void layer_meta_(at::Tensor, const std::optional<at::Tensor>&, std::string_view, std::string_view, int64_t,
                 Generator) {}
void gate_biases_meta_(at::Tensor, int64_t, std::string_view, double, int64_t, Generator) {}

}  // namespace

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  const std::vector<at::Tag> drawn{at::Tag::nondeterministic_seeded};
  m.def(
      "initialise_weight_(Tensor(a!) S, str initialiser, float power=1.0, int maps=1, *, Generator? "
      "generator=None) -> ()",
      drawn);
  m.def("initialise_structure_(Tensor(a!) A, str algebra, *, Generator? generator=None) -> ()", drawn);
  m.def(
      "initialise_layer_(Tensor(a!) S, Tensor(b!)? structure, str algebra, str initialiser=\"glorot\", int "
      "maps=1, *, Generator? generator=None) -> ()",
      drawn);
  m.def(
      "initialise_gate_biases_(Tensor(a!) bias, int n, str cell, float forget_bias=0.0, int chrono=0, *, "
      "Generator? generator=None) -> ()",
      drawn);
  m.def("version() -> str", [] { return std::string(version()); });
  m.def("real_fans(Tensor S, int maps=1) -> (float, float)", &real_fans);
  m.def("structure_power(Tensor A) -> float", [](const at::Tensor& A) { return nn::structure_power(A); });
  m.def("algebra_power(str algebra) -> float", &power_of);
  m.def("sinusoidal_positions(int length, int width) -> Tensor",
        [](int64_t length, int64_t width) { return models::sinusoidal_positions(length, width); });
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("initialise_weight_", &weight_);
  m.impl("initialise_structure_", &structure_);
  m.impl("initialise_layer_", &layer_);
  m.impl("initialise_gate_biases_", &gate_biases_);
}

TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("initialise_weight_", &weight_meta_);
  m.impl("initialise_structure_", &structure_meta_);
  m.impl("initialise_layer_", &layer_meta_);
  m.impl("initialise_gate_biases_", &gate_biases_meta_);
}

}  // namespace quatrain::bindings
