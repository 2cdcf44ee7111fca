#include "cli/stop.h"

#include <csignal>

namespace quatrain::cli {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> signal_number{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t held_signal = 0;

bool is_ignored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// The next one of any kind takes its usual effect; what is ignored stays so.
void let_next_through() {
  for (const int stop : kStops)
    if (!is_ignored(stop)) std::signal(stop, SIG_DFL);
}

void on_signal(int number) {
  signal_number = number;
  requested = true;
  let_next_through();
}

void hold(int number) {
  held_signal = number;
  let_next_through();
}

}  // namespace

HeldStop::HeldStop() {
  struct sigaction action {};
  action.sa_handler = hold;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  held_signal = 0;
  for (size_t i = 0; i < kStops.size(); ++i) {
    sigaction(kStops[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kStops[i], &action, nullptr);
  }
}

HeldStop::~HeldStop() {
  for (size_t i = 0; i < kStops.size(); ++i) sigaction(kStops[i], &before_[i], nullptr);
  if (held_signal != 0) std::raise(held_signal);
}

void catch_stops() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Under nohup a run outlives its terminal.
  if (!is_ignored(SIGHUP)) sigaction(SIGHUP, &action, nullptr);
}

void watch_for_stop() {
  catch_stops();
  std::signal(SIGPIPE, SIG_IGN);  // a run outlives whoever reads its log, too
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
