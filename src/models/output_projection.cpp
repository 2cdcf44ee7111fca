#include "models/output_projection.h"

#include <torch/types.h>

#include <algorithm>

#include "models/sequence_parts.h"
#include "models/share_out.h"

namespace quatrain::models {
namespace {

// Products of one shape always add in one order. Their rows and columns do not depend on the others then, as
// they do otherwise: on the number of columns in float32, on that of rows in bfloat16.
constexpr int64_t kListedColumns = 512, kWholeColumns = 2048;

int64_t rounded_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

OutputProjection::OutputProjection(Seq2Seq model, Projection type, bool exact)
    : model_(std::move(model)), type_(type), exact_(exact) {
  if (!is_real()) return;
  whole_ = {weight().S.select(0, 0), bias()};  // of tokens alone: nothing fills what is real
  if (type == Projection::float32) return;
  whole_.weight = whole_.weight.to(at::kBFloat16);
  if (whole_.bias.defined()) whole_.bias = whole_.bias.to(at::kBFloat16);
  tokens_ = whole_.weight.size(0);
  pieces_ = pieces_of(whole_, exact ? kWholeColumns : tokens_);
}

const nn::HypercomplexWeight& OutputProjection::weight() const {
  if (model_->output) return *model_->output;
  return *model_->target->embedding;
}

at::Tensor OutputProjection::bias() const {
  return model_->output ? model_->output->bias : at::Tensor();
}

bool OutputProjection::is_real() const {
  return weight().spec().n == 1 && !weight().w.defined();
}

std::vector<OutputProjection::Piece> OutputProjection::pieces_of(const Piece& whole, int64_t columns) {
  std::vector<Piece> pieces;
  const int64_t count = whole.weight.size(0);
  for (int64_t first = 0; first < count; first += columns) {
    const int64_t size = std::min(columns, count - first);
    pieces.push_back({whole.weight.narrow(0, first, size),
                      whole.bias.defined() ? whole.bias.narrow(0, first, size) : at::Tensor()});
  }
  return pieces;
}

OutputProjection OutputProjection::of(const at::Tensor& tokens) const {
  OutputProjection some = *this;
  some.tokens_ = tokens.size(0);
  const at::Tensor rows =
      exact_ ? at::constant_pad_nd(tokens, {0, rounded_up(some.tokens_, kListedColumns) - some.tokens_})
             : tokens;
  some.pieces_ = pieces_of({whole_.weight.index_select(0, rows),
                            whole_.bias.defined() ? whole_.bias.index_select(0, rows) : at::Tensor()},
                           exact_ ? kListedColumns : some.tokens_);
  return some;
}

at::Tensor OutputProjection::by_rows(const at::Tensor& x,
                                     const std::function<at::Tensor(const at::Tensor&)>& product) const {
  if (!exact_ || type_ == Projection::float32) return product(x);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : x.split(kExactRows)) parts.push_back(product(part));
  return at::cat(parts);
}

at::Tensor OutputProjection::operator()(const at::Tensor& hidden) const {
  Seq2Seq model = model_;
  if (pieces_.empty() && type_ == Projection::float32) return model->scores(hidden);
  const at::Tensor x = type_ == Projection::bfloat16 ? hidden.to(at::kBFloat16) : hidden;
  if (pieces_.empty()) {
    const auto operands = weight().operands(false);
    const ops::Way way =
        model->output ? model->output->options.way() : model->target->embedding->options.way();
    const at::Tensor all = by_rows(x, [&](const at::Tensor& rows) {
      return ops::linear(rows, operands.S, bias(), operands.product, way, at::kBFloat16, operands.constant);
    });
    return of_tokens(all, model->options, model->options.target_vocabulary()).to(hidden.scalar_type());
  }
  at::Tensor scores = at::empty({hidden.size(0), tokens_}, hidden.options());
  int64_t first = 0;
  for (const Piece& piece : pieces_) {
    const int64_t columns = std::min(piece.weight.size(0), tokens_ - first);
    const at::Tensor some = by_rows(x, [&](const at::Tensor& rows) {
      // It is kept: a few rows of it go as fast as memory is read.
      return ops::linear(rows, piece.weight.unsqueeze(0), piece.bias, {"real", {}, {}}, ops::Way::automatic,
                         {}, /*constant=*/true);
    });
    scores.narrow(1, first, columns).copy_(some.narrow(1, 0, columns));
    first += columns;
  }
  return scores;
}

}  // namespace quatrain::models
