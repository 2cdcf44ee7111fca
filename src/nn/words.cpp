#include "quatrain/nn/words.h"

#include <torch/torch.h>

namespace quatrain::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The least share of padding that is worth leaving out: an eighth.
constexpr int64_t kWorthLeavingOut = 8;

// Each is the other's gradient, because no place holds two rows. ATen's own gradient of index_select adds row
// by row, which takes longer than the maps save.
struct Scatter;

struct Gather : torch::autograd::Function<Gather> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& places, const at::Tensor& index) {
    context->save_for_backward({index});
    context->saved_data["places"] = places.size(0);
    return places.index_select(0, index);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients);
};

struct Scatter : torch::autograd::Function<Scatter> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& index,
                            int64_t places) {
    context->save_for_backward({index});
    std::vector<int64_t> sizes = rows.sizes().vec();
    sizes[0] = places;
    return at::zeros(sizes, rows.options()).index_copy_(0, index, rows);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {Gather::apply(gradients[0], context->get_saved_variables()[0]), {}, {}};
  }
};

variable_list Gather::backward(AutogradContext* context, const variable_list& gradients) {
  return {
      Scatter::apply(gradients[0], context->get_saved_variables()[0], context->saved_data["places"].toInt()),
      {}};
}

}  // namespace

Words::Words(const at::Tensor& padding) : padding_(padding) {
  if (!padding.defined()) return;
  TORCH_CHECK(padding.dim() == 2 && padding.scalar_type() == at::kBool,
              "Words: padding must be bool (batch, length), got ", padding.scalar_type(), " ",
              padding.sizes());
  const at::Tensor index = padding.logical_not().flatten().nonzero().squeeze(1);
  const int64_t left_out = padding.numel() - index.numel();
  if (left_out > 0 && left_out * kWorthLeavingOut >= padding.numel()) index_ = index;
}

at::Tensor Words::rows(const at::Tensor& places) const {
  if (!index_.defined()) return places;
  TORCH_CHECK(places.dim() >= 2 && places.sizes().slice(0, 2) == padding_.sizes(),
              "Words: places must begin with the padding's sizes ", padding_.sizes(), ", got ",
              places.sizes());
  return Gather::apply(places.flatten(0, 1), index_).unsqueeze(0);
}

at::Tensor Words::places(const at::Tensor& rows) const {
  if (!index_.defined()) return rows;
  TORCH_CHECK(rows.dim() >= 2 && rows.size(0) == 1 && rows.size(1) == index_.numel(),
              "Words: rows must begin with 1 and the number of words, ", index_.numel(), ", got ",
              rows.sizes());
  return Scatter::apply(rows.squeeze(0), index_, padding_.numel()).unflatten(0, padding_.sizes());
}

}  // namespace quatrain::nn
