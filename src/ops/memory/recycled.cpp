#include "ops/memory/recycled.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

namespace quatrain::ops {

namespace {

class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = new Pool;  // never destroyed: tensors may outlive static objects
    return *pool;
  }

  /// Memory of at least so many bytes; how many it has.
  std::pair<void*, size_t> take(size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      // Not much more than asked for, so that a small batch does not hold a large one's memory. The largest
      // of what is too small makes way, as sizes that grow leave what they have outgrown.
      const auto found = idle_.lower_bound(bytes);
      if (found != idle_.end() && found->first <= 2 * bytes) {
        const std::pair result{found->second, found->first};
        idle_bytes_ -= found->first;
        idle_.erase(found);
        return result;
      }
      if (found != idle_.begin()) drop(std::prev(found));
    }
    bytes = (bytes + kPage - 1) / kPage * kPage;
    void* fresh = std::aligned_alloc(kPage, bytes);
    if (!fresh) throw std::bad_alloc();
    return {fresh, bytes};
  }

  void give_back(void* memory, size_t bytes) {
    if (bytes > static_cast<size_t>(kRecycledBytes)) return std::free(memory);  // no other makes way for it
    const std::lock_guard lock(mutex_);
    idle_.emplace(bytes, memory);
    idle_bytes_ += bytes;
    while (idle_bytes_ > static_cast<size_t>(kRecycledBytes)) drop(idle_.begin());
  }

  size_t idle_bytes() const {
    const std::lock_guard lock(mutex_);
    return idle_bytes_;
  }

 private:
  void drop(std::multimap<size_t, void*>::iterator entry) {
    std::free(entry->second);
    idle_bytes_ -= entry->first;
    idle_.erase(entry);
  }

  static constexpr size_t kPage = 4096;
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> idle_;
  size_t idle_bytes_ = 0;
};

}  // namespace

at::Tensor recycled_empty(at::IntArrayRef sizes) {
  const auto bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * sizeof(float);
  if (bytes == 0) return at::empty(sizes, at::kFloat);
  const auto [memory, size] = Pool::instance().take(bytes);
  return at::from_blob(
      memory, sizes, [size = size](void* p) { Pool::instance().give_back(p, size); }, at::kFloat);
}

size_t recycled_idle() {
  return Pool::instance().idle_bytes();
}

}  // namespace quatrain::ops
