#include "ops/engine/expand.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

namespace quatrain::ops::engine {

namespace {

constexpr int64_t kElements = 1 << 15;  // of H for one task

/// Pointers to row `row` of the n x n blocks of H.
template <class T>
std::vector<T*> blocks_of(T* H, int64_t n, int64_t m, int64_t p, int64_t row) {
  std::vector<T*> blocks;
  for (int64_t a = 0; a < n; ++a)
    for (int64_t b = 0; b < n; ++b) blocks.push_back(H + (a * m + row) * n * p + b * p);
  return blocks;
}

template <class T>
std::vector<T*> components_of(T* S, int64_t n, int64_t m, int64_t p, int64_t row) {
  std::vector<T*> components;
  for (int64_t i = 0; i < n; ++i) components.push_back(S + (i * m + row) * p);
  return components;
}

int64_t rows_of_task(int64_t n, int64_t p) {
  return std::max<int64_t>(1, kElements / std::max<int64_t>(1, n * n * p));
}

}  // namespace

void expand(const Mixing& blocks, int64_t n, int64_t m, int64_t p, const float* S, float* H) {
  const auto& k = kernels::cpu::active();
  at::parallel_for(0, m, rows_of_task(n, p), [&](int64_t begin, int64_t end) {
    k.combine_f_f(blocks.view(), components_of(S, n, m, p, begin).data(), p,
                  blocks_of(H, n, m, p, begin).data(), n * p, end - begin, p, nullptr,
                  kernels::cpu::Store::set);
  });
}

void contract(const Mixing& components, int64_t n, int64_t m, int64_t p, const float* dH, float* dS,
              const float* S, float* dA) {
  const auto& k = kernels::cpu::active();
  // Equal shares of the rows, each with sums of its own that are added in order: the result does not depend
  // on which thread was first.
  const int64_t share = std::max(rows_of_task(n, p), (m + 63) / 64), tasks = (m + share - 1) / share;
  std::vector<float> sums(dA ? static_cast<size_t>(tasks * n * n * n) : 0);
  at::parallel_for(0, tasks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task * share, rows = std::min(share, m - begin);
      const auto blocks = blocks_of(dH, n, m, p, begin);
      if (dS)
        k.combine_f_f(components.view(), blocks.data(), n * p, components_of(dS, n, m, p, begin).data(), p,
                      rows, p, nullptr, kernels::cpu::Store::set);
      if (dA)
        k.dots_f(components_of(S, n, m, p, begin).data(), static_cast<int32_t>(n), p, blocks.data(),
                 static_cast<int32_t>(n * n), n * p, rows, p, sums.data() + task * n * n * n);
    }
  });
  if (dA) std::fill(dA, dA + n * n * n, 0.0F);
  for (size_t i = 0; i < sums.size(); ++i) dA[i % static_cast<size_t>(n * n * n)] += sums[i];
}

}  // namespace quatrain::ops::engine
