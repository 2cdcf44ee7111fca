#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace quatrain::cli {

/// Writes JSON to a file, beside it and renamed; to standard output where the file is "-".
void write_json(const nlohmann::ordered_json& json, const std::string& file);

}  // namespace quatrain::cli
