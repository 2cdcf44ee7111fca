#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

/// What a kind of task is called and reports, for tables, drawings and pages; see kind.h.
namespace quatrain::tasks {

/// A number that an evaluation or a task's facts hold, and how tables show it. A figure of a part of the
/// examples is called "NAME/GROUP=NUMBER" ("accuracy/attractors=2"); "count" is the number of examples.
struct QUATRAIN_API Figure {
  enum class Format { number, share, count };

  std::string name;   ///< "accuracy"
  std::string title;  ///< what tables call it
  Format format = Format::number;
  bool higher_is_better = false;
  /// The same figure for a guesser that ignores the input, shown beside it ("majority"); empty: none.
  std::string beside = "";
  bool detail = false;   ///< shown when one run is scored, but not when runs are compared
  double margin = 0.01;  ///< differences up to this do not matter where runs are compared
  /// The figure of a set, by the sums of train::Evaluation::counts over its examples. Null where it is the
  /// share of right answers, or no runs are compared by it.
  double (*of_counts)(const std::vector<int64_t>& sums) = nullptr;
};

/// A format for another program that Model::export_to() writes.
struct QUATRAIN_API ExportFormat {
  std::string name;
  bool scores_data = false;  ///< what is written are answers to data, and not the model
};

/// What a kind is and reports.
struct QUATRAIN_API About {
  std::string name;             ///< `task.kind`
  std::string summary;          ///< a sentence for docs/recipes.md
  std::string reads;            ///< what a line for `predict` is: "a text"
  std::string unit;             ///< what inputs are counted in where they are timed: "words"
  std::vector<Figure> figures;  ///< of a split; the first selects the best checkpoint
  std::vector<Figure> facts;    ///< of Task::facts(), shown where runs are compared
  /// An evaluation holds an answer for each example, so that two models are compared example by example.
  bool answers = false;
  std::vector<ExportFormat> exports = {};
};

/// What the kind of that name is; null where there is none.
QUATRAIN_API const About* find_about(std::string_view kind);

/// The parts of the examples that figures are given for: "/attractors=2", by their numbers.
QUATRAIN_API std::vector<std::string> groups_of(const std::map<std::string, double>& figures);

}  // namespace quatrain::tasks
