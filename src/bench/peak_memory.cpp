#include "bench/peak_memory.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace quatrain::bench {
namespace {

/// A line of /proc/self/status, in bytes.
int64_t status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  throw std::runtime_error("/proc/self/status has no " + name);
}

int64_t measure(const std::function<std::function<void()>()>& make) {
  // What is freed goes back to the system, whatever the process does with it: no gaps between blocks count.
  for (const int option : {M_MMAP_THRESHOLD, M_TRIM_THRESHOLD}) ::mallopt(option, 1 << 17);
  ::mallopt(M_MMAP_MAX, 1 << 16);
  const int64_t before = status("RssAnon");
  const auto work = make();
  work();
  work();
  malloc_trim(0);
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  if (!reset) throw std::runtime_error("/proc/self/clear_refs cannot be written");
  work();
  return status("VmHWM") - status("RssFile") - status("RssShmem") - before;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 512> part{};
  for (ssize_t count = 0; (count = ::read(descriptor, part.data(), part.size())) != 0;) {
    if (count > 0) text.append(part.data(), static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "peak_memory");
  }
  return text;
}

}  // namespace

int64_t peak_memory(const std::function<std::function<void()>()>& make) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "peak_memory: pipe");
  malloc_trim(0);
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    for (const int end : ends) ::close(end);
    throw std::system_error(error, std::generic_category(), "peak_memory: fork");
  }
  if (child == 0) {
    std::string answer;
    try {
      answer = std::to_string(measure(make));
    } catch (const std::exception& error) {
      answer = std::string("!") + error.what();
      answer.resize(std::min(answer.find('\n'), answer.size()));  // torch's have a backtrace below
    } catch (...) {                                               // nothing goes on in a copy of the parent
      answer = "!it was stopped";
    }
    const bool written = ::write(ends[1], answer.data(), answer.size()) >= 0;
    ::_exit(written ? 0 : 1);  // nothing of the parent is flushed or destroyed here
  }
  ::close(ends[1]);
  const std::string answer = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (answer.empty()) throw std::runtime_error("measuring memory: the process ended without an answer");
  if (answer.front() == '!') throw std::runtime_error("measuring memory: " + answer.substr(1));
  return std::stoll(answer);
}

}  // namespace quatrain::bench
