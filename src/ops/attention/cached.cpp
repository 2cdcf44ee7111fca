// Attention over a cache: on a CPU in float32 row by row, from the places where keys and values lie;
// elsewhere composed of a gather and attention.

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

/// Where a cache's words lie: so many values from one to the next.
struct Places {
  const float* data;
  int64_t slot, place, component, head;
  explicit Places(const at::Tensor& t)
      : data(t.const_data_ptr<float>()),
        slot(t.stride(0)),
        place(t.stride(1)),
        component(t.stride(2)),
        head(t.stride(3)) {}
};

at::Tensor cached_attention_cpu(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                const at::Tensor& table, const at::Tensor& lengths, std::string_view algebra,
                                std::optional<double> scale) {
  const bool dense = query.stride(-1) == 1 && keys.stride(-1) == 1 && values.stride(-1) == 1;
  if (query.scalar_type() != at::kFloat || !dense || query.numel() == 0)
    return composed_cached(query, keys, values, table, lengths, algebra, scale);
  const AttentionCall call = call_of(algebra, scale);
  check(call, query, keys, values, table, lengths);
  const int64_t rows = query.size(0), n = query.size(1), heads = query.size(2), m = query.size(3),
                capacity = table.size(1);
  const int64_t maps = call.algebra->n() == 1 ? 1 : n;
  // One map takes the query as it is, scaled; n maps mix its components by the table.
  const double factor = call.scale(n, m);
  const engine::Mixing mixing = maps > 1 ? map_mixing(call, factor, true) : engine::Mixing();
  const at::Tensor slots_of = table.stride(1) == 1 ? table : table.contiguous(),
                   counts = lengths.contiguous();
  const int64_t pitch = slots_of.stride(0);
  const int32_t* const slot = slots_of.const_data_ptr<int32_t>();
  const int32_t* const count = counts.const_data_ptr<int32_t>();
  check_places(slots_of, counts, keys.size(0));
  const Places from_keys(keys), from_values(values);
  const at::Tensor result = at::empty({rows, n * heads * m}, query.options());
  const float* const q = query.const_data_ptr<float>();
  float* const y = result.mutable_data_ptr<float>();
  const auto& k = kernels::cpu::active();
  const int64_t filled = (capacity + 15) / 16 * 16;
  // Of one row or several, all heads or some: a row's places are read once for all of them.
  at::parallel_for(0, rows * heads, 8, [&](int64_t begin, int64_t end) {
    engine::Scratch& memory = engine::scratch();
    memory.begin(4 * maps * heads * (n * m + filled) + 16 * capacity + 256);
    float* const mixed = memory.take<float>(maps * n * heads * m);
    float* const weights = memory.take<float>(maps * heads * filled);
    const float** const at_keys = memory.take<const float*>(capacity);
    const float** const at_values = memory.take<const float*>(capacity);
    for (int64_t task = begin; task < end;) {
      const int64_t row = task / heads, head = task % heads, together = std::min(heads - head, end - task);
      for (int64_t s = 0; s < count[row]; ++s) {
        const int64_t of = slot[row * pitch + s];
        at_keys[s] = from_keys.data + of * from_keys.slot + s * from_keys.place + head * from_keys.head;
        at_values[s] =
            from_values.data + of * from_values.slot + s * from_values.place + head * from_values.head;
      }
      const float* const first = q + row * query.stride(0) + head * query.stride(2);
      const int64_t of_component = together * m;
      if (maps > 1) {
        k.combine_f_f(mixing.view(), row_of(first, n, query.stride(1)).data(), query.stride(2),
                      row_of(mixed, maps * n, of_component).data(), m, together, m, nullptr,
                      kernels::cpu::Store::set);
      } else {
        for (int64_t j = 0; j < n; ++j)
          for (int64_t h = 0; h < together; ++h)
            for (int64_t v = 0; v < m; ++v)
              mixed[j * of_component + h * m + v] =
                  static_cast<float>(factor) * first[j * query.stride(1) + h * query.stride(2) + v];
      }
      const kernels::cpu::Attended attended{static_cast<int32_t>(maps),
                                            static_cast<int32_t>(n),
                                            together,
                                            m,
                                            count[row],
                                            {at_keys, from_keys.component, from_keys.head},
                                            {at_values, from_values.component, from_values.head}};
      k.attend(attended, mixed, weights, filled, y + row * n * heads * m + head * m, heads * m);
      task += together;
    }
  });
  return result;
}

}  // namespace

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
