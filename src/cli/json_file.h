#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace quatrain::cli {

/// Throws where no such file, of JSON or anything else, can be made: asked before long work.
void check_output(const std::string& file);
/// Writes JSON to a file, beside it and renamed; to standard output where the file is "-".
void write_json(const nlohmann::ordered_json& json, const std::string& file);

}  // namespace quatrain::cli
