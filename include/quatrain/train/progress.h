#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "quatrain/api.h"

namespace quatrain::train {

/// Where a run stands.
struct QUATRAIN_API Progress {
  enum class Stage { training, evaluating, testing, done };

  Stage stage = Stage::training;
  int64_t step = 0;
  int64_t steps = 0;
  int64_t epoch = 0;           ///< from 0
  std::optional<double> loss;  ///< mean over the last steps; none where none was made
  double learning_rate = 0;
  double examples_per_second = 0;
  std::string unit = "examples";  ///< what is counted so
  double seconds = 0;             ///< since the run began, over all its parts
  double seconds_left = 0;
  std::string figure;                ///< name of the figure that selects
  std::optional<double> last, best;  ///< its values on the dev set
};

/// Shows progress on a stream: one line redrawn in place on a terminal; elsewhere plain lines every few
/// seconds, and ever more rarely in a long run.
class QUATRAIN_API ProgressLine {
 public:
  /// `title` stands before each line ("quaternion").
  explicit ProgressLine(std::FILE* out = stderr, std::string title = "");
  /// The same, told whether `out` is a terminal, and the seconds between plain lines.
  ProgressLine(std::FILE* out, std::string title, bool terminal, double seconds_between);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);
  /// A line of its own, above the line that is redrawn.
  void message(const std::string& text);

 private:
  void write(const std::string& text);
  void clear();

  std::FILE* out_;
  std::string title_;
  bool terminal_;
  double between_;
  std::optional<std::chrono::steady_clock::time_point> shown_;
  bool drawn_ = false;
};

}  // namespace quatrain::train
