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
      thread_([this] { repeat(); }) {}

WorkLine::~WorkLine() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  thread_.join();
  if (drawn_) std::fputs(kClearRow, out_);
  std::fflush(out_);
}

void WorkLine::tell(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ = printable(text);
  if (terminal_) return;
  told_ = Clock::now();
  std::fprintf(out_, "%s\n", text_.c_str());
  std::fflush(out_);
}

void WorkLine::repeat() {
  std::unique_lock lock(mutex_);
  while (!ending_.wait_until(lock, told_ + between_, [this] { return ends_; })) {
    const auto now = Clock::now();
    if (now < told_ + between_) continue;  // something was told meanwhile
    told_ = now;
    if (!terminal_) between_ = std::max(between_, now - begun_);
    if (!text_.empty()) show(now - begun_);
  }
}

void WorkLine::show(Clock::duration passed) {
  const std::string time = duration(std::chrono::duration<double>(passed).count());
  drawn_ = terminal_;
  if (terminal_)
    std::fprintf(out_, "%s%s", kClearRow, cut_to_row(text_ + "  " + time, out_).c_str());
  else
    std::fprintf(out_, "%s (%s so far)\n", text_.c_str(), time.c_str());
  std::fflush(out_);
}

}  // namespace quatrain::cli
