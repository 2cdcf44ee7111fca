#pragma once

#include <cstdint>

#include "quatrain/ops.h"

/// Chooses the way of evaluation. A pure function of sizes, never of timings, so that a backward pass, a
/// compiled graph and a second run all get the same answer.
namespace quatrain::ops {

enum class Winograd;

struct Problem {
  int64_t rows = 0;  ///< rows of x: the product of its leading sizes
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t n = 1;
  int64_t rank = 0;  ///< of the factors at hand; 0: none, so `factored` cannot be taken
  int64_t element_size = 4;
  bool prepared = false;       ///< combined or materialised weights are kept between calls
  bool engine = false;         ///< the fused engine serves this device and type; else the composed form does
  bool learned = false;        ///< A, or its factors: their mixtures have no zeros
  bool followed = false;       ///< the factors are those of a learned A, followed while it trains
  bool factors_train = false;  ///< the factors themselves are learned
  bool narrow = false;         ///< float16, in which mixtures and their products may overflow
  bool halves = false;         ///< bfloat16, and real products of it are much faster than those of float32
  bool packed = false;         ///< the factors allow products in bfloat16: their mixtures may be rounded
  bool slow_dense = false;     ///< ATen's float32 products have half the speed of the engine's
  bool mixes_cheaply = false;  ///< the weights' mixtures are pairs and copies (kernels/cpu/groups.h)
  bool alone = false;          ///< a row's result may not depend on the others, and the engine's do not
  int64_t traffic = 0;         ///< bytes of weights that are read from one call to the next; 0: these alone
  int threads = 1;
};

/// Estimated microseconds of a way: of a call where weights are prepared, else of a training step's three
/// passes, so that they all go one way.
double cost(const Problem& problem, Way way);

/// The way asked for, or the cheapest. `factored` without factors is an error.
QUATRAIN_API Way plan(const Problem& problem, Way asked);

/// True where the factored way had better read prepared weights as they are, n/R of the bytes, and mix them
/// in each product: for a few rows, which wait for weights from memory, where mixing costs less than these. A
/// result has the same bits. `rows` are those at hand, `traffic` what a TrafficGuard says.
bool keeps_unmixed(const Problem& problem, int64_t rows, Traffic traffic);

/// A convolution on a CPU.
struct ConvolutionProblem {
  int64_t n = 1;
  int64_t units_in = 0, units_out = 0;  ///< of a component, in a group
  int64_t axes = 2;
  int64_t planes = 0;             ///< of b (plane.h), of all images
  int64_t height = 0, width = 0;  ///< pixels of one
  bool fits_winograd = false;     ///< 3 x 3 in a plane, stride 1; of the composed form one group, two axes
  bool engine = false;            ///< the engine makes R products of the type; else the composed form does
  bool plain_products = false;    ///< ATen's real convolutions of the type are plain products: float64
  bool fast_dense = false;        ///< they have twice the speed of the engine's products: bfloat16
  bool gives_A = false;           ///< the pass gives the gradient of a learned A too
  bool less_precision = false;    ///< the user allows real convolutions more error than float32's
};

/// How it is computed.
struct ConvolutionPlan {
  Way way = Way::materialised;  ///< that, or factored
  int64_t tile = 0;             ///< m of Winograd's F(m x m, 3 x 3); 0: without
};

/// What is asked for, or what measured as the fastest. Way::mixed, which a convolution has not, is H, and a
/// kernel that transforms do not fit has none. A real layer (n = 1) is H, unless tiles are asked for that fit
/// and pay. Where there are no factors of a learned A, H replaces them.
QUATRAIN_API ConvolutionPlan plan(const ConvolutionProblem& problem, Way way, Winograd winograd);

/// True where the R products of a forward pass are to be kept for the gradient of A: as a ProductsGuard or
/// QUATRAIN_PRODUCTS says, else where computing them again would take longer than storing them.
bool products_kept(const Problem& problem);

}  // namespace quatrain::ops
