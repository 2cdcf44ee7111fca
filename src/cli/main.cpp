#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli/command_line.h"

namespace {

// Where the standard files are closed, the first files of a run would take their numbers, and what is printed
// would go into them. The standard output is one that cannot be written then, so that no answer is lost
// unsaid.
void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

}  // namespace

int main(int count, char** words) {
  open_standard_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the limit (ulimit -f) is an error like a full disk
  quatrain::cli::Program program;
  return program.run(count, words);
}
