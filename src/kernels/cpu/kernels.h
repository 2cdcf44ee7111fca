#pragma once

#include <stdint.h>

#include "quatrain/api.h"

/// Plain loops over raw memory, compiled once for each instruction set behind a table of functions. They know
/// sizes and strides and nothing of tensors. Row-major throughout; the last axis has stride 1.
namespace quatrain::kernels::cpu {

/// Bits of a bfloat16: the upper half of a float32.
typedef uint16_t bf16;

/// How many inputs outputs of a group have beyond those that they share.
enum class More : int32_t { none, one, any };

/// Consecutive outputs of a mixture, one, two or four, that start with the same `common` inputs in the same
/// order. Their coefficients, those of an input side by side, start at shared[coefficients].
///
/// Inputs of four outputs are `paired` where the first and the second have coefficients of one size in each,
/// of one sign in every other output and of opposite signs in the rest, and the third and the fourth too:
/// four sums and differences serve all four outputs, as in a transform of Hadamard's. `opposite` says of each
/// pair whether the signs differ in the first output; `ones`, whether the first input has coefficients of 1;
/// `hadamard` is the factor, a power of two, of four outputs that are it times (a + b) + (c + d), (a - b) +
/// (c - d), (a + b) - (c + d) and (a - b) - (c - d), else 0.
struct MixGroup {
  int32_t first, count, common, coefficients;
  More more;
  bool paired = false;
  bool opposite[2] = {};
  bool ones = false;
  float hadamard = 0;
};

/// Linear mixtures: output o is the sum over e in [begin[o], begin[o + 1]) of coefficient[e] * input
/// source[e].
struct Mix {
  int32_t outputs;
  const int32_t* begin;
  const int32_t* source;
  const float* coefficient;
  int32_t groups = 0;  ///< which cover all outputs in their order (groups.h); kernels go by them
  const MixGroup* group = nullptr;
  const float* shared = nullptr;
};

/// The pairs of matrices whose products are summed: x[i] and w[i].
struct Links {
  const float* const* x;
  const float* const* w;
  int64_t count;
};

/// Memory that is asked for before its turn; none where `from` is null.
struct Fetched {
  const float* from = nullptr;
  int64_t count = 0;  ///< of its values
};

/// Sums of products: output o is the sum over e in [begin[o], begin[o + 1]) of coefficient[e] * a left[e] * b
/// right[e].
struct Bilinear {
  int32_t outputs;
  const int32_t* begin;
  const int32_t* left;
  const int32_t* right;
  const float* coefficient;
};

/// How a mixture's results are stored: as they are, or added to what is there.
enum class Store : int32_t { set, add };

/// A function of single values.
enum class Activation : int32_t { identity, relu, tanh, sigmoid };

/// Which values of a matrix are dropped: those whose 32 bits, made of `seed`, of the row's number (`row` and
/// on) and of the column's, are below `threshold`. The others are multiplied by `scale`.
struct Drop {
  uint64_t seed, row;
  uint32_t threshold;
  float scale;
};

/// A recurrent cell: what it does with its gates, in the order of torch::nn. x are the parts of the input's
/// product z, and y those of the state's product r.
///   lstm          i, f, g, o: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
///   lstm_printed  the same with h = o c, as PHM prints it
///   gru           r, z, n: n = tanh(x_n + sigmoid(r) y_n), h = (1 - sigmoid(z)) n + sigmoid(z) h
///   rnn_tanh, rnn_relu  one gate: h = tanh(x + y), or its positive part
enum class Cell : int32_t { lstm, lstm_printed, gru, rnn_tanh, rnn_relu };

/// A step of the units of one component, after the products. Each gate's units lie side by side; gates lie
/// z_gate and r_gate elements apart. `kept` is null, or what the way back needs, `units` values each: lstm
/// i, f, g, o (activated) and c; gru r, z, n (activated) and y_n; rnn h.
struct CellStep {
  int64_t units;
  const float* z;
  int64_t z_gate;
  const float* r;
  int64_t r_gate;
  float* c;  ///< lstm: the state, in and out
  float* h;  ///< in and out
  float* kept;
};

/// The way back of such a step. dh, dc: the gradients of h and c, which become those of h before it, without
/// what comes through r, and of c before it. dz, dr: those of the gates' parts of z and of r, `units` values
/// a gate. Only a gru's two differ: dr is null elsewhere.
struct CellStepBack {
  int64_t units;
  const float* kept;
  const float* c_before;  ///< lstm
  const float* h_before;  ///< gru
  float* dh;
  float* dc;
  float* dz;
  float* dr;
};

/// A transform of Winograd's F(m x m, 3 x 3), with t = m + 2: of t x t pixels (input), from t x t products to
/// m x m pixels (output), of 3 x 3 weights to t x t; and the transposes of the last two, of gradients.
enum class WinogradStep : int32_t { input, output, output_back, weight, weight_back };

/// The places of a square of it: place (i, j) of a part lies at at[i * line + j] + offset + part * (the
/// part). The next tile's square begins so many pointers, and values, further: one table of pointers serves a
/// whole row of tiles.
template <class T>
struct Square {
  T* const* at;
  int64_t line;
  int64_t offset;
  int64_t part;
  int64_t next_at = 0;
  int64_t next_offset = 0;
};

/// A row's attention over `count` places, by several heads of n components of m values. Keys and values lie
/// anywhere: a place's begin at at[s], its components and heads so many values apart. q holds `maps` (1 or n)
/// rows of n x heads x m values, which lie side by side.
struct Attended {
  struct Places {
    const float* const* at;
    int64_t component, head;
  };
  int32_t maps, n;
  int64_t heads, m, count;
  Places keys, values;
};

/// Columns of a block of exp_sum.
constexpr int64_t kTopBlock = 256;

/// One instruction set's functions.
///
/// combine_I_O: out[o][row][col] = bias[o][col] + sum_e coefficient[e] in[source[e]][row][col] over rows x
/// cols, inputs of type I, outputs of type O (f: float32, b: bfloat16). `in` and `out` hold one pointer each
/// component; rows lie in_row and out_row elements apart. `bias` is null or one pointer each output.
///
/// transpose_I_O: the same without bias, of `inputs` matrices (64 at most), into out[o][col][row]: rows of
/// the output lie out_row elements apart.
///
/// multiply: out[o][row][col] = sum_e coefficient[e] a[left[e]][row][col] b[right[e]][row][col], as combine
/// does with one operand.
///
/// pair: rounds a matrix to bfloat16 and puts each two rows side by side, value by value, as packed products
/// read their right operand: out[row / 2][col][row % 2] = in[row][col], zero where the last pair lacks a row
/// and in columns cols .. out_cols, which is a multiple of 16.
///
/// products: y[i] (rows x cols) = the sum over the links of[i] of x (rows x depth) w (depth x cols), rows
/// x_row, w_row and y_row elements apart; `count` of them. Each link is one chain of sums, and they are added
/// in their order: one chain through all would be less exact. What is needed next is fetched into the second
/// level cache meanwhile, so that it arrives from memory while this is multiplied.
///
/// mixed_product: y[o] (rows x cols) = x_o (sum_e coefficient[e] w[source[e]]) of each output o of a mixture
/// of pairs and copies (groups.h: has_cheap_outputs) with groups, as `products` of what `combine` makes of w,
/// bit for bit for normal numbers, but nothing is made of it in memory. All w, and all y, have rows of the
/// same distance; x_o lie x_output values apart.
///
/// dots_I: sums[i * count_b + r] += sum over rows x cols of a[i][row][col] * b[r][row][col].
///
/// stream_I: y[g * y_vector + row * 1] = sum_c sum_q weights[c][row][q] * z[(g * components + c) * cols + q]
/// for vectors g, rows of the weights, and one component or more: each weight is read once from memory for
/// all vectors. y, which must not overlap the others, may be read on the way. No bit of a value depends on
/// the number of rows or vectors. In the end weights from `next` on, if any, are fetched.
///
/// softmax: each row of x becomes exp(x + bias - max) / sum of these; `bias` is null or one value a column,
/// which may be minus infinity where not all are. Rows of biases lie bias_row elements apart, 0 where all
/// rows share one.
///
/// exp_sum: the sum of exp(x[col] - max) over a row, of any length; tops[b] becomes the highest value of its
/// block b of kTopBlock columns, max is the highest of these. NaN where a value is, or where all are minus
/// infinity.
///
/// softmax_backward: with y = softmax(x) and dy the gradient of y, dy becomes that of x, y (dy - sum y dy).
///
/// In softmax and softmax_backward `cols` is a multiple of 16.
///
/// drop_I: y = x times 0 or drop.scale, value by value; y may be x.
///
/// attend: what Attended says. weights (heads x maps x weights_row, a multiple of 16 and at least count)
/// become softmax_s(sum_jv q[c][j][h][v] keys[s][j][h][v]); then y[c][h][v] = sum_s weights[h][c or 0][s]
/// values[s][c][h][v], y's components being y_component apart.
///
/// finish: y = activation(scale[col] y + bias[col] + residual[row][col]), where scale, bias and residual may
/// be null; tanh and sigmoid are within 4 units of the last place, where they are normal numbers.
///
/// winograd: a transform of F(m x m, 3 x 3), m = 2 or 4, of each of `tiles`, for each of `count` values that
/// lie side by side, of each of `parts`. `bias` is null or has a value that is added for each result, parts
/// out.part apart.
///
/// cell_step, cell_step_back: what Cell says, of any number of units.
///
/// layer_norm: y = weight (x - mean) / sqrt(variance + eps) + bias, each of the row's `parts` of `width`
/// values by a mean and a variance of its own; y may be x.
struct Table {
  const char* name;
  void (*combine_f_f)(const Mix&, const float* const* in, int64_t in_row, float* const* out, int64_t out_row,
                      int64_t rows, int64_t cols, const float* const* bias, Store);
  void (*combine_b_f)(const Mix&, const bf16* const* in, int64_t in_row, float* const* out, int64_t out_row,
                      int64_t rows, int64_t cols, const float* const* bias, Store);
  void (*combine_f_b)(const Mix&, const float* const* in, int64_t in_row, bf16* const* out, int64_t out_row,
                      int64_t rows, int64_t cols, const float* const* bias, Store);
  void (*combine_b_b)(const Mix&, const bf16* const* in, int64_t in_row, bf16* const* out, int64_t out_row,
                      int64_t rows, int64_t cols, const float* const* bias, Store);
  void (*transpose_f_f)(const Mix&, int32_t inputs, const float* const* in, int64_t in_row, float* const* out,
                        int64_t out_row, int64_t rows, int64_t cols);
  void (*transpose_b_f)(const Mix&, int32_t inputs, const bf16* const* in, int64_t in_row, float* const* out,
                        int64_t out_row, int64_t rows, int64_t cols);
  void (*transpose_f_b)(const Mix&, int32_t inputs, const float* const* in, int64_t in_row, bf16* const* out,
                        int64_t out_row, int64_t rows, int64_t cols);
  void (*transpose_b_b)(const Mix&, int32_t inputs, const bf16* const* in, int64_t in_row, bf16* const* out,
                        int64_t out_row, int64_t rows, int64_t cols);
  void (*multiply)(const Bilinear&, const float* const* a, int64_t a_row, const float* const* b,
                   int64_t b_row, float* const* out, int64_t out_row, int64_t rows, int64_t cols, Store);
  void (*pair)(const float* in, int64_t in_row, int64_t rows, int64_t cols, bf16* out, int64_t out_cols);
  void (*products)(const Links* of, int64_t count, int64_t x_row, int64_t rows, int64_t w_row, int64_t depth,
                   int64_t cols, float* const* y, int64_t y_row, const Fetched&);
  void (*mixed_product)(const Mix&, const float* const* w, int64_t w_row, int64_t depth, int64_t cols,
                        const float* x, int64_t x_output, int64_t x_row, int64_t rows, float* const* y,
                        int64_t y_row, const Fetched&);
  void (*dots_f)(const float* const* a, int32_t count_a, int64_t a_row, const float* const* b,
                 int32_t count_b, int64_t b_row, int64_t rows, int64_t cols, float* sums);
  void (*dots_b)(const bf16* const* a, int32_t count_a, int64_t a_row, const float* const* b, int32_t count_b,
                 int64_t b_row, int64_t rows, int64_t cols, float* sums);
  void (*stream_f)(const float* const* weights, int32_t components, int64_t weight_row, int64_t rows,
                   int64_t cols, const float* z, int64_t vectors, float* y, int64_t y_vector,
                   const float* next);
  void (*stream_b)(const bf16* const* weights, int32_t components, int64_t weight_row, int64_t rows,
                   int64_t cols, const float* z, int64_t vectors, float* y, int64_t y_vector,
                   const bf16* next);
  void (*softmax)(float* x, int64_t x_row, int64_t rows, int64_t cols, const float* bias, int64_t bias_row);
  float (*exp_sum)(const float* x, int64_t cols, float* tops);
  void (*softmax_backward)(const float* y, int64_t y_row, float* dy, int64_t dy_row, int64_t rows,
                           int64_t cols);
  void (*drop_f)(const float* x, int64_t x_row, float* y, int64_t y_row, int64_t rows, int64_t cols,
                 const Drop& drop);
  void (*drop_b)(const bf16* x, int64_t x_row, bf16* y, int64_t y_row, int64_t rows, int64_t cols,
                 const Drop& drop);
  void (*attend)(const Attended&, const float* q, float* weights, int64_t weights_row, float* y,
                 int64_t y_component);
  void (*finish)(float* y, int64_t y_row, int64_t rows, int64_t cols, const float* scale, const float* bias,
                 const float* residual, int64_t residual_row, Activation);
  void (*winograd)(int64_t m, WinogradStep, const Square<const float>& in, const Square<float>& out,
                   int64_t tiles, int64_t parts, int64_t count, const float* bias);
  void (*cell_step)(Cell, const CellStep&);
  void (*cell_step_back)(Cell, const CellStepBack&);
  void (*layer_norm)(const float* x, float* y, int64_t parts, int64_t width, const float* weight,
                     const float* bias, float eps);
};

/// The table in use: the best one of this machine, or the one that QUATRAIN_CPU_ISA names.
const Table& active();

/// The tables that are built in and that this machine can run, the best one first. Ends with a null pointer.
const Table* const* available();

/// Forces a table in the whole process, for tests; null: the best one again. False where the name is unknown
/// here.
QUATRAIN_API bool force(const char* name);

}  // namespace quatrain::kernels::cpu
