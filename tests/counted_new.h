#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

/// Counts every call of operator new in a program. One file of it may include this.
namespace quatrain::test {

inline std::atomic<int64_t> allocations{0};
inline constexpr std::size_t kLarge = 1024;
inline std::atomic<int64_t> large_allocations{0};  ///< of at least kLarge bytes

inline void* counted(std::size_t size) {
  ++allocations;
  if (size >= kLarge) ++large_allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace quatrain::test

void* operator new(std::size_t size) {
  return quatrain::test::counted(size);
}
void* operator new[](std::size_t size) {
  return quatrain::test::counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
