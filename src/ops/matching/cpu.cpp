// Matching on a CPU in float32: each block of rows is read and written while it is in the first level cache.
// What is linear in a and b is one mixture, and their product another kernel.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "kernels/cpu/kernels.h"
#include "ops/engine/mixing.h"
#include "ops/matching/matching.h"

namespace quatrain::ops::cpu {

namespace {

using kernels::cpu::Store;

constexpr int64_t kParts = 4;           // a, b, a * b and a - b
constexpr int64_t kBlockValues = 1024;  // of a block's rows of a: 1 to 8 rows

/// Owns what kernels::cpu::Bilinear points to.
class Bilinear {
 public:
  using Term = MatchedNumbers::Term;

  Bilinear(const MatchedNumbers& numbers, int64_t Term::*output, int64_t Term::*left, int64_t Term::*right) {
    for (int64_t o = 0; o < numbers.n; ++o) {
      for (const Term& term : numbers.terms)
        if (term.*output == o) {
          left_.push_back(static_cast<int32_t>(term.*left));
          right_.push_back(static_cast<int32_t>(term.*right));
          coefficient_.push_back(static_cast<float>(term.value));
        }
      begin_.push_back(static_cast<int32_t>(left_.size()));
    }
  }
  kernels::cpu::Bilinear view() const {
    return {static_cast<int32_t>(begin_.size()) - 1, begin_.data(), left_.data(), right_.data(),
            coefficient_.data()};
  }

 private:
  std::vector<int32_t> begin_{0}, left_, right_;
  std::vector<float> coefficient_;
};

/// The mixtures that make parts 0, 1 and 3 of each component of the n of a and then those of b; or
/// transposed.
engine::Mixing linear_part(int64_t n, bool transposed) {
  const int64_t made = 3 * n, given = 2 * n;
  std::vector<double> rows(static_cast<size_t>(made * given));
  const auto set = [&](int64_t to, int64_t from, double value) {
    rows[static_cast<size_t>(transposed ? from * made + to : to * given + from)] = value;
  };
  for (int64_t c = 0; c < n; ++c) {
    set(3 * c, c, 1), set(3 * c + 2, c, 1);
    set(3 * c + 1, n + c, 1), set(3 * c + 2, n + c, -1);
  }
  return transposed ? engine::Mixing::from_rows(rows.data(), given, made)
                    : engine::Mixing::from_rows(rows.data(), made, given);
}

/// Pointers to the components of a row.
template <class T>
void add_components(std::vector<T*>& to, T* row, int64_t n, int64_t m) {
  for (int64_t c = 0; c < n; ++c) to.push_back(row + c * m);
}
/// Of a row (n, 4, m).
template <class T>
void add_parts(std::vector<T*>& linear, std::vector<T*>& product, T* row, int64_t n, int64_t m) {
  for (int64_t c = 0; c < n; ++c)
    for (int64_t part = 0; part < kParts; ++part)
      (part == 2 ? product : linear).push_back(row + (c * kParts + part) * m);
}

template <class Run>
void in_blocks(int64_t rows, int64_t width, const Run& run) {
  const int64_t wide = std::max<int64_t>(1, width), block = std::clamp<int64_t>(kBlockValues / wide, 1, 8);
  at::parallel_for(0, rows, std::max<int64_t>(block, (1 << 15) / wide), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += block) run(row, std::min(block, end - row));
  });
}

}  // namespace

at::Tensor matching(const MatchedNumbers& numbers, const at::Tensor& a, const at::Tensor& b) {
  const auto& k = kernels::cpu::active();
  const int64_t n = numbers.n, width = a.size(-1), m = width / n, rows = width > 0 ? a.numel() / width : 0;
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = kParts * width;
  const at::Tensor out = at::empty(sizes, a.options()), A = a.contiguous(), B = b.contiguous();
  const engine::Mixing linear = linear_part(n, false);
  using Term = MatchedNumbers::Term;
  const Bilinear product(numbers, &Term::c, &Term::i, &Term::j);
  const float *const from_a = A.const_data_ptr<float>(), *const from_b = B.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  in_blocks(rows, width, [&](int64_t row, int64_t count) {
    std::vector<const float*> left, right, both;
    add_components(left, from_a + row * width, n, m);
    add_components(right, from_b + row * width, n, m);
    both = left;
    both.insert(both.end(), right.begin(), right.end());
    std::vector<float*> made, multiplied;
    add_parts(made, multiplied, to + row * kParts * width, n, m);
    k.combine_f_f(linear.view(), both.data(), width, made.data(), kParts * width, count, m, nullptr,
                  Store::set);
    k.multiply(product.view(), left.data(), width, right.data(), width, multiplied.data(), kParts * width,
               count, m, Store::set);
  });
  return out;
}

std::tuple<at::Tensor, at::Tensor> matching_backward(const MatchedNumbers& numbers, const at::Tensor& grad,
                                                     const at::Tensor& a, const at::Tensor& b) {
  const auto& k = kernels::cpu::active();
  const int64_t n = numbers.n, width = a.size(-1), m = width / n, rows = width > 0 ? a.numel() / width : 0;
  const at::Tensor G = grad.contiguous(), A = a.contiguous(), B = b.contiguous();
  const at::Tensor da = at::empty_like(A), db = at::empty_like(B);
  const engine::Mixing linear = linear_part(n, true);
  using Term = MatchedNumbers::Term;
  const Bilinear into_a(numbers, &Term::i, &Term::c, &Term::j), into_b(numbers, &Term::j, &Term::c, &Term::i);
  const float *const from_g = G.const_data_ptr<float>(), *const from_a = A.const_data_ptr<float>(),
                     *const from_b = B.const_data_ptr<float>();
  float *const to_a = da.mutable_data_ptr<float>(), *const to_b = db.mutable_data_ptr<float>();
  in_blocks(rows, width, [&](int64_t row, int64_t count) {
    std::vector<const float*> left, right, given, multiplied;
    add_components(left, from_a + row * width, n, m);
    add_components(right, from_b + row * width, n, m);
    add_parts(given, multiplied, from_g + row * kParts * width, n, m);
    std::vector<float*> made_a, made_b, both;
    add_components(made_a, to_a + row * width, n, m);
    add_components(made_b, to_b + row * width, n, m);
    both = made_a;
    both.insert(both.end(), made_b.begin(), made_b.end());
    k.combine_f_f(linear.view(), given.data(), kParts * width, both.data(), width, count, m, nullptr,
                  Store::set);
    k.multiply(into_a.view(), multiplied.data(), kParts * width, right.data(), width, made_a.data(), width,
               count, m, Store::add);
    k.multiply(into_b.view(), multiplied.data(), kParts * width, left.data(), width, made_b.data(), width,
               count, m, Store::add);
  });
  return {da, db};
}

}  // namespace quatrain::ops::cpu
