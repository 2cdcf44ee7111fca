#include "ops/memory/step_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quatrain::ops {

// Blocks of sizes that are powers of two, which no tensor has now.
class BlockPool {
 public:
  // Null: none is left, or blocks are not kept any more.
  void* take(size_t size_class) {
    const std::lock_guard lock(mutex_);
    if (closed_) return nullptr;
    auto& idle = idle_[size_class];
    if (idle.empty()) {
      ++taken_;
      idle.reserve(static_cast<size_t>(taken_));  // giving back takes no memory, so it cannot fail
      return nullptr;
    }
    void* const block = idle.back();
    idle.pop_back();
    return block;
  }

  // False where blocks are not kept any more.
  bool give_back(void* block, size_t size_class) {
    const std::lock_guard lock(mutex_);
    if (!closed_) idle_[size_class].push_back(block);
    return !closed_;
  }

  // Keeps none from here on: tensors that are left, such as packed weights, may live long. Returns those that
  // lay idle.
  std::vector<void*> close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    std::vector<void*> all;
    for (auto& idle : idle_) {
      all.insert(all.end(), idle.begin(), idle.end());
      idle.clear();
    }
    return all;
  }

  int64_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  mutable std::mutex mutex_;
  std::array<std::vector<void*>, 64> idle_;
  int64_t taken_ = 0;
  bool closed_ = false;
};

namespace {

using SharedPool = std::shared_ptr<BlockPool>;

// The pool of the tensors that this thread makes; null: none.
SharedPool& current() {
  static thread_local SharedPool pool;
  return pool;
}

// Takes memory of the thread's pool where it has one. A block is known by its address, so that one deleter
// serves its memory and the allocator's before it, as callers of raw_allocate need it.
class StepAllocator final : public c10::Allocator {
 public:
  // As long as the process, since tensors may outlive static objects.
  static StepAllocator& instance() {
    static StepAllocator* const allocator = [] {
      auto* const made = new StepAllocator(*c10::GetCPUAllocator());
      c10::SetCPUAllocator(made);
      return made;
    }();
    return *allocator;
  }

  c10::DataPtr allocate(size_t bytes) override {
    const SharedPool& pool = current();
    if (!pool || bytes == 0) return base_.allocate(bytes);
    void* const memory = take(pool, bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  void free(const std::vector<void*>& blocks) {
    for (void* block : blocks) forget(block);
  }

 private:
  struct Owner {
    SharedPool pool;
    size_t size_class;
  };

  explicit StepAllocator(c10::Allocator& base) : base_(base) {}

  void* take(const SharedPool& pool, size_t bytes) {
    const auto size_class = static_cast<size_t>(std::bit_width(bytes - 1));
    if (void* const block = pool->take(size_class)) return block;
    void* const block = base_.raw_allocate(size_t{1} << size_class);
    const std::unique_lock lock(mutex_);
    owners_.emplace(block, Owner{pool, size_class});
    count_.store(owners_.size());
    return block;
  }

  static void release(void* memory) {
    StepAllocator& self = instance();
    if (self.count_.load() == 0) return self.base_.raw_deallocate(memory);
    {
      const std::shared_lock lock(self.mutex_);
      const auto found = self.owners_.find(memory);
      if (found == self.owners_.end()) return self.base_.raw_deallocate(memory);
      if (found->second.pool->give_back(memory, found->second.size_class)) return;
    }
    self.forget(memory);
  }

  void forget(void* block) {
    {
      const std::unique_lock lock(mutex_);
      owners_.erase(block);
      count_.store(owners_.size());
    }
    base_.raw_deallocate(block);
  }

  c10::Allocator& base_;
  std::shared_mutex mutex_;
  std::unordered_map<void*, Owner> owners_;  // of each block
  std::atomic<size_t> count_ = 0;            // of them
};

}  // namespace

StepMemory::StepMemory() : pool_(std::make_shared<BlockPool>()) {
  StepAllocator::instance();
}
StepMemory::~StepMemory() {
  StepAllocator::instance().free(pool_->close());
}

StepMemory::Guard::Guard(const StepMemory& memory) : outermost_(!current()) {
  if (outermost_) current() = memory.pool_;
}
StepMemory::Guard::~Guard() {
  if (outermost_) current().reset();
}

StepMemory::Pause::Pause() : paused_(std::exchange(current(), nullptr)) {}
StepMemory::Pause::~Pause() {
  current() = std::move(paused_);
}

int64_t StepMemory::blocks() const {
  return pool_->taken();
}

}  // namespace quatrain::ops
