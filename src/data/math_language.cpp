#include "quatrain/data/math_language.h"

#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <utility>

#include "data/generated_line_pairs.h"
#include "data/generated_sizes.h"
#include "data/random.h"
#include "support/enum_names.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<MathSplit, 2> kSplits{{{MathSplit::paper, "paper"}, {MathSplit::strict, "strict"}}};

constexpr std::string_view kOperators = "+-*";

struct Question {
  LinePair line;
  std::string asked;  // what is asked, whatever its variables are called
};

Question draw(const MathOptions& options, LineRandom& random) {
  const auto count = static_cast<uint64_t>(options.highest - options.lowest);
  const auto value = [&] { return options.lowest + static_cast<int64_t>(random.below(count)); };
  const int64_t values[2] = {value(), value()};
  const uint64_t first = random.below(2), left = random.below(2), right = random.below(2),
                 operation = random.below(kOperators.size());
  const auto assign = [&](uint64_t which) {
    return std::string(1, "xy"[which]) + "=" + std::to_string(values[which]);
  };
  const int64_t a = values[left], b = values[right];
  const int64_t answer = operation == 0 ? a + b : operation == 1 ? a - b : a * b;
  const char sign = kOperators[operation];
  Question question;
  question.line.source =
      assign(first) + "," + assign(1 - first) + "," + "xy"[left] + sign + "xy"[right] + ":";
  question.line.target = std::to_string(answer);
  question.line.group = static_cast<int64_t>(2 * operation + (left == right));
  question.asked = std::to_string(a) + sign + std::to_string(b);
  return question;
}

GeneratedSet set_of_question(const MathOptions& options, const Question& question) {
  return set_of(options.split == MathSplit::strict ? question.asked : question.line.source);
}

void check(const MathOptions& options) {
  constexpr int64_t kLargest = 1000000000;  // its square is a 64-bit number
  TORCH_CHECK(
      options.lowest >= -kLargest && options.highest <= kLargest && options.highest - options.lowest >= 2,
      "generate_math: values must be at least two, from lowest >= -1e9 to highest <= 1e9, got ",
      options.lowest, " .. ", options.highest);
  check_sizes("generate_math", options.train, options.dev, options.test);
}

std::string values_of(const MathOptions& options) {
  return "generate_math: values from " + std::to_string(options.lowest) + " to " +
         std::to_string(options.highest - 1);
}

/// Different lines of a set.
std::vector<LinePair> lines_of(const MathOptions& options, GeneratedSet set, int64_t count) {
  return different_lines(options.seed, set, count, values_of(options) + " give",
                         [&](LineRandom& random) -> std::optional<LinePair> {
                           Question question = draw(options, random);
                           if (set_of_question(options, question) != set) return std::nullopt;
                           return std::move(question.line);
                         });
}

}  // namespace

const char* name(MathSplit split) {
  return name_of(kSplits, split);
}
MathSplit parse_math_split(std::string_view text) {
  return parse_name(kSplits, "math: split", text);
}

LinePair math_line(const MathOptions& options, int64_t i) {
  check(options);
  return train_line(options.seed, i, values_of(options) + " leave",
                    [&](LineRandom& random) -> std::optional<LinePair> {
                      Question question = draw(options, random);
                      if (set_of_question(options, question) != GeneratedSet::train) return std::nullopt;
                      return std::move(question.line);
                    });
}

LinePairSplits generate_math(const MathOptions& options) {
  check(options);
  LinePairSplits splits;
  splits.dev = lines_of(options, GeneratedSet::dev, options.dev);
  splits.test = lines_of(options, GeneratedSet::test, options.test);
  splits.train.reserve(static_cast<size_t>(options.train));
  for (int64_t i = 0; i < options.train; ++i) splits.train.push_back(math_line(options, i));
  for (const char sign : kOperators)
    for (const char* operands : {"", " same"}) splits.groups.push_back(std::string(1, sign) + operands);
  return splits;
}

}  // namespace quatrain::data
