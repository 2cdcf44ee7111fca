#include "quatrain/algebra.h"

#include "algebra/file.h"
#include "fuzz/support.h"

/// A file that describes an algebra: the first byte `t` makes it TOML, any other JSON.
QUATRAIN_FUZZ_TARGET(algebra)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  if (size == 0) return 0;
  const auto text = fuzz::text_of(data + 1, size - 1);
  const auto notation = data[0] == 't' ? algebra::Notation::toml : algebra::Notation::json;
  constexpr int kQuick = 8;  // the checks of a table take n^5 steps
  fuzz::read_or_refuse<std::invalid_argument>(size + (4 << 20) / 200, 200, [&] {
    auto [name, n, table, factors, conjugation] = algebra::describe(text, notation, "file");
    if (n <= kQuick)
      algebra::Algebra(std::move(name), n, std::move(table), std::move(factors), std::move(conjugation));
  });
  return 0;
}
