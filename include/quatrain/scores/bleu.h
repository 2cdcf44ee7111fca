#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quatrain/api.h"

/// Scores of translations beside references, equal to those of sacrebleu 2.
namespace quatrain::scores {

/// How a line becomes the words that BLEU compares, under sacrebleu's names.
///   13a   mteval-v13a's rules, for raw text
///   none  the words as they stand between white space: text that is tokenised already
///   char  each character that is no white space
enum class BleuTokenizer { v13a, none, character };

/// "13a", "none", "char".
QUATRAIN_API const char* name(BleuTokenizer tokenizer);
/// The inverse; an unknown name is a std::invalid_argument that lists the known ones.
QUATRAIN_API BleuTokenizer parse_bleu_tokenizer(std::string_view name);

/// What BLEU needs to know of a sentence, or the sum of this over sentences. Orders 1 to 4 of n-grams.
struct QUATRAIN_API BleuCounts {
  static constexpr int kOrders = 4;

  /// Of the hypothesis, each at most as often as in the reference that has it most often.
  std::array<int64_t, kOrders> matched{};
  std::array<int64_t, kOrders> total{};  ///< of the hypothesis
  int64_t hypothesis_length = 0;         ///< in words
  int64_t reference_length = 0;          ///< of the reference whose length is closest, of two the shorter

  BleuCounts& operator+=(const BleuCounts& other);
  bool operator==(const BleuCounts&) const = default;
};

/// The counts of one sentence beside one reference or several. All texts must be UTF-8, otherwise a
/// std::invalid_argument names the text and the byte; it is one too where there is no reference.
QUATRAIN_API BleuCounts bleu_counts(std::string_view hypothesis, std::span<const std::string_view> references,
                                    BleuTokenizer tokenizer = BleuTokenizer::v13a);
QUATRAIN_API BleuCounts bleu_counts(std::string_view hypothesis, std::string_view reference,
                                    BleuTokenizer tokenizer = BleuTokenizer::v13a);

/// The brevity penalty: 1, or exp(1 - reference / hypothesis) where the hypotheses are shorter.
QUATRAIN_API double brevity_penalty(const BleuCounts& counts);

/// The shares of matched n-grams in percent. The k-th order without a match gets 1 / 2^k of a match
/// (sacrebleu's smoothing `exp`), unless no word matches at all.
QUATRAIN_API std::array<double, BleuCounts::kOrders> bleu_precisions(const BleuCounts& counts);

/// BLEU, from 0 to 100: the brevity penalty times the geometric mean of the precisions. 0 where the
/// hypotheses hold no n-gram of some order.
QUATRAIN_API double bleu(const BleuCounts& counts);

/// How the score was computed, as sacrebleu writes it, with Quatrain's version. `references`: of a sentence.
QUATRAIN_API std::string bleu_signature(BleuTokenizer tokenizer = BleuTokenizer::v13a, size_t references = 1);

}  // namespace quatrain::scores
