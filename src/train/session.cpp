#include "quatrain/train/session.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <filesystem>
#include <stdexcept>
#include <typeinfo>

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;

// The folder of the torch that this process has loaded.
fs::path torch_folder() {
  Dl_info found{};
  return ::dladdr(reinterpret_cast<const void*>(&at::detail::getCUDAHooks), &found) && found.dli_fname
             ? fs::absolute(found.dli_fname).parent_path()
             : fs::path();
}

// Registers CUDA's operators and hooks with the torch that runs. Nothing here links them. Returns the
// problem.
std::string load_cuda(at::Device device) {
  const fs::path library = torch_folder() / "libtorch_cuda.so";
  if (!fs::exists(library)) return "this torch has no CUDA, because there is no '" + library.string() + "'";
  if (!::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL))
    return std::string("torch's CUDA libraries cannot be loaded (") + ::dlerror() + ")";
  const auto& hooks = at::detail::getCUDAHooks();  // made at the first call, of what is loaded then
  if (typeid(hooks) == typeid(at::CUDAHooksInterface))
    return "torch was used before its CUDA libraries were loaded; create the train::Session first";
  const auto devices = static_cast<int>(hooks.deviceCount());
  if (devices == 0) return "there is no CUDA device";
  if (device.index() >= devices)
    return "there is no such device, the last one is cuda:" + std::to_string(devices - 1);
  at::globalContext().lazyInitDevice(at::kCUDA);
  return "";
}

at::Generator generator_of(at::Device device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

at::Device device_of(const torch::nn::Module& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? at::Device(at::kCPU) : parameters.front().device();
}

std::string device_problem(at::Device device) {
  return device.is_cuda() ? load_cuda(device) : "";
}

Session::Session(const std::string& device) : device_(parse_device(device)) {
  if (const std::string problem = device_problem(device_); !problem.empty())
    throw std::runtime_error("--device " + device_.str() + ": " + problem + "; use cpu");
}

std::string Session::device_kind() const {
  return c10::DeviceTypeName(device_.type(), /*lower_case=*/true);
}

void Session::move(torch::nn::Module& model) const {
  model.to(device_);
}

void Session::seed(uint64_t seed) const {
  torch::manual_seed(seed);  // those of all devices
}

Session::Generators Session::generators() const {
  Generators states{{"cpu", generator_of(at::kCPU).get_state()}};
  if (!device_.is_cpu()) states.emplace_back(device_kind(), generator_of(device_).get_state());
  return states;
}

bool Session::set_generators(const Generators& states, uint64_t seed) const {
  this->seed(seed);
  bool own = false;
  for (const auto& [kind, state] : states) {
    if (kind == "cpu") generator_of(at::kCPU).set_state(state);
    if (kind != device_kind()) continue;
    own = true;
    generator_of(device_).set_state(state);
  }
  return own;
}

}  // namespace quatrain::train
