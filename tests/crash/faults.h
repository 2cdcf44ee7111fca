#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

/// Lets what a process does with files go wrong. The test program has functions of its own in the place of
/// the C library's (write, rename, fsync ...): each counts, and at a chosen call the process dies or the disk
/// is full.
namespace quatrain::test {

enum class Fault {
  none,
  kill,  ///< SIGKILL before the call
  torn,  ///< SIGKILL in the middle of it, where it writes; else before
  full,  ///< it fails: no space left on device
};

struct Plan {
  Fault fault = Fault::none;
  int64_t from = 0;   ///< the first call that goes wrong, from 1 on
  int64_t count = 1;  ///< calls that do (full)
};

/// How a child ended.
struct Ending {
  bool killed = false;
  int code = 0;       ///< its exit code
  int64_t calls = 0;  ///< what changed files
};

/// Runs `work` in a forked child under a plan; an exception out of it is exit code 1 (its text goes to the
/// standard error).
Ending run_child(const Plan& plan, const std::function<void()>& work);

/// In a child: nothing goes wrong from here on, and nothing counts.
void end_faults();

}  // namespace quatrain::test
