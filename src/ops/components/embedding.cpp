// Rows of a hypercomplex matrix: row t = a k/n + r of H has the blocks sum_i A[i, a, b] S_i[r] of all b.
// Composed of ATen calls, or directly where nothing is differentiated: a decoder asks for a few at each step.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>

#include "ops/constants.h"
#include "ops/map/call.h"
#include "ops/transforms.h"
#include "quatrain/ops.h"

namespace quatrain::ops {

namespace {

/// A is undefined where rows are those of S.
template <class T>
void write_rows(const at::Tensor& tokens, const at::Tensor& S, const at::Tensor& A, at::Tensor& rows) {
  const int64_t n = S.size(0), units = S.size(1), width = S.size(2);
  const auto* const places = tokens.const_data_ptr<int64_t>();
  const auto *const s = S.const_data_ptr<T>(), *const mixture = A.defined() ? A.const_data_ptr<T>() : nullptr;
  auto* const y = rows.mutable_data_ptr<T>();
  constexpr int64_t kProducts = 1 << 15;  // that are worth a thread
  const int64_t grain = std::max<int64_t>(1, kProducts / std::max<int64_t>(1, n * n * width));
  at::parallel_for(0, tokens.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      TORCH_CHECK_INDEX(places[t] >= 0 && places[t] < n * units, "embedding: tokens must be from 0 to ",
                        n * units - 1, ", got ", places[t]);
      if (!mixture) {
        std::copy_n(s + places[t] * width, width, y + t * width);
        continue;
      }
      const int64_t component = places[t] / units, unit = places[t] % units;
      for (int64_t b = 0; b < n; ++b) {
        T* const to = y + (t * n + b) * width;
        std::fill_n(to, width, T{0});
        for (int64_t i = 0; i < n; ++i) {
          const T factor = mixture[(i * n + component) * n + b];
          const T* const from = s + (i * units + unit) * width;
          for (int64_t j = 0; j < width; ++j) to[j] += factor * from[j];
        }
      }
    }
  });
}

/// Undefined where something watches, or the values lie otherwise.
at::Tensor plain_rows(const at::Tensor& tokens, const at::Tensor& S, const at::Tensor& A) {
  const auto type = S.scalar_type();
  if (in_function_transform() || !is_plain(tokens) || !is_plain(S) || (A.defined() && !is_plain(A)) ||
      !S.is_contiguous() || (type != at::kFloat && type != at::kDouble) ||
      (at::GradMode::is_enabled() && (wants_grad(S) || wants_grad(A))))
    return {};
  std::vector<int64_t> sizes = tokens.sizes().vec();
  sizes.push_back(S.size(0) * S.size(2));
  at::Tensor rows = at::empty(sizes, S.options());
  const at::Tensor places = tokens.to(at::kLong).contiguous(),
                   mixtures = A.defined() ? A.to(type).contiguous() : A;
  type == at::kFloat ? write_rows<float>(places, S, mixtures, rows)
                     : write_rows<double>(places, S, mixtures, rows);
  return rows;
}

/// A: (n, n, n), or its factors (3, n, R); none where n = 1 and the rows are those of S.
at::Tensor embedding_rows(const at::Tensor& tokens, const at::Tensor& S, const std::optional<at::Tensor>& A,
                          bool factored) {
  // Rows keep their type under autocast, as torch's embeddings do; a product of two numbers is not what is
  // slow.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  check_values("embedding", "S", S);
  TORCH_CHECK(S.dim() == 3 && S.sym_size(0) >= 1 && S.sym_size(1) >= 1,
              "embedding: S must have the shape (n, tokens / n, width / n), got ", S.sym_sizes());
  TORCH_CHECK(tokens.scalar_type() == at::kLong || tokens.scalar_type() == at::kInt,
              "embedding: tokens must be int64 or int32, got ", tokens.scalar_type());
  const c10::SymInt n = S.sym_size(0), rows = S.sym_size(1), width = S.sym_size(2);
  if (!A || !A->defined()) {
    TORCH_CHECK(n == 1, "embedding: A goes with S of n > 1 blocks, got none for n = ", n);
    const at::Tensor found = plain_rows(tokens, S, {});
    return found.defined() ? found : at::embedding(S.select(0, 0), tokens);
  }
  Call call;
  call.algebra = factored ? "factored" : "learned";
  call.A = *A;
  check_weight("embedding", S, call);
  if (const at::Tensor found = plain_rows(tokens, S, call.structure()); found.defined()) return found;

  const at::Tensor flat = tokens.flatten(), component = flat.floor_divide(rows),
                   row = flat - component * rows;
  const at::Tensor places = row.unsqueeze(1) + at::arange(n, row.options()) * rows;
  const at::Tensor parts = at::embedding(S.flatten(0, 1), places);  // (tokens, n, width / n)
  const at::Tensor mixtures = call.structure().to(S.scalar_type()).permute({1, 2, 0});  // a, b, i
  const at::Tensor of_tokens =
      at::embedding(mixtures.reshape_symint({n, n * n}), component).unflatten_symint(1, {n, n});
  c10::SymDimVector sizes(tokens.sym_sizes().begin(), tokens.sym_sizes().end());
  sizes.push_back(n * width);
  return at::bmm(of_tokens, parts).reshape_symint(sizes);
}

}  // namespace

at::Tensor embedding(const at::Tensor& tokens, const at::Tensor& S, const Product& product) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("quatrain::embedding", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, bool)>();
  const Call call = make_call(product);
  check_weight("embedding", S, call);
  if (call.learned()) return op.call(tokens, S, call.A, call.factored());
  if (call.fixed()->n() == 1 && call.fixed()->table(0, 0, 0) == 1)
    return op.call(tokens, S, std::nullopt, false);
  return op.call(tokens, S, table_tensor(*call.fixed(), S.scalar_type(), S.device()), false);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("embedding(Tensor tokens, Tensor S, Tensor? A=None, bool factored=False) -> Tensor", &embedding_rows);
}

// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("embedding", &embedding_rows);
}

}  // namespace quatrain::ops
