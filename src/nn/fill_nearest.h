#pragma once

#include <string>

#include "quatrain/nn/attention.h"
#include "quatrain/nn/conversion_report.h"
#include "quatrain/nn/linear.h"

/// What the conversions share.
namespace quatrain::nn {

/// "encoder" and "layers" -> "encoder.layers".
std::string joined(const std::string& parent, const std::string& child);

/// The numbers of a module's own parameters and of its children's.
int64_t parameter_count(const torch::nn::Module& module);

/// Sets a layer's weights to the nearest of H (out, in), and its bias; returns the relative error.
double set_nearest(LinearImpl& layer, const at::Tensor& H, const at::Tensor& bias);

/// fill_nearest for attention: the heads of `twin` hold what those of `real` do. Adds the layers to the
/// report.
void fill_attention(const MultiheadAttentionImpl& real, MultiheadAttentionImpl& twin, const std::string& name,
                    ConversionReport& report);

}  // namespace quatrain::nn
