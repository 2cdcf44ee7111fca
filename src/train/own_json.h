#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/json.h"
#include "support/text.h"

namespace quatrain::train {

/// JSON that a trainer has written, or what stands in its place: is_discarded() where it is none, or nested
/// deeper than any of ours.
template <typename Json>
Json parse_own(std::string_view text) {
  constexpr int kDeepest = 8;
  try {
    return parse_json<Json>(text, kDeepest);
  } catch (const TextError&) {
    return Json(Json::value_t::discarded);
  }
}

/// The same from a file; one that cannot be read is no JSON either.
template <typename Json>
Json read_own(const std::filesystem::path& path) {
  constexpr size_t kLargest = 1 << 26;
  try {
    return parse_own<Json>(read_file(path, kLargest));
  } catch (const std::invalid_argument&) {
    return Json(Json::value_t::discarded);
  }
}

/// True for a line of metrics.jsonl.
template <typename Json>
bool is_record(const Json& line) {
  return line.is_object() && line.value("kind", Json()).is_string() &&
         line.value("step", Json()).is_number_integer();
}

}  // namespace quatrain::train
