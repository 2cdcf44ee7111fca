#pragma once

#include <string>

#include "nn/visit.h"
#include "quatrain/nn/conversion_report.h"

/// What the conversions share.
namespace quatrain::nn {

/// fill_nearest for a part of a model, by its name there. Adds a line for each weight to the report.
void fill_part(const torch::nn::Module& real, torch::nn::Module& twin, const std::string& name,
               ConversionReport& report);

}  // namespace quatrain::nn
