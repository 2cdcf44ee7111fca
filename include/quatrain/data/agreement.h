#pragma once

#include <array>
#include <cstdint>

#include "quatrain/api.h"
#include "quatrain/data/example.h"

namespace quatrain::data {

/// The generated subject-verb agreement task.
struct QUATRAIN_API AgreementOptions {
  int64_t train = 40000;
  int64_t dev = 1000;
  int64_t test = 4000;
  uint64_t seed = 0;
  /// The share of sentences with 0, 1, 2, 3, 4 attractors; any non-negative numbers, taken relative to their
  /// sum.
  std::array<double, 5> shares{0.3, 0.25, 0.2, 0.15, 0.1};
};

/// Beginnings of English sentences up to the verb, whose number is the label (0 singular, 1 plural); the
/// group is the number of attractors: nouns between the subject and the verb whose number is not the
/// subject's.
///
///     near the cabinets , the key behind the doors that the men painted    -> singular, 2 attractors
///
/// Labels are balanced in every set at every number of attractors; no sentence occurs twice. Only the nouns
/// show whether they are singular or plural, and the subject can be found by the sentence's structure only,
/// because a phrase with other nouns may stand before it.
QUATRAIN_API Splits generate_agreement(const AgreementOptions& options = {});

}  // namespace quatrain::data
