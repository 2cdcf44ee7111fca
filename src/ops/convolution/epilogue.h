#pragma once

#include <optional>

#include "ops/convolution/convolution.h"
#include "ops/engine/engine.h"

namespace quatrain::ops {

/// An epilogue as the kernels take it: float32, the residual with its channels together.
class KernelEpilogue {
 public:
  explicit KernelEpilogue(const ConvolutionFinish& finish);
  /// False where the activation is one that the kernels have not: it comes after the rest, by `activation`.
  bool knows_activation() const { return activation_.has_value(); }
  engine::Epilogue epilogue() const;

 private:
  at::Tensor scale_, shift_, residual_;
  std::optional<kernels::cpu::Activation> activation_;
};

/// A result of the engine or of another way, finished. Where it is float32 with its channels together that is
/// one pass over it, and y is written over.
at::Tensor finished_on_cpu(at::Tensor y, const ConvolutionFinish& finish, at::MemoryFormat format);

}  // namespace quatrain::ops
