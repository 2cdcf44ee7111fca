// Attention over a cache: on a CPU in float32 row by row, from the places where keys and values lie;
// elsewhere composed of a gather and attention.

#include "ops/attention/cached.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/attention/call.h"
#include "ops/attention/score_products.h"
#include "ops/attention/tiles.h"
#include "ops/constants.h"

namespace quatrain::ops {

namespace {

AttentionCall call_of(std::string_view algebra, std::optional<double> scale) {
  AttentionOptions options;
  options.algebra = std::string(algebra);
  options.scale = scale;
  return attention_call(options);
}

void check(const AttentionCall& call, const at::Tensor& query, const at::Tensor& keys,
           const at::Tensor& values, const at::Tensor& table, const at::Tensor& lengths) {
  TORCH_CHECK(
      query.dim() == 4 && keys.dim() == 5 && values.sym_sizes() == keys.sym_sizes() &&
          query.sym_size(1) == keys.sym_size(2) && query.sym_size(2) == keys.sym_size(3) &&
          query.sym_size(3) == keys.sym_size(4),
      "cached_attention: query must be (rows, n, heads, m), keys and values (slots, capacity, n, heads, "
      "m), got ",
      query.sym_sizes(), ", ", keys.sym_sizes(), " and ", values.sym_sizes());
  const int64_t n = call.algebra->n();
  TORCH_CHECK(n == 1 || query.sym_size(1) == n, "cached_attention: '", call.algebra->name(), "' has n = ", n,
              " components, query has ", query.sym_size(1));
  for (const at::Tensor* t : {&keys, &values})
    TORCH_CHECK(t->scalar_type() == query.scalar_type() && t->device() == query.device(),
                "cached_attention: query, keys and values must be of one type and device, got ",
                query.scalar_type(), " on ", query.device(), " and ", t->scalar_type(), " on ", t->device());
  TORCH_CHECK(
      table.scalar_type() == at::kInt && lengths.scalar_type() == at::kInt && table.dim() == 2 &&
          lengths.dim() == 1 && table.sym_size(0) == query.sym_size(0) &&
          lengths.sym_size(0) == query.sym_size(0) && table.sym_size(1) <= keys.sym_size(1),
      "cached_attention: table must be int32 (rows, length <= capacity) and lengths int32 (rows), got ",
      table.scalar_type(), " ", table.sym_sizes(), " and ", lengths.scalar_type(), " ", lengths.sym_sizes(),
      " for ", query.sym_size(0), " rows and capacity ", keys.sym_size(1));
}

/// The numbers themselves, where they can be read without waiting for a device.
void check_places(const at::Tensor& table, const at::Tensor& lengths, int64_t slots) {
  const auto slot = table.accessor<int32_t, 2>();
  const auto count = lengths.accessor<int32_t, 1>();
  for (int64_t row = 0; row < count.size(0); ++row) {
    TORCH_CHECK(count[row] >= 1 && count[row] <= slot.size(1),
                "cached_attention: lengths must be from 1 to the table's ", slot.size(1), ", got ",
                count[row]);
    for (int64_t s = 0; s < count[row]; ++s)
      TORCH_CHECK(slot[row][s] >= 0 && slot[row][s] < slots, "cached_attention: table must name one of ",
                  slots, " slots, got ", slot[row][s]);
  }
}

at::Tensor composed_cached(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                           const at::Tensor& table, const at::Tensor& lengths, std::string_view algebra,
                           std::optional<double> scale) {
  check(call_of(algebra, scale), query, keys, values, table, lengths);
  if (table.is_cpu() && lengths.is_cpu()) check_places(table, lengths, keys.size(0));
  const at::Tensor places = at::arange(table.sym_size(1), table.options());
  AttentionOptions how;
  how.algebra = std::string(algebra);
  how.scale = scale;
  how.padding = places >= lengths.unsqueeze(1);
  // What a row's length leaves out of the table may hold anything.
  const at::Tensor at = table.masked_fill(how.padding, 0).to(at::kLong) * keys.sym_size(1) + places;
  const auto gather = [&](const at::Tensor& t) {
    return t.flatten(0, 1).index_select(0, at.flatten()).unflatten_symint(0, at.sym_sizes());
  };
  return hypercomplex_attention(query.unsqueeze(1), gather(keys), gather(values), how).squeeze(1);
}

at::Tensor cached_attention_cpu(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                const at::Tensor& table, const at::Tensor& lengths, std::string_view algebra,
                                std::optional<double> scale) {
  const bool dense = query.stride(-1) == 1 && keys.stride(-1) == 1 && values.stride(-1) == 1;
  if (query.scalar_type() != at::kFloat || !dense || query.numel() == 0)
    return composed_cached(query, keys, values, table, lengths, algebra, scale);
  const AttentionCall call = call_of(algebra, scale);
  check(call, query, keys, values, table, lengths);
  const at::Tensor slots = table.stride(1) == 1 ? table : table.contiguous(), counts = lengths.contiguous();
  check_places(slots, counts, keys.size(0));
  const int64_t rows = query.size(0), n = query.size(1), heads = query.size(2), m = query.size(3);
  const at::Tensor result = at::empty({rows, n * heads * m}, query.options());
  const CachedAttention attention(call, n, heads, m);
  attention(
      rows, {query.const_data_ptr<float>(), query.stride(0), query.stride(1), query.stride(2)},
      CachedAttention::Places(keys), CachedAttention::Places(values),
      {slots.const_data_ptr<int32_t>(), slots.stride(0), table.size(1), counts.const_data_ptr<int32_t>()},
      result.mutable_data_ptr<float>());
  return result;
}

}  // namespace

CachedAttention::CachedAttention(std::string_view algebra, int64_t n, int64_t heads, int64_t m)
    : CachedAttention(call_of(algebra, std::nullopt), n, heads, m) {}

CachedAttention::CachedAttention(const AttentionCall& call, int64_t n, int64_t heads, int64_t m)
    : n_(n), heads_(heads), m_(m) {
  maps_ = call.algebra->n() == 1 ? 1 : n;
  const double factor = call.scale(n, m);
  scale_ = static_cast<float>(factor);
  // One map takes the query as it is, scaled; n maps mix its components by the table.
  if (maps_ > 1) mixing_ = map_mixing(call, factor, true);
}

void CachedAttention::operator()(int64_t rows, const Query& query, const Places& keys, const Places& values,
                                 const Seen& seen, float* y) const {
  const auto& k = kernels::cpu::active();
  const int64_t filled = (seen.length + 15) / 16 * 16;
  // Of one row or several, all heads or some: a row's places are read once for all of them.
  at::parallel_for(0, rows * heads_, 8, [&](int64_t begin, int64_t end) {
    engine::Scratch& memory = engine::scratch();
    memory.begin(4 * maps_ * heads_ * (n_ * m_ + filled) + 16 * seen.length + 256);
    float* const mixed = memory.take<float>(maps_ * n_ * heads_ * m_);
    float* const weights = memory.take<float>(maps_ * heads_ * filled);
    const float** const at_keys = memory.take<const float*>(seen.length);
    const float** const at_values = memory.take<const float*>(seen.length);
    for (int64_t task = begin; task < end;) {
      const int64_t row = task / heads_, head = task % heads_, together = std::min(heads_ - head, end - task);
      const int64_t count = seen.count[row];
      for (int64_t s = 0; s < count; ++s) {
        const int64_t of = seen.slots[row * seen.pitch + s];
        at_keys[s] = keys.data + of * keys.slot + s * keys.place + head * keys.head;
        at_values[s] = values.data + of * values.slot + s * values.place + head * values.head;
      }
      const float* const first = query.data + row * query.row + head * query.head;
      const int64_t of_component = together * m_;
      if (maps_ > 1) {
        k.combine_f_f(mixing_.view(), row_of(first, n_, query.component).data(), query.head,
                      row_of(mixed, maps_ * n_, of_component).data(), m_, together, m_, nullptr,
                      kernels::cpu::Store::set);
      } else {
        for (int64_t j = 0; j < n_; ++j)
          for (int64_t h = 0; h < together; ++h)
            for (int64_t v = 0; v < m_; ++v)
              mixed[j * of_component + h * m_ + v] = scale_ * first[j * query.component + h * query.head + v];
      }
      const kernels::cpu::Attended attended{static_cast<int32_t>(maps_),
                                            static_cast<int32_t>(n_),
                                            together,
                                            m_,
                                            count,
                                            {at_keys, keys.component, keys.head},
                                            {at_values, values.component, values.head}};
      k.attend(attended, mixed, weights, filled, y + row * n_ * heads_ * m_ + head * m_, heads_ * m_);
      task += together;
    }
  });
}

at::Tensor cached_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                            const at::Tensor& table, const at::Tensor& lengths, const std::string& algebra,
                            std::optional<double> scale) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("quatrain::cached_attention", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, std::string_view, std::optional<double>)>();
  return op.call(query, keys, values, table, lengths, algebra, scale);
}

void keep_words(const at::Tensor& cache, int64_t place, const at::Tensor& words) {
  TORCH_CHECK(cache.dim() == 5 && words.dim() == 4 && words.sizes().slice(1) == cache.sizes().slice(2) &&
                  words.size(0) <= cache.size(0) && place >= 0 && place < cache.size(1),
              "keep_words: words must be (rows, n, heads, m) and fit place ", place,
              " of a cache (slots, capacity, n, heads, m), got ", words.sizes(), " and ", cache.sizes());
  const int64_t size = words.numel() / std::max<int64_t>(words.size(0), 1);
  const bool plain = cache.is_cpu() && words.is_cpu() && cache.scalar_type() == at::kFloat &&
                     words.scalar_type() == at::kFloat && cache.is_contiguous() && words.is_contiguous();
  if (!plain) {
    cache.select(1, place).narrow(0, 0, words.size(0)).copy_(words);
    return;
  }
  const float* from = words.const_data_ptr<float>();
  float* to = cache.mutable_data_ptr<float>() + place * cache.stride(1);
  for (int64_t row = 0; row < words.size(0); ++row, from += size, to += cache.stride(0))
    std::copy_n(from, size, to);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def(
      "cached_attention(Tensor query, Tensor keys, Tensor values, Tensor table, Tensor lengths, str "
      "algebra=\"real\", float? scale=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("cached_attention", &composed_cached);
}
TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("cached_attention", &cached_attention_cpu);
}
TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("cached_attention", [](const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                const at::Tensor& table, const at::Tensor& lengths, std::string_view algebra,
                                std::optional<double> scale) {
    check(call_of(algebra, scale), query, keys, values, table, lengths);
    return at::empty_symint({query.sym_size(0), query.sym_size(1) * query.sym_size(2) * query.sym_size(3)},
                            query.options());
  });
}

}  // namespace quatrain::ops
