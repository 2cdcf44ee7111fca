#include "quatrain/data/reverse_language.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "data/generated_line_pairs.h"
#include "data/generated_sizes.h"

namespace quatrain::data {
namespace {

/// 0: a .. 25: z, 26: aa, 27: ab, ..
std::string reverse_word(uint64_t number) {
  std::string word;
  for (uint64_t rest = number + 1; rest > 0; rest = (rest - 1) / 26)
    word.insert(word.begin(), static_cast<char>('a' + (rest - 1) % 26));
  return word;
}

LinePair draw_reverse(const ReverseOptions& options, LineRandom& random) {
  const auto lengths = static_cast<uint64_t>(options.longest - options.shortest + 1);
  std::vector<std::string> words(static_cast<size_t>(options.shortest) + random.below(lengths));
  for (auto& word : words) word = reverse_word(random.below(static_cast<uint64_t>(options.symbols)));
  LinePair line;
  for (size_t i = 0; i < words.size(); ++i) {
    line.source += (i > 0 ? " " : "") + words[i];
    line.target += (i > 0 ? " " : "") + words[words.size() - 1 - i];
  }
  return line;
}

void check_reverse(const ReverseOptions& options) {
  constexpr int64_t kLongest = 10000, kMostSymbols = 1000000;
  TORCH_CHECK(options.shortest >= 1 && options.shortest <= options.longest && options.longest <= kLongest,
              "generate_reverse: lines must have shortest .. longest words, 1 <= shortest <= longest <= ",
              kLongest, ", got ", options.shortest, " .. ", options.longest);
  TORCH_CHECK(options.symbols >= 2 && options.symbols <= kMostSymbols,
              "generate_reverse: symbols must be from 2 to ", kMostSymbols, ", got ", options.symbols);
  check_sizes("generate_reverse", options.train, options.dev, options.test);
}

std::string symbols_of(const ReverseOptions& options) {
  return "generate_reverse: " + std::to_string(options.symbols) + " symbols and up to " +
         std::to_string(options.longest) + " words a line";
}

DrawLine draw_of(const ReverseOptions& options, GeneratedSet set) {
  return [&options, set](LineRandom& random) -> std::optional<LinePair> {
    LinePair line = draw_reverse(options, random);
    if (set_of(line.source) != set) return std::nullopt;
    return line;
  };
}

}  // namespace

LinePair reverse_line(const ReverseOptions& options, int64_t i) {
  check_reverse(options);
  return train_line(options.seed, i, symbols_of(options) + " leave", draw_of(options, GeneratedSet::train));
}

LinePairSplits generate_reverse(const ReverseOptions& options) {
  check_reverse(options);
  LinePairSplits splits;
  const auto lines = [&](GeneratedSet set, int64_t count) {
    return different_lines(options.seed, set, count, symbols_of(options) + " give", draw_of(options, set));
  };
  splits.dev = lines(GeneratedSet::dev, options.dev);
  splits.test = lines(GeneratedSet::test, options.test);
  splits.train.reserve(static_cast<size_t>(options.train));
  for (int64_t i = 0; i < options.train; ++i) splits.train.push_back(reverse_line(options, i));
  return splits;
}

}  // namespace quatrain::data
