#pragma once

#include <string>

namespace quatrain::cli {

/// What gnuplot writes to its standard output for a script. A std::runtime_error where it is not installed
/// (with the way to get it), or where it fails.
std::string run_gnuplot(const std::string& script);

/// A text as gnuplot takes it.
std::string gnuplot_quoted(const std::string& text);

}  // namespace quatrain::cli
