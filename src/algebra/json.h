#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "algebra/text.h"

namespace quatrain {

/// Parses JSON of any origin, of at most `deepest` lists and objects in each other (what prints or copies a
/// value takes the stack for each); throws TextError, with the line.
template <typename Json>
Json parse_json(std::string_view text, int deepest) {
  const auto watch = [&](int depth, typename Json::parse_event_t event, Json&) {
    using Event = typename Json::parse_event_t;
    if (depth >= deepest && (event == Event::object_start || event == Event::array_start))
      throw TextError(1, "it must be nested at most " + std::to_string(deepest) + " deep");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const typename Json::parse_error& error) {
    throw TextError(line_at(text, error.byte > 0 ? error.byte - 1 : 0), "it is no complete JSON");
  } catch (const typename Json::out_of_range&) {
    throw TextError(1, "it holds a number that is out of range");
  }
}

}  // namespace quatrain
