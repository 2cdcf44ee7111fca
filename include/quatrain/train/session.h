#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "quatrain/api.h"

namespace torch::nn {
class Module;
}

namespace quatrain::train {

/// What a device is called: "cpu", "cuda" (the first one) or "cuda:N". Another name is a
/// std::invalid_argument. Whether the device is there is not asked.
QUATRAIN_API at::Device parse_device(const std::string& name);

/// Why nothing can be computed on a device, or "". Loads the libraries that it needs.
QUATRAIN_API std::string device_problem(at::Device device);

/// Where a model's parameters are, and so where its input shall be; the CPU for a model without any.
QUATRAIN_API at::Device device_of(const torch::nn::Module& model);

/// The device of this process, its rank among all processes that train together, and its random generators.
/// Training code asks the session for these.
class QUATRAIN_API Session {
 public:
  Session() = default;
  /// Torch's CUDA libraries are loaded here and only here, since they cost 400 MB: make the session before
  /// anything else of torch is called. A device that is not there is a std::runtime_error.
  explicit Session(const std::string& device);

  at::Device device() const { return device_; }
  std::string device_kind() const;         ///< "cpu" or "cuda", as checkpoints and results name it
  int64_t rank() const { return 0; }       ///< of this process among all that train together
  int64_t processes() const { return 1; }  ///< all of them

  void move(torch::nn::Module& model) const;

  /// Seeds the generators of the CPU and of the device.
  void seed(uint64_t seed) const;
  using Generators = std::vector<std::pair<std::string, at::Tensor>>;
  /// Their states, by the kind of device: "cpu", and "cuda" where that is the device.
  Generators generators() const;
  /// Restores such states. Returns false where the device's state is missing; its generator is seeded then.
  bool set_generators(const Generators& states, uint64_t seed) const;

 private:
  at::Device device_ = at::kCPU;
};

}  // namespace quatrain::train
