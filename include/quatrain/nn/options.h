#pragma once

#include <utility>

#include "quatrain/nn/algebra_spec.h"
#include "quatrain/nn/init.h"
#include "quatrain/ops.h"

/// The options that layers share, each written once.
///
/// A layer's options derive from the groups that concern it and add what is theirs alone. A setter returns
/// the layer's own options, so that calls chain as in torch::nn: `LinearOptions(512,
/// 256).algebra("quaternion")`. Each group keeps its values in one member. `like` copies this member, so that
/// a layer made of other layers can pass its options on to them.
namespace quatrain::nn {

/// Options of every layer with hypercomplex weights.
struct QUATRAIN_API MapSettings {
  AlgebraSpec algebra = "quaternion";
  bool bias = true;
  Initialiser initialiser = Initialiser::glorot;
  ops::Way way = ops::Way::automatic;
};

template <class Self>
struct MapOptions {
  /// What the layer multiplies with: "real", "quaternion", "phm(4)", "phm(quaternion)", "wkp(4)", ...
  Self& algebra(AlgebraSpec value) {
    map_settings.algebra = std::move(value);
    return self();
  }
  const AlgebraSpec& algebra() const { return map_settings.algebra; }

  Self& bias(bool value) {
    map_settings.bias = value;
    return self();
  }
  bool bias() const { return map_settings.bias; }

  Self& initialiser(Initialiser value) {
    map_settings.initialiser = value;
    return self();
  }
  Initialiser initialiser() const { return map_settings.initialiser; }

  /// How the map is evaluated; the planner chooses by default.
  Self& way(ops::Way value) {
    map_settings.way = value;
    return self();
  }
  ops::Way way() const { return map_settings.way; }

  /// Sets all that the two have in common to what `other` says.
  template <class Other>
  Self& like(const Other& other) {
    Self& to = self();
    to.map_settings = other.map_settings;
    if constexpr (requires { to.drop_settings = other.drop_settings; })
      to.drop_settings = other.drop_settings;
    if constexpr (requires { to.hidden_settings = other.hidden_settings; })
      to.hidden_settings = other.hidden_settings;
    if constexpr (requires { to.head_settings = other.head_settings; })
      to.head_settings = other.head_settings;
    if constexpr (requires { to.block_settings = other.block_settings; })
      to.block_settings = other.block_settings;
    return to;
  }

  MapSettings map_settings;

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// Options of layers with dropout.
struct QUATRAIN_API DropSettings {
  double dropout = 0;
};

template <class Self>
struct DropOptions {
  Self& dropout(double value) {
    drop_settings.dropout = value;
    return static_cast<Self&>(*this);
  }
  double dropout() const { return drop_settings.dropout; }

  DropSettings drop_settings;
};

}  // namespace quatrain::nn
