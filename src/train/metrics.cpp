#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "support/atomic_file.h"
#include "train/own_json.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What of a line decides whether it stays.
struct Mark {
  std::string kind;
  int64_t step;
};

std::optional<Mark> mark_of(const std::string& line) {
  const Json record = parse_own<Json>(line);
  if (!is_record(record)) return std::nullopt;
  return Mark{record["kind"], record["step"]};
}

// The lines of a file that `stays` wants, of those that are whole.
struct Kept {
  std::string text;
  int64_t damaged = 0;    // lines that are none
  bool is_prefix = true;  // of the file
};

Kept kept_lines(const fs::path& path, const std::function<bool(const Mark&)>& stays) {
  Kept kept;
  bool gap = false;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto mark = mark_of(line);
    kept.damaged += !mark;
    if (!mark || !stays(*mark)) {
      gap = true;
      continue;
    }
    kept.is_prefix = kept.is_prefix && !gap;
    kept.text += line + '\n';
  }
  return kept;
}

}  // namespace

Metrics::Metrics(const fs::path& run_folder, int64_t step, int64_t evaluated_step, int64_t log_every,
                 int64_t most_lines)
    : path_(run_folder / "metrics.jsonl"),
      log_every_(log_every),
      most_lines_(most_lines),
      thinned_to_(log_every) {
  Kept kept;
  if (step > 0)
    kept = kept_lines(path_, [&](const Mark& mark) {
      return mark.step <= (mark.kind == "evaluation" ? evaluated_step : step);
    });
  if (!kept.is_prefix) write_text(path_, kept.text);
  damaged_ = kept.damaged;
  open();
  size_ = static_cast<int64_t>(kept.text.size());
  sync();
}

Metrics::~Metrics() {
  if (fd_ >= 0) ::close(fd_);
}

void Metrics::open() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw std::runtime_error("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

int64_t Metrics::spacing(int64_t step) const {
  int64_t spacing = log_every_;
  while (step / spacing > most_lines_) spacing *= 2;
  return spacing;
}

bool Metrics::due(int64_t step) const {
  return log_every_ > 0 && step % spacing(step) == 0;
}

void Metrics::training(int64_t step, int64_t epoch, double loss, double learning_rate, double gradient_norm,
                       double examples_per_second) {
  if (spacing(step) != thinned_to_) thin(spacing(step));
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

void Metrics::append(const std::string& line) {
  pending_ += line + '\n';
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

// Leaves the training lines that are due at a spacing.
void Metrics::thin(int64_t spacing) {
  const std::string text = kept_lines(path_, [&](const Mark& mark) {
                             return mark.kind != "training" || mark.step % spacing == 0;
                           }).text;
  try {
    write_text(path_, text);
  } catch (const std::runtime_error&) {
    return;  // a full disk: the file stays longer than it should be
  }
  open();
  size_ = static_cast<int64_t>(text.size());
  thinned_to_ = spacing;
}

}  // namespace quatrain::train
