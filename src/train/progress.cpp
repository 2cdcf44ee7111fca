#include "quatrain/train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "support/numbers.h"
#include "support/terminal.h"

namespace quatrain::train {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;
// A log of plain lines must not grow without bound: a run of a week has some hundreds of them.
constexpr double kSecondsBetweenLines = 5;
constexpr double kShareBetweenLines = 0.01;  // of the time so far

std::string bar(double share) {
  constexpr int kWidth = 20;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  return fmt::format("[{:-<{}}]", std::string(static_cast<size_t>(filled), '='), kWidth);
}

std::string line(const std::string& title, const Progress& p, bool with_bar) {
  const double share = p.steps > 0 ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 0;
  std::string text = title.empty() ? "" : title + "  ";
  if (with_bar) text += bar(share) + " ";
  text += fmt::format("step {}/{}", p.step, p.steps);
  if (p.loss) text += fmt::format("  loss {:.4f}", *p.loss);
  // The training loss stands before it.
  if (p.last) text += fmt::format("  {} {:.4f}", p.figure == "loss" ? "dev loss" : p.figure, *p.last);
  if (p.last && p.best && *p.best != *p.last) text += fmt::format(" (best {:.4f})", *p.best);
  switch (p.stage) {
    case Progress::Stage::training:
      return text +
             fmt::format("  {:.0f} {}/s  {} left", p.examples_per_second, p.unit, duration(p.seconds_left));
    case Progress::Stage::evaluating:
      return text + "  evaluating";
    case Progress::Stage::testing:
      return text + "  scoring the test set";
    case Progress::Stage::done:
      return text + fmt::format("  {:.0f} {}/s  {}", p.examples_per_second, p.unit, duration(p.seconds));
  }
  return text;
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, std::string title)
    : ProgressLine(out, std::move(title), ::isatty(::fileno(out)) != 0, kSecondsBetweenLines) {}

ProgressLine::ProgressLine(std::FILE* out, std::string title, bool terminal, double seconds_between)
    : out_(out),
      title_(std::move(title)),
      terminal_(terminal),
      between_(terminal ? kSecondsBetweenDraws : seconds_between) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressLine::show(const Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  const double between = terminal_ ? between_ : std::max(between_, kShareBetweenLines * progress.seconds);
  const bool due = !shown_ || std::chrono::duration<double>(now - *shown_).count() >= between;
  const bool done = progress.stage == Progress::Stage::done;
  // On a terminal a change of stage is seen at once; elsewhere it is worth no line of its own.
  if (!due && !done && !(terminal_ && progress.stage != Progress::Stage::training)) return;
  shown_ = now;
  clear();
  const std::string text = line(title_, progress, terminal_);
  write(terminal_ && !done ? cut_to_row(text, out_) : text);
  drawn_ = terminal_ && !done;
  if (!drawn_) std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressLine::message(const std::string& text) {
  clear();
  write(fmt::format("{}{}{}\n", title_, title_.empty() ? "" : "  ", text));
  std::fflush(out_);
}

// Not fmt::print, which throws where the reader is gone: training goes on.
void ProgressLine::write(const std::string& text) {
  std::fputs(text.c_str(), out_);
}

void ProgressLine::clear() {
  if (drawn_) write(kClearRow);
  drawn_ = false;
}

}  // namespace quatrain::train
