#pragma once

#include <sstream>
#include <string>

#include "algebra/toml.h"

namespace quatrain::train {

/// A value as it stands in TOML.
inline std::string toml_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

}  // namespace quatrain::train
