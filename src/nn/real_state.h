#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>
#include <vector>

#include "quatrain/nn/layer.h"

namespace quatrain::nn {

/// The parameters that a layer has, or would have, as the real layer of its kind: matrices H for weights,
/// each put together of those that hold parts of it (HypercomplexLayer::place_in_real). Of a layer that is
/// not ours, its parameters.
class RealState {
 public:
  explicit RealState(const torch::nn::Module& layer);

  bool contains(const std::string& name) const { return found_.contains(name); }
  std::vector<std::string> names() const;
  /// The rows and columns that a place says, in its order. An error that begins with `what` where there are
  /// not so many.
  at::Tensor part(const HypercomplexLayer::Place& place, const std::string& what) const;
  int64_t rows(const std::string& name) const { return found_.at(name).value.size(0); }
  /// The numbers that the layer holds for it.
  int64_t count(const std::string& name) const { return found_.at(name).count; }

 private:
  struct Found {
    at::Tensor value;
    int64_t count = 0;
  };
  std::map<std::string, Found> found_;
};

/// One of torch's recurrent layers or cells, or of ours.
bool is_recurrent(const torch::nn::Module& module);

/// How many numbers a weight's parameters are.
int64_t part_count(const HypercomplexWeight& weight);

/// Refuses two layers of which one is recurrent and the other is not, or does something else with its gates
/// or the outputs of its directions. `name`: as fill_nearest shows it.
void require_same_recurrence(const torch::nn::Module& real, const torch::nn::Module& twin,
                             const std::string& name);

}  // namespace quatrain::nn
