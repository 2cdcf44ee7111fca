#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/atomic_file.h"
#include "support/text.h"
#include "train/own_json.h"
#include "train/run_files.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The lines of a file that a checkpoint has made, of those that are whole.
struct Kept {
  std::string text;
  int64_t lines = 0;
  int64_t damaged = 0;    // lines that are not as they were written
  bool is_prefix = true;  // of the file
};

Kept kept_lines(std::ifstream& file, int64_t step, int64_t evaluated_step) {
  Kept kept;
  bool gap = false;
  for (std::string line; std::getline(file, line);) {
    const bool ended = !file.eof();
    const Json record = parse_record<Json>(line);
    if (!ended && record.is_discarded()) break;  // torn, as a kill leaves it
    kept.damaged += record.is_discarded();
    if (record.is_discarded() || record["step"] > (record["kind"] == "evaluation" ? evaluated_step : step)) {
      gap = true;
      continue;
    }
    kept.is_prefix = kept.is_prefix && !gap && ended;
    kept.text += line + '\n';
    ++kept.lines;
  }
  return kept;
}

constexpr int64_t kEach = std::numeric_limits<int64_t>::max();

}  // namespace

std::optional<int64_t> whole_lines(const fs::path& run_folder) {
  const fs::path path = run_folder / kMetricsFile;
  if (!fs::exists(path)) return std::nullopt;
  std::ifstream file = open_named(path);
  const Kept kept = kept_lines(file, kEach, kEach);
  const bool whole = kept.damaged == 0 && kept.text.size() == fs::file_size(path);
  return whole ? std::optional(kept.lines) : std::nullopt;
}

Metrics::Metrics(const fs::path& run_folder) : Metrics(run_folder, kEach, kEach, 0) {}

Metrics::Metrics(const fs::path& run_folder, int64_t step, int64_t evaluated_step, int64_t log_every)
    : path_(run_folder / kMetricsFile), log_every_(log_every) {
  Kept kept;
  if (fs::exists(path_)) {
    std::ifstream file = open_named(path_);
    if (step > 0) kept = kept_lines(file, step, evaluated_step);
  }
  if (!kept.is_prefix) write_text(path_, kept.text);
  damaged_ = kept.damaged;
  lines_ = kept.lines;
  size_ = static_cast<int64_t>(kept.text.size());
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw std::runtime_error("cannot write '" + path_.string() + "': " + std::strerror(errno));
  sync();
}

Metrics::~Metrics() {
  if (fd_ >= 0) ::close(fd_);
}

std::string Metrics::losses(int64_t expected) const {
  if (damaged_ > 0)
    return "metrics.jsonl: lines that were damaged and are dropped: " + std::to_string(damaged_);
  if (lines_ < expected) return "metrics.jsonl: lines that are missing: " + std::to_string(expected - lines_);
  return "";
}

void Metrics::training(int64_t step, int64_t epoch, double loss, double learning_rate, double gradient_norm,
                       double examples_per_second) {
  append(Json{{"kind", "training"},
              {"step", step},
              {"epoch", epoch},
              {"loss", loss},
              {"learning_rate", learning_rate},
              {"gradient_norm", gradient_norm},
              {"examples_per_second", examples_per_second}}
             .dump());
}

void Metrics::evaluation(int64_t step, const std::string& split, const Figures& figures, double seconds) {
  append(Json{
      {"kind", "evaluation"}, {"step", step}, {"split", split}, {"figures", figures}, {"seconds", seconds}}
             .dump());
}

void Metrics::skipped(int64_t step, int64_t epoch, const std::string& what, const std::string& batch) {
  append(
      Json{{"kind", "skipped"}, {"step", step}, {"epoch", epoch}, {"what", what}, {"batch", batch}}.dump());
}

void Metrics::append(const std::string& object) {
  pending_ += with_checksum(object) + '\n';
  ++lines_;
  flush();
}

// What does not go in wholly is taken back: the file ends with a line's end.
bool Metrics::flush() {
  size_t done = 0;
  if (::ftruncate(fd_, size_) != 0) return false;
  while (done < pending_.size()) {
    const ssize_t written =
        ::pwrite(fd_, pending_.data() + done, pending_.size() - done, size_ + static_cast<int64_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      (void)!::ftruncate(fd_, size_);
      errno = error;
      return false;
    }
    done += static_cast<size_t>(written);
  }
  size_ += static_cast<int64_t>(done);
  pending_.clear();
  return true;
}

void Metrics::sync() {
  if (!flush() || ::fdatasync(fd_) != 0)
    throw std::runtime_error("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

}  // namespace quatrain::train
