#include "data/generated_line_pairs.h"

#include <c10/util/Exception.h>

#include <unordered_set>
#include <utility>

namespace quatrain::data {
namespace {

constexpr int kMostTries = 10000;

}  // namespace

GeneratedSet set_of(std::string_view what) {
  constexpr uint64_t kDev = 5, kTest = 15;
  const uint64_t place = hash_of(what) % 100;
  return place < kDev ? GeneratedSet::dev : place < kDev + kTest ? GeneratedSet::test : GeneratedSet::train;
}

std::vector<LinePair> different_lines(uint64_t seed, GeneratedSet set, int64_t count,
                                      const std::string& cause, const DrawLine& draw) {
  LineRandom random(seed, set == GeneratedSet::dev ? 0 : 1);
  std::vector<LinePair> lines;
  std::unordered_set<std::string> seen;
  for (int tries = 0; static_cast<int64_t>(lines.size()) < count;) {
    std::optional<LinePair> line = draw(random);
    const bool fresh = line && seen.insert(line->source).second;
    tries = fresh ? 0 : tries + 1;
    TORCH_CHECK(tries < kMostTries, cause, " only ", lines.size(), " different lines for the ",
                set == GeneratedSet::dev ? "dev" : "test", " set, ", count,
                " were asked for; ask for fewer, or for more values");
    if (fresh) lines.push_back(*std::move(line));
  }
  return lines;
}

LinePair train_line(uint64_t seed, int64_t i, const std::string& cause, const DrawLine& draw) {
  constexpr uint64_t kTrainStreams = 2;  // after those of dev and test
  LineRandom random(seed, kTrainStreams + static_cast<uint64_t>(i));
  for (int tries = 0;; ++tries) {
    if (std::optional<LinePair> line = draw(random)) return *std::move(line);
    TORCH_CHECK(tries < kMostTries, cause, " no question for the training set; ask for more values");
  }
}

}  // namespace quatrain::data
