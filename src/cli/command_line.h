#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/bench_options.h"
#include "cli/commands.h"

namespace quatrain::cli {

/// The command line: what can be written, and what it says about itself. The commands are in files of their
/// own.
class Program {
 public:
  Program();

  /// Parses a command line and runs its command; the exit code.
  int run(int count, char** words);

 private:
  void add_train();
  void add_average();
  void add_evaluate();
  void add_predict();
  void add_shortlist();
  void add_score();
  void add_runs();
  void add_check();
  void add_plot();
  void add_convert();
  void add_compare();
  void add_bench();
  void add_info();
  void add_recipes();

  CLI::App app_;
  std::function<int()> chosen_;
  bool computes_ = true;  // with torch's threads
  TrainArguments train_;
  AverageArguments average_;
  EvaluateArguments evaluate_;
  PredictArguments predict_;
  ShortlistArguments shortlist_;
  ScoreArguments score_;
  RunsArguments runs_;
  CheckArguments check_;
  PlotArguments plot_;
  ConvertArguments convert_;
  CompareArguments compare_;
  BenchOptions bench_;
  std::string name_;
};

}  // namespace quatrain::cli
