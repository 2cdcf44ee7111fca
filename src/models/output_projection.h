#pragma once

#include <functional>
#include <vector>

#include "quatrain/models/translate.h"

namespace quatrain::models {

/// A model's output layer as a search asks for it: in a type of its own, for some of the tokens alone.
class QUATRAIN_API OutputProjection {
 public:
  /// `exact`: a score is a function of its hidden state and its token alone, bit for bit, whatever the other
  /// rows and the other tokens, where a PlannedRowsGuard plans for kExactRows.
  OutputProjection(Seq2Seq model, Projection type, bool exact);

  /// Whether the output layer is real (or a real embedding): has a row for each token.
  bool is_real() const;
  /// The same for these tokens (count) int64 alone, of a real output layer.
  OutputProjection of(const at::Tensor& tokens) const;

  /// hidden (rows, width) -> scores (rows, tokens), of the type of `hidden`.
  at::Tensor operator()(const at::Tensor& hidden) const;

 private:
  // Rows of the real output layer.
  struct Piece {
    at::Tensor weight, bias;  // (tokens, width), (tokens) or undefined
  };
  const nn::HypercomplexWeight& weight() const;
  at::Tensor bias() const;
  static std::vector<Piece> pieces_of(const Piece& whole, int64_t columns);
  // What `product`, which fills up rows itself, makes of all of them: in calls of at most kExactRows where
  // their number matters.
  at::Tensor by_rows(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& product) const;

  Seq2Seq model_;
  Projection type_;
  bool exact_;
  Piece whole_;                // of a real output, in the type of the projection
  std::vector<Piece> pieces_;  // that are multiplied with; none: the layer itself is called
  int64_t tokens_ = 0;         // of `pieces_`, the last of which may have more
};

}  // namespace quatrain::models
