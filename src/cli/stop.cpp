#include "cli/stop.h"

#include <csignal>

namespace quatrain::cli {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> signal_number{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  signal_number = number;
  requested = true;
  // The next one of any kind takes its usual effect.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
}

}  // namespace

void watch_for_stop() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Under nohup a run outlives its terminal.
  struct sigaction before {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // and whoever reads its log
}

const std::atomic<bool>& stop_requested() {
  return requested;
}

void throw_if_stopped() {
  if (requested) throw Stopped{};
}

int stop_code() {
  return 128 + signal_number;
}

}  // namespace quatrain::cli
