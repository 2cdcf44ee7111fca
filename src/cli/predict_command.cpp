#include <poll.h>
#include <sys/stat.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <system_error>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/ensembles.h"
#include "cli/lines.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "cli/work_line.h"
#include "data/audio_header.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/session.h"
#include "support/text.h"
#include "train/autocast.h"

namespace quatrain::cli {
namespace {

// The lines from `begin` on that are written together: whole ones, some 4 KiB.
size_t end_of_portion(const std::string& text, size_t begin) {
  constexpr size_t kMost = 1 << 12;  // a reader that pauses keeps no more waiting
  const size_t last = text.rfind('\n', begin + kMost - 1);
  return last != text.npos && last >= begin ? last + 1 : text.find('\n', begin) + 1;
}

// Whole lines, even where a signal ends the program.
void write(const std::vector<std::string>& answers) {
  std::string text;
  for (const auto& answer : answers) text += answer + "\n";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = end_of_portion(text, begin);
    const HeldStop held;
    while (begin < end) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data() + begin, end - begin);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw std::runtime_error("cannot write the standard output");
      begin += static_cast<size_t>(written);
    }
  }
}

// How many lines there were, and how many of them have an empty answer because they have none.
struct Progress {
  size_t lines = 0, unanswered = 0;
  int64_t all = 0;               // lines there are, where that is known
  std::optional<WorkLine> line;  // where the answers go elsewhere

  void show() {
    const auto so_far = static_cast<int64_t>(lines);
    if (line)
      line->show((all > 0 ? grouped(so_far) + " of " + counted(all, "line") : counted(so_far, "line")) +
                 " answered");
  }
};

// It would be in the way of answers that go to the same place and, on a terminal, of those that come there
// through a pipe and of lines that are typed.
bool shows_progress() {
  struct stat output {};
  struct stat errors {};
  if (::fstat(STDOUT_FILENO, &output) != 0 || ::fstat(STDERR_FILENO, &errors) != 0) return false;
  if (output.st_dev == errors.st_dev && output.st_ino == errors.st_ino) return false;
  return !::isatty(STDERR_FILENO) || (!::isatty(STDIN_FILENO) && !S_ISFIFO(output.st_mode));
}

// Answers lines, which follow those of `so_far` of what `place` names.
void answer_lines(tasks::Model& model, bool skips_bad, std::span<const std::string> lines,
                  const std::string& place, Progress& so_far) {
  for (;;) {
    const auto [answers, problem] = tasks::answer(model, lines);
    write(answers);
    so_far.lines += answers.size();
    so_far.show();
    if (problem.empty()) return;
    const std::string sentence = place + " " + std::to_string(so_far.lines + 1) + ": " + problem;
    if (!skips_bad && !model.answers_the_rest())
      throw std::runtime_error(sentence + " (--skip-bad answers the other lines)");
    if (so_far.line) so_far.line->clear();
    print_note("quatrain: " + sentence);
    write({""});
    ++so_far.lines, ++so_far.unanswered;
    so_far.show();
    lines = lines.subspan(answers.size() + 1);
  }
}

void answer_input(tasks::Model& model, bool skips_bad, Progress& so_far) {
  LineInput reader(STDIN_FILENO, kLongestLine);
  if (::isatty(STDIN_FILENO))
    std::fprintf(stderr, "%s a line; end with Ctrl-D\n", model.recipe().about().reads.c_str());
  for (;;) {
    const auto lines = reader.next(model.portion());
    if (lines.empty()) return;
    answer_lines(model, skips_bad, lines, "standard input, line", so_far);
  }
}

void answer_arguments(tasks::Model& model, bool skips_bad, const std::vector<std::string>& lines,
                      Progress& so_far) {
  so_far.all = static_cast<int64_t>(lines.size());
  while (so_far.lines < lines.size()) {
    const size_t count = std::min(model.portion(), lines.size() - so_far.lines);
    answer_lines(model, skips_bad, std::span(lines).subspan(so_far.lines, count), "argument", so_far);
  }
}

// Sound from the standard input, which a signal may end: what is in the pipe then was said before it.
class SoundInput {
 public:
  // The next bytes that are there; none at the end.
  size_t read(char* to, size_t most) {
    for (;;) {
      const bool stopped = stop_requested();
      if (stopped) most = std::min(most, left_);
      pollfd input{STDIN_FILENO, POLLIN, 0};
      const int ready = ::poll(&input, 1, stopped ? 0 : kPause);
      if (stopped && (ready == 0 || most == 0)) return 0;
      if (ready == 0) continue;
      const ssize_t got = ready > 0 ? ::read(STDIN_FILENO, to, most) : ready;
      if (got >= 0) {
        if (stopped) left_ -= static_cast<size_t>(got);
        return static_cast<size_t>(got);
      }
      if (errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "cannot read the standard input");
    }
  }

  // Enough bytes to know a file's format by, or all.
  size_t read_head(char* to) {
    constexpr size_t kHead = 8;
    size_t there = 0;
    while (there < kHead) {
      const size_t got = read(to + there, kHead - there);
      if (got == 0) break;
      there += got;
    }
    return there;
  }

 private:
  static constexpr int kPause = 100;  // milliseconds after which it looks for a signal, which any thread gets
  size_t left_ = 1 << 16;             // bytes to be read after one: what a pipe holds, not all of a file
};

// A file's header and its packed samples would be heard as noise.
void refuse_files(std::string_view head) {
  if (const std::string format(data::audio_format(head)); !format.empty())
    throw std::runtime_error(
        "standard input: --live reads raw samples, and this is a " + format +
        " file: pass its name to predict instead, or its samples (sox FILE -t s16 -c 1 -)");
}

void answer_sound(tasks::Model& model, int64_t rate) {
  const auto live = model.listen(rate);
  if (::isatty(STDIN_FILENO))
    throw std::runtime_error(
        "--live reads samples from a pipe, such as of: arecord -t raw -f S16_LE -c 1 -r RATE; the standard "
        "input is a terminal");
  catch_stops();
  SoundInput input;
  std::vector<char> bytes(1 << 15);
  size_t there = input.read_head(bytes.data());
  refuse_files({bytes.data(), there});
  size_t waiting = 0;  // an odd byte, of a sample that is not whole yet
  bool ended = false;  // an utterance, and nothing was said since
  std::vector<float> values;
  for (size_t got = there; got > 0; there = waiting + got) {
    const size_t samples = there / 2;
    values.resize(samples);
    for (size_t i = 0; i < samples; ++i) {
      const auto low = static_cast<uint8_t>(bytes[2 * i]), high = static_cast<uint8_t>(bytes[2 * i + 1]);
      values[i] = static_cast<float>(static_cast<int16_t>(low | high << 8)) / 32768;
    }
    waiting = there % 2;
    if (waiting) bytes[0] = bytes[there - 1];
    const auto lines = live->push(torch::from_blob(values.data(), {static_cast<int64_t>(samples)}));
    write(lines);
    if (!lines.empty()) ended = lines.back().empty();
    got = input.read(bytes.data() + waiting, bytes.size() - waiting);
  }
  // What was heard before a cut sample is not lost. A signal may cut one too.
  if (const std::string answer = live->finish(); !answer.empty() || !(waiting || ended)) write({answer});
  if (waiting && !stop_requested())
    throw std::runtime_error("standard input: the last sample is cut, it has one byte of two");
}

}  // namespace

int predict_command(const PredictArguments& arguments) {
  if (arguments.live && !arguments.lines.empty())
    throw UsageError("--live reads the standard input; leave the file out");
  const train::Session session(arguments.device);
  const auto model = tasks::load_run(arguments.run, parse_settings(arguments.settings));
  session.move(model->module());
  join_runs(*model, arguments.run, arguments.with, session);
  tasks::set_threads(model->recipe());
  const torch::NoGradGuard no_grad;
  const train::Autocast autocast(model->recipe().train.bf16, session.device().type());
  Progress progress;
  if (shows_progress()) progress.line.emplace();
  if (arguments.live)
    answer_sound(*model, arguments.rate);
  else if (arguments.lines.empty())
    answer_input(*model, arguments.skip_bad, progress);
  else
    answer_arguments(*model, arguments.skip_bad, arguments.lines, progress);
  progress.line.reset();
  if (const std::string text = model->summary(); !text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
  throw_if_stopped();
  if (progress.unanswered > 0)
    throw std::runtime_error(std::to_string(progress.unanswered) + " of " + std::to_string(progress.lines) +
                             " lines have no answer, they are empty lines among the answers");
  return kSuccess;
}

}  // namespace quatrain::cli
