#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "ops/attention/attention.h"
#include "ops/engine/mixing.h"
#include "quatrain/api.h"

namespace quatrain::ops {

/// `cached_attention` on a CPU in float32, from raw memory: resolved once for heads of one shape.
class QUATRAIN_API CachedAttention {
 public:
  /// Heads of n components of m values; one score map, or n by the algebra's table.
  CachedAttention(const AttentionCall& call, int64_t n, int64_t heads, int64_t m);
  CachedAttention(std::string_view algebra, int64_t n, int64_t heads, int64_t m);

  /// A row's query: components and heads lie so many values apart, rows too.
  struct Query {
    const float* data;
    int64_t row, component, head;
  };
  /// Where a cache's words lie: so many values from one to the next.
  struct Places {
    const float* data;
    int64_t slot, place, component, head;
    explicit Places(const at::Tensor& cache)
        : data(cache.const_data_ptr<float>()),
          slot(cache.stride(0)),
          place(cache.stride(1)),
          component(cache.stride(2)),
          head(cache.stride(3)) {}
  };
  /// Which words each row sees: the first `count` of its `slots`, `length` at most, whose rows lie `pitch`
  /// numbers apart.
  struct Seen {
    const int32_t* slots;
    int64_t pitch, length;
    const int32_t* count;
  };

  /// y: n x heads x m values a row.
  void operator()(int64_t rows, const Query& query, const Places& keys, const Places& values,
                  const Seen& seen, float* y) const;

 private:
  int64_t maps_, n_, heads_, m_;
  float scale_;
  engine::Mixing mixing_;  // of n maps: it scales as well
};

}  // namespace quatrain::ops
