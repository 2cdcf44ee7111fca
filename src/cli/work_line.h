#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace quatrain::cli {

/// What long work is doing, and for how long already. On a terminal one line that is drawn anew each second
/// and gone at the end, nothing for work of less than a second. Elsewhere what is told is a line each; the
/// last is repeated with the time so far where nothing else is told, ever more rarely.
class WorkLine {
 public:
  explicit WorkLine(std::FILE* out = stderr);
  /// The same, told whether `out` is a terminal, and after how many seconds a line is drawn anew or repeated.
  WorkLine(std::FILE* out, bool terminal, double seconds);
  ~WorkLine();
  WorkLine(const WorkLine&) = delete;
  WorkLine& operator=(const WorkLine&) = delete;

  void tell(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  void repeat();
  void show(Clock::duration passed);

  std::FILE* out_;
  bool terminal_;
  Clock::time_point begun_ = Clock::now(), told_ = begun_;
  Clock::duration between_;
  std::string text_;
  bool drawn_ = false, ends_ = false;
  std::mutex mutex_;
  std::condition_variable ending_;
  std::thread thread_;  // shows the time while the work goes on
};

/// work(tell), while a line shows what it tells.
template <class Work>
auto while_telling(const Work& work) {
  WorkLine line;
  return work([&line](const std::string& text) { line.tell(text); });
}

}  // namespace quatrain::cli
