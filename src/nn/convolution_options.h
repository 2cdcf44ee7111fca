#pragma once

#include <torch/enum.h>
#include <torch/expanding_array.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

/// The options that convolutions of ours and of torch share, read alike.
namespace quatrain::nn {

template <size_t D>
std::vector<int64_t> values(const torch::ExpandingArray<D>& sizes) {
  return {sizes->begin(), sizes->end()};
}

inline std::string convolution_name(size_t D, bool transposed) {
  return (transposed ? "ConvTranspose" : "Conv") + std::to_string(D) + "d";
}

template <class Mode>
const char* mode_name(const Mode& mode) {
  if (std::holds_alternative<torch::enumtype::kReflect>(mode)) return "reflect";
  if (std::holds_alternative<torch::enumtype::kReplicate>(mode)) return "replicate";
  return std::holds_alternative<torch::enumtype::kCircular>(mode) ? "circular" : "constant";
}

/// Pixels before and behind each axis.
template <size_t D, class Options>
std::vector<std::pair<int64_t, int64_t>> sides(const Options& options) {
  std::vector<std::pair<int64_t, int64_t>> result;
  const auto kernel = values(options.kernel_size()), dilation = values(options.dilation());
  for (size_t axis = 0; axis < D; ++axis) {
    if (const auto* given = std::get_if<torch::ExpandingArray<D>>(&options.padding())) {
      result.emplace_back((**given)[axis], (**given)[axis]);
    } else if (std::holds_alternative<torch::enumtype::kSame>(options.padding())) {
      const int64_t all = dilation[axis] * (kernel[axis] - 1);
      result.emplace_back(all / 2, all - all / 2);  // an odd pixel is behind, as torch has it
    } else {
      result.emplace_back(0, 0);
    }
  }
  return result;
}

}  // namespace quatrain::nn
