#pragma once

#include <string>
#include <string_view>

#include "quatrain/algebra.h"

namespace quatrain::nn {

/// A layer's algebra: an algebra::Spec that its own notation converts to, so that options read
/// `.algebra("phm(4)")`.
///
/// `quaternion` is fixed, `phm(4)` learned from a random start, `phm(quaternion)` learned from a table,
/// `wkp(4)` learned with a weight for each summand, `real` the real layer. Bad notation throws
/// std::invalid_argument.
struct QUATRAIN_API AlgebraSpec : algebra::Spec {
  AlgebraSpec() = default;
  AlgebraSpec(algebra::Spec spec) : algebra::Spec(std::move(spec)) {}
  AlgebraSpec(std::string_view text) : algebra::Spec(parse(text)) {}
  AlgebraSpec(const std::string& text) : algebra::Spec(parse(text)) {}
  AlgebraSpec(const char* text) : algebra::Spec(parse(text)) {}
};

}  // namespace quatrain::nn
