#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algebra/tables.h"
#include "quatrain/algebra.h"

namespace quatrain::algebra {

/// What an algebra is made from. Without conjugation: (1, -1, ..., -1).
struct Definition {
  Table table;
  std::optional<Factors> factors = std::nullopt;
  std::vector<double> conjugation = {};
};

/// The built-in algebra of a canonical name or signature; nothing where there is none, an error where its
/// numbers are wrong.
std::optional<Definition> builtin(const std::string& name);

/// A name that names() lists.
struct Listed {
  std::string name;
  int n;
};
const std::vector<Listed>& listed();

/// What comes before the parentheses of a signature, with an example: `clifford(2,1)`, `cyclic(5)`, ...
const std::vector<std::string>& signatures();

}  // namespace quatrain::algebra
