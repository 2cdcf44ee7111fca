#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/pair_gate.h"
#include "quatrain/data/line_pairs.h"

/// Readers of files of pairs.
namespace quatrain::data {

/// Line i of one file belongs to line i of the other.
std::unique_ptr<LinePairReader> read_parallel(const std::filesystem::path& source,
                                              const std::filesystem::path& target, BadPairRule rule);

/// Source, tab, target.
std::unique_ptr<LinePairReader> read_pair_columns(const std::filesystem::path& file, BadPairRule rule);

/// The pairs of `test` that do not occur in `train`; the others are counted as left out of the rule's set.
/// Reads both; holds `test` while it does.
std::unique_ptr<LinePairReader> read_unseen(std::unique_ptr<LinePairReader> test, LinePairReader& train,
                                            std::unique_ptr<LinePairReader> again, BadPairRule rule);

}  // namespace quatrain::data
