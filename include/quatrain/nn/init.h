#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "quatrain/algebra.h"
#include "quatrain/api.h"
#include "quatrain/recurrent_ops.h"

/// Initialisers of weights S (n, k/n, d/n, kernel...) and structure tensors A (n, n, n). All fill in place,
/// take an optional generator (default: the global one, which torch::manual_seed seeds), and record no
/// gradient. They throw std::invalid_argument for an unknown name and for a tensor of another shape.
///
/// The rule: the entries of H = sum_i A_i (x) S_i have, on average over its n x n blocks, the variance that
/// Glorot (or He) gives the **real** layer of the same size k x d: 2/(k + d), or 2/d (times the receptive
/// field).
namespace quatrain::nn {

/// How a layer's S is drawn.
///   glorot          uniform, fans of the real layer (QNLP's component-wise Glorot); the default everywhere
///   he              the same with He's variance
///   lecun           normal, variance 1/d: each output has the variance of the inputs; for embeddings, whose
///                   rows then have the mean square norm 1
///   polar           isotropic: n independent normal components a number, what QRNN (29) means; Var(H) is
///                   Glorot's
///   polar_he        the same with He's variance
///   polar_paper     QRNN Algorithm 1 as printed: 12 times below that variance, its axes correlated
///   polar_paper_he  the same with sigma = 1/sqrt(2 n_in)
enum class Initialiser { glorot, he, lecun, polar, polar_he, polar_paper, polar_paper_he };

/// "glorot", "he", "lecun", "polar", "polar_he", "polar_paper", "polar_paper_he".
QUATRAIN_API const char* name(Initialiser initialiser);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Initialiser parse_initialiser(std::string_view name);

/// Real fans of a weight: (d, k) times the receptive field; of one map where `maps` lie beside each other in
/// k (Q, K and V of a packed projection, the gates of a cell).
struct QUATRAIN_API Fans {
  double in = 0;
  double out = 0;
};
QUATRAIN_API Fans real_fans(const at::Tensor& S, int64_t maps = 1);

/// S ~ U(-a, a), a^2 = 6/(fan_in + fan_out) / power with real fans: Var(H) is Glorot's. `power`: see
/// structure_power.
QUATRAIN_API void glorot_(const at::Tensor& S, double power = 1, std::optional<at::Generator> generator = {},
                          int64_t maps = 1);
/// S ~ U(-a, a), a^2 = 6/fan_in / power: Var(H) is He's.
QUATRAIN_API void he_(const at::Tensor& S, double power = 1, std::optional<at::Generator> generator = {},
                      int64_t maps = 1);
/// S ~ N(0, 1/fan_in / power): Var(H) is LeCun's.
QUATRAIN_API void lecun_(const at::Tensor& S, double power = 1, std::optional<at::Generator> generator = {});
/// Isotropic polar: S ~ N(0, sigma^2), sigma^2 = 2/(fan_in + fan_out) / power; QRNN's sigma at the
/// quaternions, E|w|^2 = 4 sigma^2. With `he`: sigma^2 = 2/fan_in / power.
QUATRAIN_API void polar_(const at::Tensor& S, bool he = false, double power = 1,
                         std::optional<at::Generator> generator = {}, int64_t maps = 1);
/// QRNN Algorithm 1 as printed: w = phi (cos t + u sin t), phi ~ U(-sigma, sigma), t ~ U(-pi, pi), u with
/// coordinates U(0, 1) normalised; sigma = 1/sqrt(2 (n_in + n_out)), counted in hypercomplex units. E|w|^2 =
/// sigma^2/3. At n = 1: w = phi.
QUATRAIN_API void polar_paper_(const at::Tensor& S, bool he = false,
                               std::optional<at::Generator> generator = {}, int64_t maps = 1);

/// Fills S by the initialiser of that name; `maps`: see real_fans.
QUATRAIN_API void initialise_weight_(const at::Tensor& S, Initialiser initialiser, double power = 1,
                                     std::optional<at::Generator> generator = {}, int64_t maps = 1);

/// PHM's start: A ~ N(0, 1), then each fibre A[:, a, b] scaled to norm 1, so that Var(H) = Var(S) for every
/// draw.
QUATRAIN_API void random_structure_(const at::Tensor& A, std::optional<at::Generator> generator = {});
/// A_0 = I, the others zero: a degenerate start (H is block-diagonal in S_0; the other S_i get no gradient
/// until A moves).
QUATRAIN_API void identity_structure_(const at::Tensor& A);
/// A = the table of a named algebra.
QUATRAIN_API void table_structure_(const at::Tensor& A, std::string_view algebra);
/// Fills A as its spec says: random, from a table, from the identity.
QUATRAIN_API void initialise_structure_(const at::Tensor& A, const algebra::Spec& spec,
                                        std::optional<at::Generator> generator = {});

/// Factors (3, n, R) that are trained in A's place. From a table or the identity: its own factors, and beyond
/// their rank products that add nothing yet (U and V of N(0, 1), W = 0). At random: U, V, W ~ N(0, 1), scaled
/// so that Var(H) = Var(S).
QUATRAIN_API void initialise_factors_(const at::Tensor& factors, const algebra::Spec& spec,
                                      std::optional<at::Generator> generator = {});

/// The bias of a cell's input maps, (n * gates * p): zero, but the forget gates of an lstm, which start with
/// `forget_bias`. With `chrono` steps (Tallec and Ollivier 2018) an lstm's forget gates start with log U(1,
/// chrono - 1) and its input gates with their opposite, a gru's update gates with the former. `forget_bias`
/// is of lstm and lstm_printed without chrono; `chrono` is 0, or at least 3 for cells with gates; else it
/// throws std::invalid_argument.
QUATRAIN_API void initialise_gate_biases_(const at::Tensor& bias, int64_t n, ops::Cell cell,
                                          double forget_bias = 0, int64_t chrono = 0,
                                          std::optional<at::Generator> generator = {});

/// Var(H) / Var(S) of a structure tensor, averaged over the n x n blocks: |A|^2 / n^2. 1 for the quaternions
/// and for PHM's start, 3/4 for the dual numbers, 1/n for the identity. A is (n, n, n).
QUATRAIN_API double structure_power(const at::Tensor& A);
/// The same of a fixed algebra's table.
QUATRAIN_API double structure_power(std::string_view algebra);
/// The same of the tensor that factors (3, n, R) make.
QUATRAIN_API double factors_power(const at::Tensor& factors);

}  // namespace quatrain::nn
