#include "cli/work_line.h"

#include <unistd.h>

#include <algorithm>

#include "cli/console.h"
#include "support/numbers.h"
#include "support/terminal.h"

namespace quatrain::cli {
namespace {

constexpr double kSecondsBetweenDraws = 1, kSecondsBetweenLines = 30;

}  // namespace

WorkLine::WorkLine(std::FILE* out)
    : WorkLine(out, ::isatty(::fileno(out)) != 0,
               ::isatty(::fileno(out)) != 0 ? kSecondsBetweenDraws : kSecondsBetweenLines) {}

WorkLine::WorkLine(std::FILE* out, bool terminal, double seconds)
    : out_(out),
      terminal_(terminal),
      between_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
      thread_([this] { draw_while_working(); }) {}

WorkLine::~WorkLine() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  thread_.join();
  erase();
}

void WorkLine::tell(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ = text;
  if (terminal_) return;
  std::fprintf(out_, "%s\n", printable(text_).c_str());
  std::fflush(out_);
  wait_from(Clock::now());
}

void WorkLine::show(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ = text;
}

void WorkLine::clear() {
  const std::lock_guard lock(mutex_);
  text_.clear();  // or it would be drawn into what is printed
  erase();
}

void WorkLine::draw_while_working() {
  std::unique_lock lock(mutex_);
  // A copy of the time, which may change meanwhile.
  while (!ending_.wait_until(lock, Clock::time_point(due_), [this] { return ends_; })) {
    const auto now = Clock::now();
    if (now < due_) continue;  // something was told
    if (!text_.empty()) draw(now);
    wait_from(now);
  }
}

void WorkLine::draw(Clock::time_point now) {
  const std::string text = printable(text_);
  const std::string time = duration(std::chrono::duration<double>(now - begun_).count());
  drawn_ = terminal_;
  if (terminal_)
    std::fprintf(out_, "%s%s", kClearRow, cut_to_row(text + "  " + time, out_).c_str());
  else
    std::fprintf(out_, "%s (%s so far)\n", text.c_str(), time.c_str());
  std::fflush(out_);
}

// A log must not grow without bound: its lines come as far apart as the work has lasted.
void WorkLine::wait_from(Clock::time_point now) {
  due_ = now + (terminal_ ? between_ : std::max(between_, now - begun_));
}

void WorkLine::erase() {
  if (drawn_) std::fputs(kClearRow, out_);
  drawn_ = false;
  std::fflush(out_);
}

}  // namespace quatrain::cli
