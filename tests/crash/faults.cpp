#include "crash/faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>

namespace quatrain::test {
namespace {

// Shared with the child, so that its count outlives it.
struct Shared {
  std::atomic<int64_t> calls{0};
};
Shared* shared = nullptr;
Plan plan;

// Counts a call; true where it shall fail. `tear` does half of it.
template <typename Tear>
bool fails(const Tear& tear) {
  if (!shared) return false;
  const int64_t call = ++shared->calls;
  if (call < plan.from || call >= plan.from + plan.count) return false;
  if (plan.fault == Fault::torn) tear();
  if (plan.fault == Fault::kill || plan.fault == Fault::torn) ::kill(::getpid(), SIGKILL);
  if (plan.fault != Fault::full) return false;
  errno = ENOSPC;
  return true;
}

bool fails() {
  return fails([] {});
}

// The C library's own function.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

Ending run_child(const Plan& wanted, const std::function<void()>& work) {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const counts = new (memory) Shared;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    plan = wanted;
    shared = counts;
    int code = 0;
    try {
      work();
    } catch (const std::exception& error) {
      code = 1;
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Ending ending;
  ending.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  ending.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ending.calls = counts->calls;
  ::munmap(memory, sizeof(Shared));
  return ending;
}

void end_faults() {
  shared = nullptr;
}

}  // namespace quatrain::test

using quatrain::test::fails;
using quatrain::test::next;

// Only what writes into files counts: the standard streams stay out.
#define QUATRAIN_FILE(fd) ((fd) > STDERR_FILENO)

#pragma GCC visibility push(default)
extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (QUATRAIN_FILE(fd) && fails([&] { real(fd, data, size / 2); })) return -1;
  return real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  static auto* const real = next<ssize_t(int, const struct iovec*, int)>("writev");
  if (QUATRAIN_FILE(fd) && fails([&] { real(fd, parts, 1); })) return -1;
  return real(fd, parts, count);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (QUATRAIN_FILE(fd) && fails([&] { real(fd, data, size / 2, at); })) return -1;
  return real(fd, data, size, at);
}

// Only a power cut asks for what these do, and they take most of the time.
int fsync(int) {
  return fails() ? -1 : 0;
}

int fdatasync(int) {
  return fails() ? -1 : 0;
}

int ftruncate(int fd, off_t size) noexcept {
  static auto* const real = next<int(int, off_t)>("ftruncate");
  return fails() ? -1 : real(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return fails() ? -1 : real(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return fails() ? -1 : real(path, mode);
}

// A full disk still removes: these can only be died at.
int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  fails();
  return real(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  fails();
  return real(folder, path, flags);
}

int rmdir(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("rmdir");
  fails();
  return real(path);
}

int remove(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("remove");
  fails();
  return real(path);
}

}  // extern "C"
#pragma GCC visibility pop
