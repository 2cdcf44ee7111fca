#include "cli/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cli/command_line.h"

namespace quatrain::cli {
namespace {

// Where the standard files are closed, the first files of a run would take their numbers, and what is printed
// would go into them. The standard output is one that cannot be written then, so that no answer is lost
// unsaid.
void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

int run(int count, char** words) {
  open_standard_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the limit (ulimit -f) is an error like a full disk
  Program program;
  return program.run(count, words);
}

}  // namespace

void run_process(int count, char** words) noexcept {
  const int code = run(count, words);
  // What is left is to take back each operator that torch registered, a third of the time of a short command.
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace quatrain::cli
