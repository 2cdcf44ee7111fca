#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace quatrain::cli {

/// What long work is doing, and for how long already, in a line on the standard error. On a terminal it is
/// drawn anew each second and gone at the end; nothing for work of less than a second. Elsewhere what is told
/// is a line each; where nothing was written for half a minute, the latest is, with the time so far, and then
/// ever more rarely. Any thread may call it.
class WorkLine {
 public:
  explicit WorkLine(std::FILE* out = stderr);
  /// The same, told whether `out` is a terminal, and after how many seconds a line is drawn anew or written.
  WorkLine(std::FILE* out, bool terminal, double seconds);
  ~WorkLine();
  WorkLine(const WorkLine&) = delete;
  WorkLine& operator=(const WorkLine&) = delete;

  /// What the work has come to, where that is worth a line of a log.
  void tell(const std::string& text);
  /// The same where there is more of it than a log should have.
  void show(const std::string& text);
  /// So that something else can be printed: the line comes back with what is told or shown next.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw_while_working();
  void draw(Clock::time_point now);
  void wait_from(Clock::time_point now);
  void erase();

  std::FILE* out_;
  bool terminal_;
  Clock::duration between_;
  Clock::time_point begun_ = Clock::now(), due_ = begun_ + between_;
  std::string text_;
  bool drawn_ = false, ends_ = false;
  std::mutex mutex_;
  std::condition_variable ending_;
  std::thread thread_;  // draws while the work goes on; the last member, since it uses the others
};

/// work(tell), while a line shows what it tells.
template <class Work>
auto while_telling(const Work& work) {
  WorkLine line;
  return work([&line](const std::string& text) { line.tell(text); });
}

}  // namespace quatrain::cli
