#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/random.h"
#include "quatrain/data/line_pairs.h"

/// What generated languages share: which set a line belongs to is decided by what it says, so that no line of
/// one set is in another, and train, dev and test draw from streams of their own.
namespace quatrain::data {

enum class GeneratedSet { train, dev, test };

/// Of a hundred lines 5 belong to dev and 15 to test.
GeneratedSet set_of(std::string_view what);

/// Draws a line; nothing where it belongs to another set.
using DrawLine = std::function<std::optional<LinePair>(LineRandom&)>;

/// Different lines of dev or test. `cause` begins the message of an error: "generate_math: values from 0 to 1
/// give".
std::vector<LinePair> different_lines(uint64_t seed, GeneratedSet set, int64_t count,
                                      const std::string& cause, const DrawLine& draw);

/// Line i of the training set. `cause` as before: ".. leave".
LinePair train_line(uint64_t seed, int64_t i, const std::string& cause, const DrawLine& draw);

}  // namespace quatrain::data
