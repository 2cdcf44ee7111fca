#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace quatrain::cli {

/// One layer beside torch's.
struct LayerTime {
  std::string name;
  int64_t parameters = 0;
  std::vector<double> inference;  ///< median seconds at each batch
  std::vector<double> training;   ///< forward and backward, with the gradients of weights and inputs
};

/// Single square layers, float32, all measured in turns in one process.
struct LayerTimes {
  int64_t width = 0;
  int threads = 0;
  std::vector<int64_t> batches;
  std::vector<LayerTime> layers;  ///< the first is torch::nn::Linear
};

/// Measures quaternion, PHM (n = 4) and octonion layers against torch::nn::Linear, spending about `seconds`.
LayerTimes measure_layers(int64_t width, double seconds);

std::string report(const LayerTimes& times);
nlohmann::ordered_json to_json(const LayerTimes& times);

}  // namespace quatrain::cli
