#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "quatrain/models/translate.h"

/// Translation by fresh encoder-decoders, whose targets all have one length, beside the real twin.
namespace quatrain::bench {

struct DecodingCase {
  std::string algebra = "quaternion";
  models::OutputLayer output = models::OutputLayer::real;  ///< `algebra`: the embeddings are in it too
  nn::AttentionKind attention = nn::AttentionKind::real;
  bool packed = false;  ///< query, key and value as one map, of both models
  int64_t width = 512, heads = 8, feed_forward = 2048, layers = 6, vocabulary = 32000;
  int64_t source = 24, target = 32;  ///< tokens
  bool mixed = false;                ///< sources of evenly spread lengths, up to `source`
  int64_t batch = 1, beam = 4;
  models::Projection projection = models::Projection::float32;
  int64_t shortlist = 0;  ///< random target tokens of each sentence, about; 0: all
  bool exact = false;
  int threads = 1;
};

/// The models of the cases, about `seconds` for each.
Subject decoding(const std::vector<DecodingCase>& cases, double seconds);

/// The model of a case, in eval mode; of its real twin where `real`.
models::Seq2Seq decoding_model(const DecodingCase& asked, bool real);
/// The tokens of its sources, with the mark of their end.
std::vector<std::vector<int64_t>> decoding_sources(const DecodingCase& asked);

/// A few pairs that another program can be compared by.
struct ScoredPairs {
  std::vector<std::vector<int64_t>> sources;  ///< with the mark of their end
  std::vector<std::vector<int64_t>> targets;  ///< random tokens
  std::vector<std::vector<double>> scores;    ///< log-probabilities of a target's tokens and of its end mark
};
ScoredPairs decoding_pairs(const DecodingCase& asked, const models::Seq2Seq& model);

}  // namespace quatrain::bench
