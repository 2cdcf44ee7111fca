#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// Options of LengthBatches. At least one of the two limits must be given.
struct QUATRAIN_API LengthBatchOptions {
  int64_t most = 0;     ///< most examples of a batch; 0: no limit
  int64_t room = 0;     ///< most examples times the longest length of a batch; 0: no limit
  bool shuffle = true;  ///< false: by length, longest first, the same in each epoch
  uint64_t seed = 0;
};

/// Examples of about equal length in batches. Which examples go together is fixed by the lengths and the
/// seed; examples of equal lengths are in random order. The order of the batches is drawn for each epoch. So
/// batch (epoch, index) is a function of the lengths, the options and these two numbers alone, and there are
/// as many batches in each epoch. Every example occurs once in an epoch. An example longer than `room` is a
/// batch of its own. Not thread-safe.
class QUATRAIN_API LengthBatches {
 public:
  /// Of each example its length, which must be positive, and two numbers that order examples of equal length.
  using Lengths = std::array<int64_t, 3>;

  LengthBatches(const std::vector<Lengths>& lengths, const LengthBatchOptions& options);

  int64_t batches() const { return static_cast<int64_t>(shuffled_.size()); }  ///< in an epoch
  int64_t examples() const { return static_cast<int64_t>(order_.size()); }    ///< in an epoch
  /// The examples of a batch, longest first; 0 <= index < batches().
  std::span<const int64_t> batch(int64_t epoch, int64_t index);

 private:
  void arrange(int64_t epoch);

  bool shuffle_;
  uint64_t seed_;
  std::vector<int64_t> order_;     // examples, batch after batch
  std::vector<int64_t> starts_;    // of the batches in order_, and the end
  std::vector<int64_t> shuffled_;  // numbers of batches in the order of the epoch
  int64_t epoch_ = -1;             // whose order `shuffled_` holds
};

}  // namespace quatrain::data
