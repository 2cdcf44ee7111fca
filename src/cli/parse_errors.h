#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quatrain::cli {

/// What is said of a command line that cannot be parsed: the parser's sentence, or the nearest name where a
/// command or an option was mistyped.
std::string explain(const CLI::ParseError& error, const CLI::App& program,
                    const std::vector<std::string>& words);

}  // namespace quatrain::cli
