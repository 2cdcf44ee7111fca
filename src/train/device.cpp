#include <charconv>
#include <stdexcept>

#include "quatrain/train/session.h"

namespace quatrain::train {

at::Device parse_device(const std::string& name) {
  constexpr std::string_view kCuda = "cuda";
  if (name == "cpu") return at::kCPU;
  if (name == kCuda) return {at::kCUDA, 0};
  int index = -1;
  if (name.starts_with(kCuda) && name.size() > kCuda.size() && name[kCuda.size()] == ':') {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kCuda.size() + 1, end, index);
    constexpr int kMost = 127;
    if (error == std::errc() && stop == end && index >= 0 && index <= kMost)
      return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
  }
  throw std::invalid_argument("the device must be cpu, cuda or cuda:N, got '" + name + "'");
}

}  // namespace quatrain::train
