#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::scores {

/// What chrF needs to know of a sentence, or the sum of this over sentences. Orders 1 to 6 of n-grams of
/// characters (Unicode code points; white space is left out).
struct QUATRAIN_API ChrfCounts {
  static constexpr int kOrders = 6;

  std::array<int64_t, kOrders> hypothesis{};  ///< 0 where the reference has no n-gram of the order
  std::array<int64_t, kOrders> reference{};
  std::array<int64_t, kOrders> matched{};

  ChrfCounts& operator+=(const ChrfCounts& other);
  bool operator==(const ChrfCounts&) const = default;
};

/// The counts of one sentence beside its reference, or beside that of several with which chrF is highest. All
/// texts must be UTF-8, otherwise a std::invalid_argument names the text and the byte; it is one too where
/// there is no reference.
QUATRAIN_API ChrfCounts chrf_counts(std::string_view hypothesis,
                                    std::span<const std::string_view> references);
QUATRAIN_API ChrfCounts chrf_counts(std::string_view hypothesis, std::string_view reference);

/// chrF2, from 0 to 100: precision and recall, each averaged over the orders that both sides have, and of the
/// two the F-score that weighs recall twice.
QUATRAIN_API double chrf(const ChrfCounts& counts);

/// How the score was computed, as sacrebleu writes it, with Quatrain's version. `references`: of a sentence.
QUATRAIN_API std::string chrf_signature(size_t references = 1);

}  // namespace quatrain::scores
