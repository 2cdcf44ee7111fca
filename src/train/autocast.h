#pragma once

#include <ATen/autocast_mode.h>

namespace quatrain::train {

/// Computes in bfloat16 on the CPU while it lives, where it is wanted: a run is scored and used as it was
/// trained.
class Autocast {
 public:
  explicit Autocast(bool on) : before_(at::autocast::is_autocast_enabled(at::kCPU)) {
    if (on) at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, on);
  }
  ~Autocast() {
    // Cast copies of weights must not outlive the step that changes these.
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool before_;
};

}  // namespace quatrain::train
