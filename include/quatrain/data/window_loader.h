#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "quatrain/api.h"
#include "quatrain/data/sequence_store.h"

namespace quatrain::data {

/// Windows of a text, one a row, and the tokens that follow each of theirs.
struct QUATRAIN_API WindowBatch {
  at::Tensor tokens;     ///< (B, L) int64
  at::Tensor following;  ///< (B, L) int64: the token behind each
  WindowBatch to(at::Device device) const;
};

/// The first sequence of a store, cut into batch_size columns of equal length. Batch `index` is the window
/// of `length` tokens of each column that begins at index * length; the last one is shorter where the columns
/// end. Every token but the first is to be predicted once, except those that do not fill the columns. The
/// batches are the same in each epoch: `epoch` is there so that all loaders are called alike.
class QUATRAIN_API WindowLoader {
 public:
  /// A text too short for one token to be predicted in each column is an error.
  WindowLoader(std::shared_ptr<const TokenStore> text, int64_t batch_size, int64_t length);

  int64_t batches() const;
  int64_t tokens() const;    ///< predicted in an epoch
  int64_t left_out() const;  ///< at the text's end, fewer than batch_size
  /// 0 <= index < batches().
  WindowBatch batch(int64_t epoch, int64_t index) const;

 private:
  std::shared_ptr<const TokenStore> text_;
  int64_t batch_size_, length_, column_ = 0;
};

}  // namespace quatrain::data
