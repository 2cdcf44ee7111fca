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

inline void* counted_or_null(std::size_t size) noexcept {
  ++allocations;
  if (size >= kLarge) ++large_allocations;
  return std::malloc(size > 0 ? size : 1);
}
inline void* counted(std::size_t size) {
  if (void* memory = counted_or_null(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace quatrain::test

void* operator new(std::size_t size) {
  return quatrain::test::counted(size);
}
void* operator new[](std::size_t size) {
  return quatrain::test::counted(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return quatrain::test::counted_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return quatrain::test::counted_or_null(size);
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
