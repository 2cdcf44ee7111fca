#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/commands.h"

namespace quatrain::cli {

/// What can be written behind `bench`.
class BenchOptions {
 public:
  /// Adds a command for each benchmark, which makes `chosen` the call of what was asked for. Both must live
  /// as long as the commands.
  void add_to(CLI::App& bench, std::function<int()>& chosen);

 private:
  void add_linear(CLI::App& bench);
  void add_encoder(CLI::App& bench);
  void add_recurrent(CLI::App& bench);
  void add_convolution(CLI::App& bench);
  void add_decoding(CLI::App& bench);
  void add_pairs(CLI::App& bench);
  void add_model(CLI::App& bench);

  std::function<int()>* chosen_ = nullptr;
  BenchLinearArguments linear_;
  BenchEncoderArguments encoder_;
  BenchRecurrentArguments recurrent_;
  BenchConvolutionArguments convolution_;
  BenchDecodingArguments decoding_;
  BenchPairsArguments pairs_;
  BenchModelArguments model_;
};

}  // namespace quatrain::cli
