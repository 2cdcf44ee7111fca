#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/length_batches.h"
#include "quatrain/data/line_pairs.h"
#include "quatrain/data/pieces.h"
#include "quatrain/data/sequence_store.h"

namespace quatrain::data {

/// Pairs beyond these are left out of a set. In tokens, without marks; 0: no limit.
struct QUATRAIN_API LinePairLimits {
  int64_t max_source = 0;
  int64_t max_target = 0;
  double max_ratio = 0;      ///< of the longer side to the shorter one
  bool cut_sources = false;  ///< longer sources are cut at max_source instead, as they are to be translated
};

/// Pairs that are left out, each counted by the first limit that it is beyond.
struct QUATRAIN_API PairsBeyond {
  int64_t max_source = 0, max_target = 0, max_ratio = 0;
  int64_t all() const { return max_source + max_target + max_ratio; }
};

/// A set of pairs as numbers.
struct QUATRAIN_API EncodedLinePairs {
  TokenStore source;            ///< with kEnd behind each
  TokenStore target;            ///< without marks
  std::vector<int64_t> groups;  ///< of each pair; empty where no pair has one
  PairsBeyond left_out;
  int64_t cut = 0;  ///< sources, LinePairLimits::cut_sources
  int64_t size() const { return source.size(); }
};

/// Reads and encodes all pairs. A set of which nothing is left is an error.
QUATRAIN_API EncodedLinePairs encode(LinePairReader& reader, const Pieces& source, const Pieces& target,
                                     const LinePairLimits& limits = {});

/// What a model is given, and what it should answer.
struct QUATRAIN_API LinePairBatch {
  at::Tensor source;             ///< (B, S) int64: x1 .. xS-1 kEnd, then kPad
  at::Tensor source_padding;     ///< (B, S) bool, true where padded
  at::Tensor target;             ///< (B, L) int64: kBegin y1 .. yL-1, then kPad; undefined for sources alone
  at::Tensor following;          ///< (B, L) int64: y1 .. yL-1 kEnd, then kPad
  at::Tensor target_padding;     ///< (B, L) bool, of target and following
  std::vector<int64_t> indices;  ///< the pairs' places in their set
  int64_t tokens = 0;            ///< of `following`, padding not counted
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
  /// Moves the tensors to another device.
  LinePairBatch to(at::Device device) const;
};

/// A batch of lines as Pieces::encode gives them; the marks are put here. Targets are as many as sources, or
/// none (for prediction). Indices are 0, 1, ..
QUATRAIN_API LinePairBatch collate_line_pairs(const std::vector<std::vector<int32_t>>& sources,
                                              const std::vector<std::vector<int32_t>>& targets = {});

/// Options of LinePairLoader. At least one of the two limits must be given.
struct QUATRAIN_API LinePairLoaderOptions {
  int64_t batch_size = 0;  ///< most pairs of a batch; 0: no limit
  int64_t batch_tokens =
      0;                ///< most tokens of the longer side of a batch, with marks and padding; 0: no limit
  bool shuffle = true;  ///< false: by length, longest first, the same in each epoch
  uint64_t seed = 0;
};

/// Batches of pairs of about equal length (LengthBatches), made when they are asked for. Not thread-safe.
class QUATRAIN_API LinePairLoader {
 public:
  LinePairLoader(std::shared_ptr<const EncodedLinePairs> set, LinePairLoaderOptions options);

  int64_t batches() const { return order_.batches(); }    ///< in an epoch
  int64_t examples() const { return order_.examples(); }  ///< in an epoch
  const EncodedLinePairs& set() const { return *set_; }
  /// 0 <= index < batches().
  LinePairBatch batch(int64_t epoch, int64_t index);

 private:
  std::shared_ptr<const EncodedLinePairs> set_;
  LengthBatches order_;
};

}  // namespace quatrain::data
