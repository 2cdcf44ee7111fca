#include "quatrain/scores/chrf.h"

#include <stdexcept>

#include "scores/ngrams.h"
#include "support/characters.h"
#include "support/version.h"

namespace quatrain::scores {
namespace {

std::vector<uint32_t> without_space(std::string_view text, const char* what) {
  std::vector<uint32_t> codes;
  codes.reserve(text.size());
  for (const auto& character : characters(text, what))
    if (!is_white_space(character.code)) codes.push_back(character.code);
  return codes;
}

}  // namespace

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  for (size_t n = 0; n < kOrders; ++n) {
    hypothesis[n] += other.hypothesis[n];
    reference[n] += other.reference[n];
    matched[n] += other.matched[n];
  }
  return *this;
}

ChrfCounts chrf_counts(std::string_view hypothesis, std::string_view reference) {
  const std::array sides{without_space(hypothesis, "chrf: the hypothesis"),
                         without_space(reference, "chrf: the reference")};
  const auto overlap = overlaps<ChrfCounts::kOrders>(sides);
  ChrfCounts counts;
  for (size_t n = 0; n < ChrfCounts::kOrders; ++n) {
    counts.hypothesis[n] = overlap[n].references > 0 ? overlap[n].hypothesis : 0;
    counts.reference[n] = overlap[n].references;
    counts.matched[n] = overlap[n].matched;
  }
  return counts;
}

ChrfCounts chrf_counts(std::string_view hypothesis, std::span<const std::string_view> references) {
  if (references.empty()) throw std::invalid_argument("chrf: there must be a reference");
  ChrfCounts best;
  double highest = -1;
  for (const auto reference : references) {
    const ChrfCounts counts = chrf_counts(hypothesis, reference);
    if (const double score = chrf(counts); score > highest) highest = score, best = counts;
  }
  return best;
}

double chrf(const ChrfCounts& counts) {
  constexpr double kRecall = 4;  // beta^2
  double precision = 0, recall = 0;
  int orders = 0;
  for (size_t n = 0; n < ChrfCounts::kOrders; ++n) {
    if (counts.hypothesis[n] == 0 || counts.reference[n] == 0) continue;
    const auto matched = static_cast<double>(counts.matched[n]);
    precision += matched / static_cast<double>(counts.hypothesis[n]);
    recall += matched / static_cast<double>(counts.reference[n]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * (1 + kRecall) * precision * recall / (kRecall * precision + recall);
}

std::string chrf_signature(size_t references) {
  return "nrefs:" + std::to_string(references) + "|case:mixed|eff:yes|nc:6|nw:0|space:no|version:quatrain-" +
         version();
}

}  // namespace quatrain::scores
