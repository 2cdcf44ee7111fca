#include "ops/engine/dense.h"

#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <limits>
#include <string_view>

#include "kernels/cpu/targets.h"
#include "ops/engine/engine.h"

// MKL's, with its numbers for orders and operands; null where ATen was built with another library.
extern "C" {
size_t cblas_sgemm_pack_get_size(int identifier, int m, int n, int k) __attribute__((weak));
void cblas_sgemm_pack(int order, int identifier, int transpose, int m, int n, int k, float alpha,
                      const float* source, int source_row, float* packed) __attribute__((weak));
void cblas_sgemm_compute(int order, int transpose_a, int transpose_b, int m, int n, int k, const float* a,
                         int a_row, const float* b, int b_row, float beta, float* c, int c_row)
    __attribute__((weak));
}

namespace quatrain::ops::engine {
namespace {

constexpr int kRowMajor = 101, kAsItIs = 111, kTransposes = 112, kPackedBefore = 151, kRightOperand = 162;
// The rows that MKL chooses the blocks' sizes for; other numbers are served too. Measured on a Xeon with AMX,
// one thread, 512 x 512 to 512 x 32,000: packed for 128 rows products of 4 to 128 rows take .35 to .92 of
// ATen's time; packed for 1 or 32 some of them take up to 1.3.
constexpr int kPackedForRows = 128;

at::Tensor view_of(const Matrix& matrix, int64_t rows, int64_t columns) {
  auto* const data = const_cast<float*>(matrix.data);
  return matrix.transposed ? at::from_blob(data, {rows, columns}, {1, matrix.row}, at::kFloat)
                           : at::from_blob(data, {rows, columns}, {matrix.row, 1}, at::kFloat);
}

/// The products of ATen's libraries have none.
void add_bias(int64_t rows, int64_t columns, const float* bias, float* c, int64_t c_row) {
  if (!bias) return;
  Epilogue epilogue;
  epilogue.bias = bias;
  finish_rows(epilogue, 1, columns, rows, 0, columns, {c, 0, c_row, false, at::kFloat});
}

Blocks blocks_of(const Matrix& matrix) {
  return {const_cast<float*>(matrix.data), 0, matrix.row, matrix.transposed, at::kFloat};
}

}  // namespace

// A pass of one component and one product: the right operand is copied into its blocks, and the left one
// unless it is read where it lies.
void multiply_in_engine(int64_t M, int64_t N, int64_t K, const Matrix& a, const Matrix& b, const float* bias,
                        bool accumulate, float* c, int64_t c_row) {
  constexpr double kOne = 1;
  static const Mixings one(&kOne, &kOne, &kOne, 1, 1);
  const Piece left{blocks_of(a), K}, right{blocks_of(b), N};
  Pass pass;
  pass.M = M, pass.N = N, pass.K = K, pass.n = pass.rank = 1;
  pass.A = {&left, 1}, pass.left = &one.V_in;
  pass.B = {&right, 1}, pass.right = &one.U_in;
  pass.out = &one.W_out;
  pass.C = {c, 0, c_row, false, at::kFloat}, pass.accumulate = accumulate, pass.epilogue.bias = bias;
  run(pass);
}

void multiply(int64_t M, int64_t N, int64_t K, const Matrix& a, const Matrix& b, const float* bias,
              bool accumulate, float* c, int64_t c_row) {
  if (dense_is_slow() && M >= kFewRows && K >= kFewRows)
    return multiply_in_engine(M, N, K, a, b, bias, accumulate, c, c_row);
  at::Tensor to = view_of({c, c_row}, M, N);
  const at::Tensor left = view_of(a, M, K), right = view_of(b, K, N);
  // Without the dispatcher: all three lie in the memory of a CPU.
  accumulate ? at::cpu::addmm_out(to, to, left, right) : at::cpu::mm_out(to, left, right);
  add_bias(M, N, bias, c, c_row);
}

bool dense_is_slow() {
  return cblas_sgemm_compute && kernels::cpu::active().name != std::string_view("baseline") &&
         !kernels::cpu::is_of_intel();
}

bool packs_dense(int64_t rows, int64_t out, int64_t in) {
  constexpr int64_t kFewest = 2, kMost = 256, kSmall = 16 * 16;
  constexpr int64_t kLargest = std::numeric_limits<int>::max();
  return cblas_sgemm_pack_get_size && cblas_sgemm_pack && cblas_sgemm_compute && rows >= kFewest &&
         rows <= kMost && out * in >= kSmall && out <= kLargest && in <= kLargest;
}

at::Tensor pack_dense(const at::Tensor& H) {
  const int out = static_cast<int>(H.size(0)), in = static_cast<int>(H.size(1));
  const size_t bytes = cblas_sgemm_pack_get_size(kRightOperand, kPackedForRows, out, in);
  const at::Tensor packed = at::empty({static_cast<int64_t>(bytes)}, H.options().dtype(at::kByte));
  cblas_sgemm_pack(kRowMajor, kRightOperand, kTransposes, kPackedForRows, out, in, 1,
                   H.const_data_ptr<float>(), in, static_cast<float*>(packed.mutable_data_ptr()));
  return packed;
}

void multiply_packed(int64_t rows, int64_t out, int64_t in, const float* x, int64_t x_row,
                     const at::Tensor& packed, const float* bias, bool accumulate, float* y, int64_t y_row) {
  const auto number = [](int64_t value) { return static_cast<int>(value); };
  cblas_sgemm_compute(kRowMajor, kAsItIs, kPackedBefore, number(rows), number(out), number(in), x,
                      number(x_row), static_cast<const float*>(packed.const_data_ptr()), number(in),
                      accumulate ? 1 : 0, y, number(y_row));
  add_bias(rows, out, bias, y, y_row);
}

}  // namespace quatrain::ops::engine
