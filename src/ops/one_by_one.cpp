#include "ops/one_by_one.h"

#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/stack.h>

namespace quatrain::ops {

namespace {

constexpr int64_t kNone = -1;

/// The innermost batch that a tensor is of.
int64_t level_of(const at::Tensor& t) {
  const auto* batched = t.defined() ? at::maybeGetBatchedImpl(t) : nullptr;
  return batched ? batched->bdims().back().level() : kNone;
}

std::vector<at::Tensor> tensors_of(const c10::IValue& argument) {
  if (argument.isTensor()) return {argument.toTensor()};
  return argument.isTensorList() ? argument.toTensorVector() : std::vector<at::Tensor>();
}

/// Element i of the batch; what is not of it is the same for all.
at::Tensor element(const at::Tensor& t, int64_t level, int64_t i) {
  if (level_of(t) != level) return t;
  const auto* batched = at::maybeGetBatchedImpl(t);
  const int64_t dim = batched->bdims().back().dim();
  at::BatchDims others;
  for (const at::BatchDim& one : batched->bdims().slice(0, batched->bdims().size() - 1))
    others.emplace_back(one.level(), one.dim() - (one.dim() > dim ? 1 : 0));
  const at::Tensor value = batched->value().select(dim, i);
  return others.empty() ? value : at::makeBatched(value, std::move(others));
}

c10::IValue element(const c10::IValue& argument, int64_t level, int64_t i) {
  if (argument.isTensor()) return element(argument.toTensor(), level, i);
  if (!argument.isTensorList()) return argument;
  c10::List<at::Tensor> list;
  for (const at::Tensor& t : argument.toTensorVector()) list.push_back(element(t, level, i));
  return list;
}

void loop(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t inputs = op.schema().arguments().size(), outputs = op.schema().returns().size();
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, inputs);
  int64_t level = kNone, count = 0;  // of the innermost batch of all, and how many elements it has
  for (const auto& argument : arguments)
    for (const at::Tensor& t : tensors_of(argument)) {
      if (level_of(t) <= level) continue;
      const auto* batched = at::maybeGetBatchedImpl(t);
      level = level_of(t), count = batched->value().size(batched->bdims().back().dim());
    }
  TORCH_CHECK(count > 0, op.schema().name(), ": a batch of gradients must not be empty");
  std::vector<std::vector<at::Tensor>> results(outputs);
  for (int64_t i = 0; i < count; ++i) {
    torch::jit::Stack call;
    for (const auto& argument : arguments) call.push_back(element(argument, level, i));
    op.callBoxed(call);
    for (size_t k = 0; k < outputs; ++k) results[k].push_back(call[k].toTensor());
  }
  for (const auto& of_all : results)
    stack->emplace_back(of_all[0].defined() ? at::addBatchDim(at::stack(of_all), level, 0) : at::Tensor());
}

}  // namespace

torch::CppFunction one_by_one() {
  return torch::CppFunction::makeFromBoxedFunction<&loop>();
}

}  // namespace quatrain::ops
