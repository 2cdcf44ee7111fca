#include "cli/gnuplot.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace quatrain::cli {

std::string run_gnuplot(const std::string& script) {
  // Uses a file instead of a pipe, so that a slow reader blocks nobody.
  const std::unique_ptr<std::FILE, decltype(&std::fclose)> input(std::tmpfile(), &std::fclose),
      picture(std::tmpfile(), &std::fclose), said(std::tmpfile(), &std::fclose);
  if (!input || !picture || !said || std::fputs(script.c_str(), input.get()) < 0 ||
      std::fflush(input.get()) != 0)
    throw std::runtime_error("cannot write a temporary file for gnuplot: is the disk full?");
  std::rewind(input.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(input.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(picture.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(said.get()), STDERR_FILENO);
  std::array<char*, 2> words{const_cast<char*>("gnuplot"), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "gnuplot", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 127 << 8;
  if (error == 0)
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (error == ENOENT || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
    throw std::runtime_error(
        "gnuplot draws, and it is not installed: get it (Debian: apt-get install gnuplot-nox), or draw "
        "metrics.jsonl with what you have");
  const auto content = [](std::FILE* file, size_t most) {
    std::string text(most, '\0');
    std::rewind(file);
    text.resize(std::fread(text.data(), 1, most, file));
    return text;
  };
  struct stat facts {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && ::fstat(::fileno(picture.get()), &facts) == 0)
    return content(picture.get(), static_cast<size_t>(facts.st_size));
  throw std::runtime_error("gnuplot failed: " + content(said.get(), 400));
}

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("''") : std::string(1, c < ' ' && c >= 0 ? ' ' : c);
  return quoted + "'";
}

}  // namespace quatrain::cli
