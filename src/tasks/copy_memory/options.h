#pragma once

#include <memory>

#include "quatrain/models/recurrent_network.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// What a recipe of kind copy_memory sets. A sequence has `recall` symbols, then `lag` blanks, then `recall`
/// delimiters, at which the symbols are to be named in their order; before them, a blank.
struct CopyMemoryOptions : Options {
  int64_t symbols = 8, recall = 10, lag = 10;
  int64_t train = 12800, dev = 200, test = 1000;  ///< sequences; those of an epoch are drawn anew
  uint64_t seed = 0;                              ///< of the sequences
  models::RecurrentNetworkOptions model{0, 128, 0};

  std::unique_ptr<Options> clone() const override { return std::make_unique<CopyMemoryOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;

  /// Steps of a sequence.
  int64_t steps() const { return 2 * recall + lag; }
  /// Symbols and the blank.
  int64_t classes() const { return symbols + 1; }
  /// Symbols, blank and delimiter as unit vectors; zeros behind them up to a multiple of n.
  int64_t inputs() const;
  /// The model with its sizes.
  models::RecurrentNetworkOptions network() const;
};

}  // namespace quatrain::tasks
