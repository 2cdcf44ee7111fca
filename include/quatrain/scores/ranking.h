#pragma once

#include <span>
#include <string>

#include "quatrain/api.h"

/// How well candidates are ranked, as trec_eval computes it.
namespace quatrain::scores {

/// A candidate answer to a question.
struct QUATRAIN_API Candidate {
  float score = 0;  ///< trec_eval keeps no more digits
  bool relevant = false;
  std::string document;  ///< its name
};

/// Figures of one question; their means over questions are MAP, MRR and P@1. All are 0 where no candidate is
/// relevant.
struct QUATRAIN_API RankingScores {
  double average_precision = 0;
  double reciprocal_rank = 0;
  double precision_at_1 = 0;
};

/// The candidates by their scores, the highest first. Of equal scores the document whose name is last in the
/// order of bytes comes first, which is trec_eval's rule.
QUATRAIN_API RankingScores score_ranking(std::span<const Candidate> candidates);

}  // namespace quatrain::scores
