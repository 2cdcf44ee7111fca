#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/algebra.h"

namespace quatrain::algebra {

/// An algebra as a file describes it: the arguments of add().
struct Described {
  std::string name;
  int n = 0;
  std::vector<double> table;
  std::optional<Factors> factors;
  std::vector<double> conjugation;
};

enum class Notation { json, toml };

/// Reads the keys that add_from_file() takes. `where` opens errors; a `name` that is given stands in the
/// text's place.
QUATRAIN_API Described describe(std::string_view text, Notation notation, const std::string& where,
                                const std::string& name = "");

}  // namespace quatrain::algebra
