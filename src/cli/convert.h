#pragma once

#include "cli/commands.h"
#include "quatrain/nn/convert.h"

namespace quatrain::cli {

/// Throws where nothing was converted: a file that is as large as before is not what was asked for.
void check_converted(const nn::ConversionReport& report, const std::string& in);

/// Converts a run folder into another, whose recipe says so. Its weights are where training starts.
nn::ConversionReport convert_run(const ConvertArguments& arguments);

}  // namespace quatrain::cli
