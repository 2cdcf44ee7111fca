#include "quatrain/data/math_language.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "data/random.h"
#include "support/enum_names.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<MathSplit, 2> kSplits{{{MathSplit::paper, "paper"}, {MathSplit::strict, "strict"}}};

constexpr std::string_view kOperators = "+-*";

enum class Set { train, dev, test };

/// Of a hundred questions or lines.
constexpr uint64_t kDev = 5, kTest = 15;

/// Spreads neighbours; the finaliser of splitmix64.
uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

uint64_t hash(std::string_view text) {
  uint64_t result = 0xcbf29ce484222325ULL;
  for (const char c : text) result = mixed(result ^ static_cast<unsigned char>(c));
  return result;
}

struct Question {
  LinePair line;
  std::string asked;  // what is asked, whatever its variables are called
};

Question draw(const MathOptions& options, Random& random) {
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

Set set_of(const MathOptions& options, const Question& question) {
  const uint64_t place =
      hash(options.split == MathSplit::strict ? question.asked : question.line.source) % 100;
  return place < kDev ? Set::dev : place < kDev + kTest ? Set::test : Set::train;
}

void check(const MathOptions& options) {
  constexpr int64_t kLargest = 1000000000;  // its square is a 64-bit number
  TORCH_CHECK(
      options.lowest >= -kLargest && options.highest <= kLargest && options.highest - options.lowest >= 2,
      "generate_math: values must be at least two, from lowest >= -1e9 to highest <= 1e9, got ",
      options.lowest, " .. ", options.highest);
  const std::pair<const char*, int64_t> sizes[] = {
      {"train", options.train}, {"dev", options.dev}, {"test", options.test}};
  for (const auto& [set, size] : sizes)
    TORCH_CHECK(size >= 1, "generate_math: ", set, " must be at least 1, got ", size);
}

/// Different lines of a set.
std::vector<LinePair> different(const MathOptions& options, Set set, int64_t count, uint64_t stream) {
  Random random(options.seed, stream);
  std::vector<LinePair> lines;
  std::unordered_set<std::string> seen;
  for (int64_t tries = 0; static_cast<int64_t>(lines.size()) < count;) {
    Question question = draw(options, random);
    const bool fresh = set_of(options, question) == set && seen.insert(question.line.source).second;
    tries = fresh ? 0 : tries + 1;
    TORCH_CHECK(tries < 10000, "generate_math: values from ", options.lowest, " to ", options.highest - 1,
                " give only ", lines.size(), " different lines for the ", set == Set::dev ? "dev" : "test",
                " set, ", count, " were asked for; ask for fewer, or for more values");
    if (fresh) lines.push_back(std::move(question.line));
  }
  return lines;
}

}  // namespace

const char* name(MathSplit split) {
  return find_name(kSplits, split);
}
MathSplit parse_math_split(std::string_view text) {
  const MathSplit* split = find_value(kSplits, text);
  TORCH_CHECK(split, "math: split must be one of ", list_names(kSplits), ", got '", text, "'");
  return *split;
}

LinePair math_line(const MathOptions& options, int64_t i) {
  check(options);
  constexpr uint64_t kTrainStreams = 2;  // after those of dev and test
  Random random(options.seed, kTrainStreams + static_cast<uint64_t>(i));
  for (int tries = 0;; ++tries) {
    Question question = draw(options, random);
    if (set_of(options, question) == Set::train) return std::move(question.line);
    TORCH_CHECK(tries < 10000, "generate_math: values from ", options.lowest, " to ", options.highest - 1,
                " leave no question for the training set; ask for more values");
  }
}

PairSplits generate_math(const MathOptions& options) {
  check(options);
  PairSplits splits;
  splits.dev = different(options, Set::dev, options.dev, 0);
  splits.test = different(options, Set::test, options.test, 1);
  splits.train.reserve(static_cast<size_t>(options.train));
  for (int64_t i = 0; i < options.train; ++i) splits.train.push_back(math_line(options, i));
  for (const char sign : kOperators)
    for (const char* operands : {"", " same"}) splits.groups.push_back(std::string(1, sign) + operands);
  return splits;
}

}  // namespace quatrain::data
