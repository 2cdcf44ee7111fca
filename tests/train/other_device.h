#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

/// A second device where there is none: meta tensors are on one, and an operation that meets a tensor which
/// has stayed on the CPU is an error.
namespace quatrain::test {

// What no C++ function of torch does: a module whose tensors are of another device, without their numbers.
inline void to_meta(torch::nn::Module& module) {
  auto tensors = module.parameters();
  for (const auto& buffer : module.buffers()) tensors.push_back(buffer);
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor there = at::empty_like(tensor, tensor.options().device(at::kMeta));
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(there.storage());
    tensor.unsafeGetTensorImpl()->_change_backend_component_keys(at::kMeta);
  }
}

// Some of torch's operators have shapes for meta tensors in Python alone: here the CPU's own are asked, over
// zeros. A tensor that is on the CPU with more than one number has stayed behind.
inline void by_shape(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto& returns = op.schema().returns();
  const size_t base = stack->size() - arguments.size();
  const std::vector<c10::IValue> given(stack->begin() + static_cast<std::ptrdiff_t>(base), stack->end());
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].isTensor() || !given[i].toTensor().defined()) continue;
    const at::Tensor tensor = given[i].toTensor();
    TORCH_CHECK(tensor.is_meta() || tensor.numel() <= 1, op.operator_name(), " met a tensor on the CPU");
    (*stack)[base + i] = at::zeros_like(tensor, at::kCPU);
  }
  op.callBoxed(stack);
  for (size_t o = 0; o < returns.size(); ++o) {
    c10::IValue& value = (*stack)[base + o];
    if (!value.isTensor()) continue;
    at::Tensor result = value.toTensor().to(at::kMeta);
    for (size_t i = 0; i < given.size(); ++i)  // what was written into, and is given back
      if (const auto* into = arguments[i].alias_info();
          into && into->isWrite() && returns[o].alias_info() && *into == *returns[o].alias_info())
        result = given[i].toTensor().resize_(result.sizes());
    value = result;
  }
}

inline std::unique_ptr<torch::Library> shapes_of_all() {
  auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::Meta,
                                                  __FILE__, __LINE__);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!name.name.starts_with("aten::") || !op->hasSchema()) continue;
    bool known = false;
    for (const auto key : {c10::DispatchKey::Meta, c10::DispatchKey::CompositeImplicitAutograd,
                           c10::DispatchKey::CompositeExplicitAutograd,
                           c10::DispatchKey::CompositeExplicitAutogradNonFunctional})
      known = known || op->hasKernelForDispatchKey(key);
    if (known || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    const std::string full =
        name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&by_shape>());
  }
  return library;
}

}  // namespace quatrain::test
