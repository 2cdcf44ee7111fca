#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "quatrain/data/pairs.h"

/// Readers of files of pairs.
namespace quatrain::data {

/// What becomes of bad pairs of a set.
struct BadPairRule {
  std::shared_ptr<BadPairs> counted;
  std::string set;
  bool skip = false;  ///< false: an error
};

/// Line i of one file belongs to line i of the other.
std::unique_ptr<PairReader> read_parallel(const std::filesystem::path& source,
                                          const std::filesystem::path& target, BadPairRule rule);

/// Source, tab, target.
std::unique_ptr<PairReader> read_pair_columns(const std::filesystem::path& file, BadPairRule rule);

/// The pairs of `test` that do not occur in `train`; the others are counted as left out of the rule's set.
/// Reads both; holds `test` while it does.
std::unique_ptr<PairReader> read_unseen(std::unique_ptr<PairReader> test, PairReader& train,
                                        std::unique_ptr<PairReader> again, BadPairRule rule);

}  // namespace quatrain::data
