#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "quatrain/nn/algebra_spec.h"
#include "quatrain/nn/init.h"
#include "quatrain/ops.h"

namespace quatrain::nn {

struct QUATRAIN_API LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  /// d: size of the input's last axis; n must divide it.
  TORCH_ARG(int64_t, in_features);
  /// k: size of the output's last axis; n must divide it.
  TORCH_ARG(int64_t, out_features);
  /// What the layer multiplies with: "real", "quaternion", "phm(4)", "phm(quaternion)", "wkp(4)", ...
  TORCH_ARG(AlgebraSpec, algebra);
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(Initialiser, initialiser) = Initialiser::glorot;
  /// How the map is evaluated; the planner chooses by default.
  TORCH_ARG(ops::Way, way) = ops::Way::automatic;
};

/// y = H x + b with H = sum_i A_i (x) S_i (PHM (3.2)): the left Hamilton product W * x at the quaternions,
/// PHM's layer where A is learned, WKP's H = sum_i w_i A_i (x) S_i where its summands are weighted, a real
/// layer at n = 1.
///
/// Parameters: `A` (n, n, n) where it is learned and n > 1; in its place `factors` (3, n, R), the U, V, W of
/// A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r], where the algebra says `trained_rank = R`; `w` (n) of WKP; `S`
/// (n, k/n, d/n); `bias` (k), zero at start. Shape: (..., d) -> (..., k), components concatenated.
class QUATRAIN_API LinearImpl : public torch::nn::Cloneable<LinearImpl> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  /// Throws std::invalid_argument where n does not divide a size; the message names the nearest sizes it
  /// divides.
  explicit LinearImpl(LinearOptions options);

  void reset() override;
  /// Draws S and A anew by the options' initialiser; bias zero, w one.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = {}) const override;

  at::Tensor forward(const at::Tensor& x);
  /// H (k, d), differentiable.
  at::Tensor matrix() const;
  /// What the operator gets in this moment: the algebra's name, or A (times w) and its factors where they are
  /// sound.
  ops::Product product() const;

  /// Computes the factors of a learned A numerically, so that eval mode may take the factored way; true where
  /// they are sound. They stay outside the state dict, follow clone() and to(), and are ignored from the
  /// moment that A (or w) differs from what they were computed for. Always true without work where A is not
  /// learned. Not to be called while another thread runs forward().
  bool factorize(const ops::DecomposeOptions& options = {});
  /// What factorize() found, sound or not. An error where A is not learned.
  ops::Decomposition find_factors(const ops::DecomposeOptions& options = {});
  /// True where factors are held and still fit A.
  bool has_factors() const;

  // Everything that changes S without autograd's knowledge forgets what the operator prepared from it.
  void train(bool on = true) override;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;
  void load(torch::serialize::InputArchive& archive) override;

  LinearOptions options;
  at::Tensor A;
  at::Tensor factors;
  at::Tensor w;
  at::Tensor S;
  at::Tensor bias;

 private:
  /// A learned tensor's effective value and its factors {U, V, W}, float64; A is undefined where nothing was
  /// computed.
  struct Factored {
    at::Tensor A;
    std::vector<at::Tensor> factors;
  };

  at::Tensor effective_structure() const;
  bool fits(const at::Tensor& structure) const;

  Factored factored_;
};
TORCH_MODULE(Linear);

}  // namespace quatrain::nn
