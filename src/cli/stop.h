#pragma once

#include <signal.h>

#include <array>
#include <atomic>

namespace quatrain::cli {

/// Thrown where work ends because the user asked: not an error.
struct Stopped {};

/// From here on the first SIGINT, SIGTERM or SIGHUP sets stop_requested(); a second one ends the program at
/// once.
void catch_stops();
/// The same for work that leaves files: a closed pipe at the output does not end it either.
void watch_for_stop();
/// Set by a signal; the trainer looks at it after each step.
const std::atomic<bool>& stop_requested();
/// Throws Stopped once it is set.
void throw_if_stopped();
/// 128 + the signal's number, as a shell reports it.
int stop_code();

/// While it lives, a signal that would end the program waits; a second one does not.
class HeldStop {
 public:
  HeldStop();
  ~HeldStop();
  HeldStop(const HeldStop&) = delete;
  HeldStop& operator=(const HeldStop&) = delete;

 private:
  std::array<struct sigaction, 3> before_{};
};

}  // namespace quatrain::cli
