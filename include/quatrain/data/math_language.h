#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "quatrain/api.h"
#include "quatrain/data/line_pairs.h"

namespace quatrain::data {

/// What keeps the test set apart.
///   paper   no line of one set is in another. A line whose variables change their names may be: x=1,y=2,x+y
///           and y=1,x=2,y+x ask the same
///   strict  no question (left value, operator, right value) of one set is in another
enum class MathSplit { paper, strict };
QUATRAIN_API const char* name(MathSplit split);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API MathSplit parse_math_split(std::string_view name);

/// Mathematical language understanding (QNLP table 4).
struct QUATRAIN_API MathOptions {
  int64_t lowest = -1000;  ///< values are lowest .. highest - 1
  int64_t highest = 1000;
  MathSplit split = MathSplit::strict;
  int64_t train = 1000000;
  int64_t dev = 1000;
  int64_t test = 10000;
  uint64_t seed = 0;
};

/// Two assignments and a question, and the number that answers it, character by character:
///
///     y=691,x=-999,y*x:    ->    -690309
///
/// Values are drawn evenly; the operator is one of + - *; the order of the assignments is drawn, and each
/// operand is x or y, perhaps the same twice. Training line i is a function of (seed, i) alone, so that the
/// size of a set changes none of its lines; dev and test lines are all different. Groups: operators, with
/// different or equal operands ("+", "+ same", ...): x - x is always zero, and there are few squares.
///
/// Throws c10::Error where the options leave too few lines for dev or test.
QUATRAIN_API LinePairSplits generate_math(const MathOptions& options = {});

/// Line i of the training set.
QUATRAIN_API LinePair math_line(const MathOptions& options, int64_t i);

}  // namespace quatrain::data
