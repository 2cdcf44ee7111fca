#include "quatrain/scores/ranking.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace quatrain::scores {

RankingScores score_ranking(std::span<const Candidate> candidates) {
  std::vector<const Candidate*> ranked;
  for (const Candidate& candidate : candidates) ranked.push_back(&candidate);
  // What is not a number stands last: a sort needs an order of all there is.
  std::sort(ranked.begin(), ranked.end(), [](const Candidate* a, const Candidate* b) {
    if (std::isnan(a->score) != std::isnan(b->score)) return std::isnan(b->score);
    if (std::isnan(a->score) || a->score == b->score) return a->document > b->document;
    return a->score > b->score;
  });
  RankingScores scores;
  int relevant = 0;
  for (size_t rank = 1; rank <= ranked.size(); ++rank) {
    if (!ranked[rank - 1]->relevant) continue;
    ++relevant;
    if (relevant == 1) scores.reciprocal_rank = 1.0 / static_cast<double>(rank);
    if (rank == 1) scores.precision_at_1 = 1;
    scores.average_precision += static_cast<double>(relevant) / static_cast<double>(rank);
  }
  if (relevant > 0) scores.average_precision /= relevant;
  return scores;
}

}  // namespace quatrain::scores
