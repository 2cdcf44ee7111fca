#pragma once

#include <torch/library.h>

namespace quatrain::ops {

/// A kernel for the key Batched, by which torch.autograd.grad(is_grads_batched=True) and what is built on it
/// call operators: one call for each element of the batch, and the results stacked. It serves every operator
/// that returns tensors and changes no argument. PyTorch's own loop takes no lists of tensors.
torch::CppFunction one_by_one();

}  // namespace quatrain::ops
