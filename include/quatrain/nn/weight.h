#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "quatrain/nn/algebra_spec.h"
#include "quatrain/nn/init.h"
#include "quatrain/ops.h"

namespace quatrain::nn {

/// The shape and the names of a weight.
struct QUATRAIN_API WeightOptions {
  AlgebraSpec algebra;
  int64_t in_features = 0;   ///< d; n must divide it
  int64_t out_features = 0;  ///< k; n must divide it
  /// Further axes of S: a convolution's kernel.
  std::vector<int64_t> kernel;
  /// S is (n, d/n, k/n, kernel...), as torch holds the weights of a transposed convolution.
  bool inputs_first = false;
  /// How many maps lie beside each other in `out_features`, as Q, K and V of a packed projection do or the
  /// gates of a recurrent cell: the weight is drawn with the fans of one.
  int64_t maps = 1;
  /// Whether weight decay applies to S.
  bool decays = true;
  Initialiser initialiser = Initialiser::glorot;
  /// The name of S ("F" of a convolution), and what the names of all parameters end with, where a layer holds
  /// several weights.
  std::string name = "S";
  std::string suffix;
};

/// The weight of one hypercomplex map, H = sum_i w_i A_i (x) S_i: its parameters, how they are drawn, and
/// what an operator gets of them.
///
/// It is not a module: its parameters are registered in the layer that holds it, under their names and the
/// suffix: `A` (n, n, n) where it is learned and n > 1; in its place `factors` (3, n, R), the U, V, W of A[i,
/// a, b] = sum_r U[i, r] W[a, r] V[b, r], where the algebra says `trained_rank = R`; `w` (n) of WKP; `S` (n,
/// k/n, d/n, kernel...). A layer with one weight may derive from it, as Linear does; one with several has
/// them as members. Copies share the parameters, as copies of tensors do.
class QUATRAIN_API HypercomplexWeight {
 public:
  /// Makes the parameters, registers them in the layer and draws them: for the layer's reset().
  void make(torch::nn::Module& layer, WeightOptions options);
  /// Draws A (or the factors) and S again by the initialiser, and sets w to one.
  void draw();

  const AlgebraSpec& spec() const { return made_.algebra; }
  int64_t in_features() const { return made_.in_features; }
  int64_t out_features() const { return made_.out_features; }
  /// The name of S in the layer.
  std::string key() const { return made_.name + made_.suffix; }

  /// One of the parameters.
  struct Part {
    std::string name;  ///< as registered in the layer
    at::Tensor value;
    bool decays = false;  ///< whether weight decay applies: only to S
  };
  /// All parameters, in their order.
  std::vector<Part> parts() const;

  /// What an operator takes: S (for WKP w_i S_i, which in eval mode is kept between calls), what it is
  /// multiplied with, and whether that stays so from call to call, so that prepared forms are worth keeping.
  struct Operands {
    at::Tensor S;
    ops::Product product;
    bool constant = false;
  };
  Operands operands(bool training) const;
  /// What S itself is multiplied with: the algebra's name, or A, for WKP times w; differentiable.
  ops::Product product() const;
  /// H (k, d), or (k, d times the kernel); differentiable.
  at::Tensor matrix() const;

  /// Computes the factors of a learned A numerically, so that eval mode may take the factored way; true where
  /// they are sound. They stay outside the state dict, follow clone() and to(), and are ignored once A
  /// differs from the values they were computed for. Where A is not learned, it does nothing and returns
  /// true. Must not be called while another thread runs forward().
  bool factorize(const ops::DecomposeOptions& options = {});
  /// What factorize() found, sound or not. Throws c10::ValueError where A is not learned.
  ops::Decomposition find_factors(const ops::DecomposeOptions& options = {});
  /// True where factors are held and still fit A.
  bool has_factors() const;

  /// Sets the parameters to the nearest of H (k, d); returns the relative error (ops::nearest).
  double set_nearest(const at::Tensor& H);

  /// Forgets what the operator prepared from S: for everything that changes S without autograd's knowledge.
  void drop_prepared() const;
  /// Takes over the factors that a weight with equal parameters holds.
  void take_state(const HypercomplexWeight& other);
  /// To be called before and after the parameters move to another type or device: held factors that fit
  /// follow them.
  void before_move();
  void after_move();

  at::Tensor A;
  at::Tensor factors;
  at::Tensor w;
  at::Tensor S;

 private:
  /// Factors {U, V, W} in float64, and the A that they were computed for, bit for bit. Immutable.
  struct Held {
    at::Tensor A;
    std::vector<at::Tensor> factors;
    bool rounded = false;  // a move rounded A since they were found
  };

  at::Tensor outputs_first() const;
  bool fits(const at::Tensor& structure) const;

  WeightOptions made_;
  std::shared_ptr<const Held> held_;
};

}  // namespace quatrain::nn
