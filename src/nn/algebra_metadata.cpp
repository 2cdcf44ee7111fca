#include "nn/algebra_metadata.h"

#include <nlohmann/json.hpp>

namespace quatrain::nn {
namespace {

using Json = nlohmann::json;

std::string table_text(const algebra::Algebra& algebra) {
  Json entries = Json::array();
  for (int i = 0; i < algebra.n(); ++i)
    for (int b = 0; b < algebra.n(); ++b)
      for (int a = 0; a < algebra.n(); ++a)
        if (const double value = algebra.table(i, a, b); value != 0) entries.push_back({i, b, a, value});
  return Json{{"n", algebra.n()}, {"table", entries}}.dump();
}

}  // namespace

std::string describe(const algebra::Spec& spec) {
  return spec.learned ? spec.text() : spec.name + " " + algebra::get(spec.name).hash();
}

std::string difference(const std::string& layer, const algebra::Spec& spec, const std::string& stored) {
  // The hash is the last word of a fixed algebra's text; a learned layer's notation ends with its bracket.
  const auto hash_of = [](const std::string& text) { return text.substr(text.rfind(' ') + 1); };
  const std::string expected = describe(spec);
  bool same = stored.ends_with(')') == spec.learned;
  if (same)
    same = spec.learned ? stored.starts_with("wkp(") == spec.weighted : hash_of(stored) == hash_of(expected);
  return same ? "" : layer + " was trained with the algebra " + stored + ", but the model has " + expected;
}

void note_algebra(Texts& metadata, const std::string& layer, const algebra::Spec& spec) {
  metadata[std::string(kAlgebra) + layer] = describe(spec);
  if (!spec.learned) metadata[std::string(kTable) + spec.name] = table_text(algebra::get(spec.name));
}

}  // namespace quatrain::nn
