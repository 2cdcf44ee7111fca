#pragma once

#include <map>
#include <string>
#include <string_view>

#include "quatrain/algebra.h"

/// What a weights file's metadata say of the algebras.
namespace quatrain::nn {

using Texts = std::map<std::string, std::string>;

/// Keys: algebra/LAYER is "NAME HASH" or, where A is learned, the layer's notation; table/NAME is the
/// algebra's table.
constexpr std::string_view kAlgebra = "algebra/";
constexpr std::string_view kTable = "table/";

/// The text of algebra/LAYER.
std::string describe(const algebra::Spec& spec);

/// What there is to say where the weights of `layer`, of which this text was stored, are not of the algebra;
/// empty where they are. A learned tensor is stored itself, so where it started does not matter; a fixed one
/// is its table, whatever its name.
std::string difference(const std::string& layer, const algebra::Spec& spec, const std::string& stored);

/// Writes what belongs to a hypercomplex layer.
void note_algebra(Texts& metadata, const std::string& layer, const algebra::Spec& spec);

}  // namespace quatrain::nn
