#pragma once

#include <string>

#include "nn/visit.h"
#include "quatrain/nn/conversion_report.h"
#include "quatrain/nn/linear.h"

/// What the conversions share.
namespace quatrain::nn {

/// Sets a linear layer's weight to the nearest of H (out, in), and its bias; returns the relative error.
double set_nearest(LinearImpl& layer, const at::Tensor& H, const at::Tensor& bias);

/// fill_nearest for a part of a model, by its name there. Adds a line for each weight to the report.
void fill_part(const torch::nn::Module& real, torch::nn::Module& twin, const std::string& name,
               ConversionReport& report);

}  // namespace quatrain::nn
