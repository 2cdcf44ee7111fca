#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/api.h"

/// The operators, as C++ functions over the registered `torch.ops.quatrain.*`. Layers call only these.
///
/// Every system of the papers is one bilinear map, y = (sum_i A_i (x) S_i) x + b, with A of shape (n, n, n)
/// indexed [i, row, column], S of shape (n, k/n, d/n), and the components of x and y concatenated on the last
/// axis.
///
/// Errors are one sentence with the function, the argument, the rule and the value: std::invalid_argument or
/// c10::ValueError for an unknown name or a number out of range, c10::IndexError for a token out of range,
/// c10::TypeError where `nearest` gets no floating-point matrix, else c10::Error (shapes, types, devices).
namespace quatrain::ops {

/// Sets an option of the operators in this thread for the lifetime of the guard, which then restores the
/// previous value. An explicit argument takes precedence over a guard, and a guard over the environment.
template <class Option>
class QUATRAIN_API Guard {
 public:
  explicit Guard(Option option);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Option before_;
};

/// How the map is evaluated. The results agree up to rounding.
///   factored      R small products between mixed blocks (R: rank of A); R/n^2 of the real layer's arithmetic
///   mixed         [S_1 .. S_n] times mixed inputs: weights are read once, 1/n of the real layer's bytes
///   materialised  H = sum_i A_i (x) S_i, then one real product
enum class Way { automatic, factored, mixed, materialised };

/// "auto", "factored", "mixed", "materialised".
QUATRAIN_API const char* name(Way way);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Way parse_way(std::string_view name);

/// Forces a way in this thread for the lifetime of the guard, for tests and benchmarks. The environment
/// variable QUATRAIN_WAY does so for a whole process. An explicit argument takes precedence over both.
using WayGuard = Guard<Way>;

/// For how many rows and threads a way is chosen: those of each call, or always for one thread and so many
/// rows. Then a layer takes one way, and on a CPU what `linear` computes for a row in one thread does not
/// hang on the others: where a few rows would be added in another order, they are filled up to so many (32 or
/// more).
enum class PlannedRows : int64_t { automatic = 0 };

/// Sets this in this thread for the lifetime of the guard.
using PlannedRowsGuard = Guard<PlannedRows>;

/// Bytes of the weights that are read from one call of a layer to its next: where a step of a decoder goes
/// through all its layers, theirs together. Weights that do not stay in a cache are read as fast as memory
/// is, and the way that reads least is taken sooner. By default those of the layer alone.
enum class Traffic : int64_t { automatic = 0 };

/// Sets this in this thread for the lifetime of the guard.
using TrafficGuard = Guard<Traffic>;

/// What happens to the R products of a forward pass, which the gradients of a learned structure tensor or of
/// trained factors need: kept until the backward pass (R / n times the output's memory, in float32), or
/// computed again. By default the planner keeps them where that saves time.
enum class Products { automatic, kept, recomputed };

/// "auto", "kept", "recomputed".
QUATRAIN_API const char* name(Products products);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Products parse_products(std::string_view name);

/// Sets this for forward passes in this thread for the lifetime of the guard. The environment variable
/// QUATRAIN_PRODUCTS does so for a whole process.
using ProductsGuard = Guard<Products>;

/// How the factored way multiplies bfloat16:
///   widened  its mixtures in float32
///   packed   its mixtures rounded to bfloat16, where that costs an algebra at most twice the real layer's
///            error; as on a machine that has fast products of this type (AMX), also where this one has none
/// By default packed where ATen packs bfloat16 itself.
enum class Bfloat16 { automatic, widened, packed };

/// "auto", "widened", "packed".
QUATRAIN_API const char* name(Bfloat16 products);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Bfloat16 parse_bfloat16(std::string_view name);

/// Sets this in this thread for the lifetime of the guard, for tests and benchmarks. The environment variable
/// QUATRAIN_BFLOAT16 does so for a whole process.
using Bfloat16Guard = Guard<Bfloat16>;

/// What a layer multiplies with, as an operator takes it.
struct QUATRAIN_API Product {
  /// A fixed algebra's name, "learned", or "factored" where the factors themselves are what is learned.
  std::string algebra = "real";
  /// learned: the structure tensor (n, n, n); factored: its factors U, V, W as one tensor (3, n, R), for
  /// A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r] of any R; undefined for a fixed algebra.
  at::Tensor A;
  /// Factors {U, V, W} of A in float64, each (n, R), or empty. Never differentiated.
  std::vector<at::Tensor> factors;
};

/// y = x H^T + bias with H = sum_i A_i (x) S_i (PHM (3.2); the left Hamilton product for quaternions).
///
/// x: (..., d), any strides, any leading sizes, zero included. S: (n, k/n, d/n). bias: (k) or undefined.
/// Returns (..., k). float64, float32, bfloat16, half. `dtype` is the type to compute in (default: x's);
/// `constant` says that S will not change until it is trained again, so that its prepared form may be kept
/// (see drop_prepared). Differentiable any number of times in x, S, A and bias.
QUATRAIN_API at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const at::Tensor& bias,
                               const Product& product, Way way = Way::automatic,
                               std::optional<at::ScalarType> dtype = std::nullopt, bool constant = false);

/// Gradients of `linear` for (x, S, A), each of its argument's sizes and only where the mask asks, else
/// undefined: dx = grad H, dS_i = sum_ab A[i, a, b] grad_a^T x_b, dA[i, a, b] = <S_i, grad_a^T x_b>.
///
/// grad: (..., k). `products` are those that the forward pass kept, if it did (linear_with_products). Throws
/// c10::Error where sizes, types or devices do not fit. Differentiable any number of times.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_backward(
    const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Product& product, Way way,
    std::optional<at::ScalarType> dtype, std::array<bool, 3> mask, const at::Tensor& products = {});

/// `linear` for a structure tensor that trains, and the R products of its factored way, (R, rows, k/n) in
/// float32, or an empty tensor where another way is taken. The derivative of `linear` calls it; its own
/// results have none.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor> linear_with_products(
    const at::Tensor& x, const at::Tensor& S, const at::Tensor& bias, const Product& product,
    Way way = Way::automatic, std::optional<at::ScalarType> dtype = std::nullopt);

/// The way that `linear` would take, and its backward passes after it: that of a WayGuard or QUATRAIN_WAY,
/// else the planner's choice. It depends on sizes, type, device and threads, and for a learned A on whether
/// its factors are known, which they are not in the first call. `constant` as in linear.
QUATRAIN_API Way planned_way(const at::Tensor& x, const at::Tensor& S, const Product& product,
                             bool constant = false);

/// Rank R of the factors at hand: of a fixed algebra's, or of those given; 0 without factors.
QUATRAIN_API int64_t rank(const Product& product);

/// H = sum_i A_i (x) S_i of shape (k, d): the real matrix of a layer. Differentiable in S and A.
QUATRAIN_API at::Tensor materialise(const at::Tensor& S, const Product& product);

/// The rows of H = sum_i A_i (x) S_i that tokens name: tokens (...) int64 or int32 in [0, k), S (n, k/n, d/n)
/// -> (..., d). H is never written out: each row is mixed of n rows of S. Differentiable in S and A. Throws
/// c10::IndexError for a token outside [0, k).
QUATRAIN_API at::Tensor embedding(const at::Tensor& tokens, const at::Tensor& S, const Product& product);

/// Forgets what was prepared from S. Layers call it in train(), eval() and after loading. Needed by hand only
/// after S.data was written in eval mode.
QUATRAIN_API void drop_prepared(const at::Tensor& S);

/// Number of bytes and of weights for which prepared forms are kept.
struct QUATRAIN_API PreparedSize {
  int64_t weights = 0;
  int64_t bytes = 0;
};
QUATRAIN_API PreparedSize prepared_size();

/// The instruction sets of this machine for which there are kernels: the one in use, then the others, the
/// best first. QUATRAIN_CPU_ISA chooses another; a name that is not here is an error of the first call.
QUATRAIN_API std::vector<std::string> instruction_sets();

/// Product a * b of two tensors of m hypercomplex numbers, number by number (QNLP (1)): (a * b)_c = sum_{i,j}
/// A[i, c, j] a_i b_j. (..., n m) and (..., n m) broadcast on the leading axes, components concatenated on
/// the last axis.
QUATRAIN_API at::Tensor hamilton_product(const at::Tensor& a, const at::Tensor& b, std::string_view algebra);
/// The conjugate, component by component: (..., n m) -> (..., n m).
QUATRAIN_API at::Tensor hypercomplex_conjugate(const at::Tensor& a, std::string_view algebra);
/// The Euclidean norm over the components: (..., n m) -> (..., m).
QUATRAIN_API at::Tensor hypercomplex_norm(const at::Tensor& a, std::string_view algebra);

/// What is stored for a learned structure tensor (n, n, n) that trains: its factors, updated from step to
/// step, so that the passes cost R / n^2 of the real layer's arithmetic. Kept by A's storage: layers that
/// share A share it.
struct QUATRAIN_API StructureReport {
  int64_t rank = 0;    ///< of the factors stored now; 0: none
  int64_t steps = 0;   ///< values of A for which factors were needed
  int64_t solved = 0;  ///< of these, found by a new search
  int64_t on_H = 0;    ///< of these, without sound factors: these steps ran on H
};
QUATRAIN_API StructureReport structure_report(const at::Tensor& A);

/// The same as one float64 tensor, for checkpoints: a run that is resumed with it continues bit for bit.
/// Undefined where nothing is stored.
QUATRAIN_API at::Tensor structure_state(const at::Tensor& A);
/// Restores such a state for A or for a copy of A; an undefined state deletes what is stored.
QUATRAIN_API void set_structure_state(const at::Tensor& A, const at::Tensor& state);

/// Numerical factors of a structure tensor.
struct QUATRAIN_API Decomposition {
  std::vector<at::Tensor> factors;  ///< {U, V, W}, float64, (n, R); empty where none were found
  int64_t rank = 0;                 ///< of the best try, sound or not; 0: nothing was tried
  double residual = 0;              ///< relative error of the best try; infinite where nothing was tried
  /// Condition of dA/d(U, V, W); infinite where its rank is below n^3 (above 1e7), or no try was sound.
  double condition = 0;
  bool sound = false;  ///< residual below the tolerance
};

/// Options of decompose.
struct QUATRAIN_API DecomposeOptions {
  /// 0: the generic rank of n (1, 3, 5, 8, 11, 15, 20, 26, 32, 39 at n = 1 .. 10), then up to 2 more. For a
  /// larger n none are found without a rank. At most 4,096.
  int64_t rank = 0;
  double tolerance = 1e-6;  ///< largest relative error
  int64_t starts = 6;       ///< random starts a rank
  uint64_t seed = 0;
};

/// Finds factors A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r] of a structure tensor (n, n, n) by
/// Levenberg-Marquardt with a decaying penalty, from seeded starts, on A scaled to norm 1. `sound` is false
/// where no start reached the tolerance: then another way must be taken. It is false too, without an
/// exception, for A = 0 and for tensors that are not finite.
QUATRAIN_API Decomposition decompose(const at::Tensor& A, const DecomposeOptions& options = {});

/// The nearest hypercomplex weights of a real matrix.
struct QUATRAIN_API Nearest {
  at::Tensor S;      ///< (n, out/n, in/n), in the matrix's type
  at::Tensor A;      ///< (n, n, n): the table of a fixed algebra, or the structure that was found
  double error = 0;  ///< |H - sum_i A_i (x) S_i| / |H|, Frobenius norms, with A and S as they are returned
};

/// Finds the A and S whose sum_i A_i (x) S_i is nearest to H (out, in) in the Frobenius norm.
///
/// With a fixed algebra that is a least-squares projection; among equally near weights the smallest are
/// taken. With a learned one (`phm(n)`, `wkp(n)` with w = 1; where its training would start does not matter)
/// it is the best sum of n Kronecker products, by Van Loan and Pitsianis; |A_i| = |S_i|, except where fewer
/// than n terms give all of H: then S_i is zero for the others and A_i is not. H = 0 has the error 0.
/// Computed in float64. Not differentiable.
///
/// Throws c10::ValueError where the algebra is unknown or has trained factors, n does not divide a size, or H
/// is not a matrix of finite values, and c10::TypeError where it is not floating point.
QUATRAIN_API Nearest nearest(const at::Tensor& H, std::string_view algebra);

}  // namespace quatrain::ops
