// Words of a padded batch as rows, and rows in their places. Each is the other's gradient, because no place
// holds two rows: ATen's own gradient of index_select adds row by row, which takes longer than the maps of
// the padding.

#include "quatrain/word_ops.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/library.h>

#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The least share of padding that is worth leaving out: a quarter. Going back and forth copies what attention
// reads, which narrow layers feel.
constexpr int64_t kWorthLeavingOut = 4;

void check_index(const char* function, const at::Tensor& index) {
  TORCH_CHECK(index.layout() == at::kStrided && index.dim() == 1 && index.scalar_type() == at::kLong,
              function, ": index must be int64 (words), got ", index.scalar_type(), " ", index.sym_sizes());
}

at::Tensor composed_rows(const at::Tensor& places, const at::Tensor& index) {
  check_index("rows_of_words", index);
  TORCH_CHECK(places.layout() == at::kStrided && places.dim() >= 2,
              "rows_of_words: places must be dense and (B, L, ...), got ", places.layout(), " ",
              places.sym_sizes());
  return places.flatten(0, 1).index_select(0, index).unsqueeze(0);
}

at::Tensor zero_places(const at::Tensor& rows, const at::Tensor& index, const c10::SymInt& texts,
                       const c10::SymInt& length) {
  check_index("places_of_words", index);
  TORCH_CHECK(rows.layout() == at::kStrided && rows.dim() >= 2 && rows.sym_size(0) == 1 &&
                  rows.sym_size(1) == index.sym_numel() && texts >= 0 && length >= 0,
              "places_of_words: rows must be dense and (1, words, ...) with the ", index.sym_numel(),
              " words of the index, got ", rows.layout(), " ", rows.sym_sizes());
  c10::SymDimVector sizes(rows.sym_sizes().begin() + 1, rows.sym_sizes().end());
  sizes[0] = texts * length;
  return at::zeros_symint(sizes, rows.options());
}

at::Tensor composed_places(const at::Tensor& rows, const at::Tensor& index, c10::SymInt texts,
                           c10::SymInt length) {
  const at::Tensor places = zero_places(rows, index, texts, length);
  return places.index_copy(0, index, rows.squeeze(0)).unflatten_symint(0, {texts, length});
}

/// The same without a copy of the zeros, which function transforms want.
at::Tensor filled_places(const at::Tensor& rows, const at::Tensor& index, c10::SymInt texts,
                         c10::SymInt length) {
  const at::Tensor places = zero_places(rows, index, texts, length);
  return places.index_copy_(0, index, rows.squeeze(0)).unflatten_symint(0, {texts, length});
}

}  // namespace

// What profiles name.
namespace autograd {

struct RowsOfWords : torch::autograd::Function<RowsOfWords> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& places, const at::Tensor& index) {
    ctx->save_for_backward({index});
    ctx->saved_data["texts"] = places.sym_size(0);
    ctx->saved_data["length"] = places.sym_size(1);
    const at::AutoDispatchBelowADInplaceOrView below;
    return rows_of_words(places, index);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {places_of_words(dense_gradient(grads[0]), ctx->get_saved_variables()[0],
                            ctx->saved_data["texts"].toSymInt(), ctx->saved_data["length"].toSymInt()),
            {}};
  }
};

struct PlacesOfWords : torch::autograd::Function<PlacesOfWords> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, const at::Tensor& index,
                            const c10::SymInt& texts, const c10::SymInt& length) {
    ctx->save_for_backward({index});
    const at::AutoDispatchBelowADInplaceOrView below;
    return places_of_words(rows, index, texts, length);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {rows_of_words(dense_gradient(grads[0]), ctx->get_saved_variables()[0]), {}, {}, {}};
  }
};

}  // namespace autograd

namespace {

bool recorded(const at::Tensor& t) {
  return at::GradMode::is_enabled() && wants_grad(t);
}

at::Tensor rows_autograd(const at::Tensor& places, const at::Tensor& index) {
  if (transformed({places})) return composed_rows(places, index);
  if (recorded(places) && places.dim() >= 2) return autograd::RowsOfWords::apply(places, index);
  const at::AutoDispatchBelowADInplaceOrView below;
  return rows_of_words(places, index);
}

at::Tensor places_autograd(const at::Tensor& rows, const at::Tensor& index, c10::SymInt texts,
                           c10::SymInt length) {
  if (transformed({rows})) return composed_places(rows, index, texts, length);
  if (recorded(rows)) return autograd::PlacesOfWords::apply(rows, index, texts, length);
  const at::AutoDispatchBelowADInplaceOrView below;
  return places_of_words(rows, index, texts, length);
}

}  // namespace

at::Tensor index_of_words(const at::Tensor& padding) {
  TORCH_CHECK(padding.dim() == 2 && padding.scalar_type() == at::kBool,
              "index_of_words: padding must be bool (B, L), got ", padding.scalar_type(), " ",
              padding.sym_sizes());
  if (in_function_transform() || is_compiled() || torch::jit::tracer::isTracing() ||
      !padding.device().is_cpu() || is_subclass_like(padding))
    return {};
  const at::Tensor index = padding.logical_not().flatten().nonzero().squeeze(1);
  const int64_t left_out = padding.numel() - index.numel();
  return left_out > 0 && left_out * kWorthLeavingOut >= padding.numel() ? index : at::Tensor();
}

at::Tensor rows_of_words(const at::Tensor& places, const at::Tensor& index) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::rows_of_words", "")
                             .typed<decltype(rows_of_words)>();
  return op.call(places, index);
}

at::Tensor places_of_words(const at::Tensor& rows, const at::Tensor& index, c10::SymInt texts,
                           c10::SymInt length) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::places_of_words", "")
                             .typed<decltype(places_of_words)>();
  return op.call(rows, index, std::move(texts), std::move(length));
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("index_of_words(Tensor padding) -> Tensor", &index_of_words);
  m.def("rows_of_words(Tensor places, Tensor index) -> Tensor");
  m.def("places_of_words(Tensor rows, Tensor index, SymInt texts, SymInt length) -> Tensor");
}
TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("rows_of_words", &composed_rows);
  m.impl("places_of_words", &filled_places);
}
TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("rows_of_words", &rows_autograd);
  m.impl("places_of_words", &places_autograd);
}

// vmap sees what they are composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("index_of_words", &index_of_words);
  m.impl("rows_of_words", &composed_rows);
  m.impl("places_of_words", &composed_places);
}

}  // namespace quatrain::ops
