#include "support/nearest_name.h"

#include <algorithm>
#include <cctype>

namespace quatrain {
namespace {

// The optimal string alignment distance; upper and lower case are the same letter, '-' and ' ' the same as
// '_'.
size_t edits(std::string_view a, std::string_view b) {
  auto plain = [](char c) {
    return c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const bool same = plain(a[i - 1]) == plain(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) && plain(a[i - 2]) == plain(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 200;
  std::string best;
  size_t fewest = 0;
  if (word.size() > kLongest) return best;
  for (const auto& candidate : known) {
    const size_t distance = edits(word, candidate);
    if (3 * distance <= std::max(word.size(), candidate.size()) && (best.empty() || distance < fewest)) {
      best = candidate;
      fewest = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string name = nearest(word, known);
  return name.empty() ? "" : " (did you mean " + name + "?)";
}

}  // namespace quatrain
