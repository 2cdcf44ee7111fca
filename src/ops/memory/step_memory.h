#pragma once

#include <cstdint>
#include <memory>

#include "quatrain/api.h"

namespace quatrain::ops {

/// Memory of a step that is done again and again with tensors of the same sizes, such as one word of a
/// decoder or one frame of a recurrent layer. While a guard lives, every CPU tensor that its thread makes
/// takes a block of this memory, and a tensor that dies gives its block back to it, whichever thread it dies
/// on. So a step takes nothing from the system once the steps before it were as large. Where guards nest, the
/// outermost one's memory is used.
///
/// A block lives as long as the memory, and one that a tensor has as long as that too. The first guard of a
/// process puts an allocator before ATen's; without a guard that passes everything on.
class QUATRAIN_API StepMemory {
 public:
  StepMemory();
  ~StepMemory();
  StepMemory(const StepMemory&) = delete;
  StepMemory& operator=(const StepMemory&) = delete;

  class QUATRAIN_API Guard {
   public:
    explicit Guard(const StepMemory& memory);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    bool outermost_;
  };

  /// While one lives, tensors of its thread take nothing of a guard's memory: they will outlive it.
  class QUATRAIN_API Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::shared_ptr<class BlockPool> paused_;
  };

  /// Blocks that were taken from the system so far.
  int64_t blocks() const;

 private:
  std::shared_ptr<class BlockPool> pool_;
};

}  // namespace quatrain::ops
