#include "cli/bench_run.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/json_file.h"
#include "cli/stop.h"

namespace quatrain::cli {

std::vector<int> threads_or_default(const std::vector<int>& asked) {
  return asked.empty() ? std::vector<int>{at::get_num_threads()} : asked;
}

bool measure_cases(size_t count, const std::function<void(size_t)>& measure) {
  const bool live = isatty(STDERR_FILENO) != 0;
  bool stopped = false;
  try {
    for (size_t i = 0; i < count; ++i) {
      throw_if_stopped();
      if (live) std::fprintf(stderr, "\rmeasuring %zu of %zu\033[K", i + 1, count);
      measure(i);
    }
  } catch (const Stopped&) {
    stopped = true;
  }
  if (live) std::fprintf(stderr, "\r\033[K");
  return stopped;
}

void publish(const std::string& table, const nlohmann::ordered_json& json, const std::string& file) {
  if (!file.empty()) write_json(json, file);
  if (file != "-") std::fputs(table.c_str(), stdout);
}

bool colours() {
  return isatty(STDOUT_FILENO) != 0;
}

}  // namespace quatrain::cli
