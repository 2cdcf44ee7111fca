#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/json.h"
#include "support/text.h"
#include "train/checksum.h"

namespace quatrain::train {

inline constexpr size_t kLargestOwn = 1 << 26;  ///< bytes of a file of JSON

/// JSON that a trainer has written. The result is_discarded() where the text is not JSON or nested deeper
/// than any of ours.
template <typename Json>
Json parse_own(std::string_view text) {
  constexpr int kDeepest = 8;
  try {
    return parse_json<Json>(text, kDeepest);
  } catch (const TextError&) {
    return Json(Json::value_t::discarded);
  }
}

/// JSON of a file whose text is `sound`. One that may not be read is a std::runtime_error: it may be sound.
template <typename Json, typename Sound>
Json read_json(const std::filesystem::path& path, const Sound& sound) {
  try {
    const std::string text = read_file(path, kLargestOwn);
    return sound(text) ? parse_own<Json>(text) : Json(Json::value_t::discarded);
  } catch (const UnreadableError& error) {
    throw std::runtime_error("cannot read '" + path.string() + "': " + error.what());
  } catch (const std::invalid_argument&) {
    return Json(Json::value_t::discarded);
  }
}

/// The same from a file; is_discarded() too where the file is missing.
template <typename Json>
Json read_own(const std::filesystem::path& path) {
  return read_json<Json>(path, [](std::string_view) { return true; });
}

/// The same of an object that was written with_checksum(), or by an older version: discarded where a bit of
/// it has changed.
template <typename Json>
Json read_checked(const std::filesystem::path& path) {
  return read_json<Json>(path, [](std::string_view text) { return holds_checksum(text).value_or(true); });
}

/// A line of metrics.jsonl; is_discarded() where it is not JSON, or not as it was written.
template <typename Json>
Json parse_record(std::string_view line) {
  Json record = parse_own<Json>(line);
  const bool whole = record.is_object() && record.value("kind", Json()).is_string() &&
                     record.value("step", Json()).is_number_integer() && holds_checksum(line).value_or(true);
  return whole ? record : Json(Json::value_t::discarded);
}

}  // namespace quatrain::train
