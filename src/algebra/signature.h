#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quatrain::algebra {

/// Largest dimension of a table, and of a learned one: A has n^3 entries.
inline constexpr int kMaxDimension = 64;

/// `head` or `head(inner)`: the form of every name.
struct Call {
  std::string head;
  std::optional<std::string> inner;
};

/// Splits a name at its outer parentheses and trims both parts; torn parentheses are an error.
Call parse_call(std::string_view text);

/// A whole number, or nothing.
std::optional<int> parse_int(std::string_view text);

/// A name without blanks: `clifford( 2, 1 )` -> `clifford(2,1)`.
std::string canonical_name(std::string_view text);

/// The numbers of a signature `head(1,2,...)`; nothing where an argument is not a whole number.
std::optional<std::vector<int>> parse_ints(std::string_view text);

/// Letters, digits and '_', a letter first.
bool is_identifier(std::string_view text);

}  // namespace quatrain::algebra
