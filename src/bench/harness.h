#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/timing.h"

/// What all benchmarks have in common. A subject gives cases, a case the calls that take turns, ours and the
/// rival's; the harness measures memory and time and keeps a row of figures for each of ours.
namespace quatrain::bench {

using Call = std::function<void()>;

/// A cell of the table, a member of the JSON, or both.
struct Field {
  using Parts = std::vector<std::pair<std::string, double>>;  ///< an object in the JSON

  std::string key{};                                          ///< in the JSON; empty: not there
  std::variant<std::string, int64_t, double, Parts> value{};  ///< what the JSON holds
  std::string title{};                                        ///< of the column; may be empty
  std::string text{};  ///< of the cell; no column where title and text are empty
  double share = 0;    ///< where it is not zero the cell is it, coloured by whether it is above 1
  bool left = false;   ///< the column's alignment
};

/// A text or a whole number, alike in table and JSON.
Field field(const std::string& key, const std::string& value);
Field field(const std::string& key, int64_t value);
/// Of the JSON alone.
Field hidden(const std::string& key, decltype(Field::value) value);
/// Of the table alone.
Field column(const std::string& title, const std::string& text, bool left = false);
/// The column of a share, red above 1; a dash where there is no rival's time.
Field share_column(const std::string& title, double ours, double real);

/// One of the calls that take turns in a case.
struct Candidate {
  std::string name{};  ///< "ours", "real", a way, a twin ..
  Call call{};
  int64_t parameters = 0;
  int64_t parts = 1;  ///< equal pieces of work in a call; times are those of one
};

/// What was found of a candidate.
struct Figures {
  Timing time;
  int64_t parameters = 0;
  int64_t prepared_bytes = 0;  ///< of weights kept in eval mode by a first call
  int64_t peak_bytes = 0;      ///< 0 where it was not measured
};
using Found = std::map<std::string, Figures>;

/// How the time of "ours" compares to that of another candidate, in the column "to TITLE"; a dash where that
/// one was not measured.
Field ratio_to(const Found& found, const std::string& candidate, const std::string& title);

/// One of ours beside its rival; becomes a row.
struct Contender {
  std::string ours = "ours", real = "real";  ///< names of candidates
  std::vector<Field> asked{};                ///< what it is, before the figures
  std::function<std::vector<Field>(const Found&)> more = [](const Found&) { return std::vector<Field>(); };
};

/// What takes turns in one process.
struct Contest {
  std::vector<Candidate> candidates{};
  std::vector<Contender> contenders{};
};

struct Case {
  int threads = 1;
  bool training = false;  ///< with gradients; else inference in eval mode
  /// Functions that build candidates, by name, to measure their peak memory (see peak_memory).
  std::vector<std::pair<std::string, std::function<Call()>>> memory{};
  /// Called before each call that is timed, such as empty_caches; none: calls follow each other.
  Call before{};
  /// Builds what is timed, when its turn comes and the threads are set.
  std::function<Contest()> make{};
};

/// Writes more memory than caches hold, so that a call finds nothing there of the one before.
void empty_caches();

/// Something to be measured.
struct Subject {
  std::string title;  ///< stands above the table
  std::string notes;  ///< explains its own columns, below
  std::vector<Case> cases;
  TimingOptions timing;
};

/// One of ours beside its rival.
struct Row {
  size_t group = 0;  ///< the case that it is of
  int threads = 1;
  bool training = false;
  std::vector<Field> asked;
  Figures ours, real;
  std::vector<Field> more;

  double ratio_real() const { return ours.time.median / real.time.median; }
  /// The text of what was asked, by its key.
  std::string asked_for(const std::string& key) const;
};

/// How a caller watches the work. An exception of these ends the measuring; finished rows stay.
struct Watch {
  std::function<void(size_t step, size_t steps)> step = [](size_t, size_t) {};
  Call round = [] {};
};

/// Appends a row for each contender. Memory comes first, as a child inherits no threads: `with_memory` is
/// therefore for processes in which OpenMP has none yet.
void measure(const Subject& subject, std::vector<Row>& rows, bool with_memory, const Watch& watch = {});

}  // namespace quatrain::bench
