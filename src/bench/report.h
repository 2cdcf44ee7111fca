#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace quatrain::bench {

/// The rows of a subject as a table with its title and notes; "" without rows.
std::string report(const Subject& subject, const std::vector<Row>& rows, bool colour);
/// Every row as an object, for programs; times in microseconds.
nlohmann::ordered_json to_json(const std::vector<Row>& rows);

}  // namespace quatrain::bench
