#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace quatrain::test {

/// While one lives, it counts the blocks that tensors of its thread take from the system; those of a
/// StepMemory that it has already are none.
class SystemMemory {
 public:
  int64_t blocks() const { return counter_->blocks; }
  /// Bytes of the largest of them.
  int64_t largest() const { return counter_->largest; }

 private:
  struct Counter final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
      if (bytes > 0) ++blocks;
      largest = std::max(largest, bytes);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t blocks = 0, largest = 0;
  };
  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace quatrain::test
