#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include "ops/memory/step_memory.h"
#include "quatrain/ops.h"

namespace quatrain::models {

/// How a decoder's step runs: without gradients, on the memory of the step before, and knowing how many bytes
/// of weights it reads. Autograd's part would be a fifth of what a small operator costs beside its
/// arithmetic.
struct StepGuards {
  StepGuards(ops::StepMemory& memory, int64_t weight_bytes)
      : memory(memory), traffic(static_cast<ops::Traffic>(weight_bytes)) {}

  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  ops::StepMemory::Guard memory;
  ops::TrafficGuard traffic;
};

}  // namespace quatrain::models
