#pragma once

#include <ATen/autocast_mode.h>

namespace quatrain::train {

/// Computes in bfloat16 on a kind of device while it lives, where it is wanted: a run is scored and used as
/// it was trained.
class Autocast {
 public:
  explicit Autocast(bool on, at::DeviceType device = at::kCPU)
      : device_(device),
        before_(at::autocast::is_autocast_enabled(device)),
        type_before_(at::autocast::get_autocast_dtype(device)) {
    if (on) at::autocast::set_autocast_dtype(device, at::kBFloat16);
    at::autocast::set_autocast_enabled(device, on);
  }
  ~Autocast() {
    // Cast copies of weights must not outlive the step that changes these.
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, before_);
    at::autocast::set_autocast_dtype(device_, type_before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool before_;
  at::ScalarType type_before_;
};

}  // namespace quatrain::train
