#pragma once

#include <torch/arg.h>
#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <utility>

#include "quatrain/nn/algebra_spec.h"
#include "quatrain/nn/conversion_report.h"
#include "quatrain/nn/safetensors.h"

/// Real layers into hypercomplex ones. See docs/convert.md.
namespace quatrain::nn {

struct QUATRAIN_API ConvertOptions {
  using Where = std::function<bool(const std::string& name, const torch::nn::Module& layer)>;

  ConvertOptions(AlgebraSpec algebra) : algebra_(std::move(algebra)) {}
  ConvertOptions(const char* algebra) : algebra_(algebra) {}
  /// The algebra to convert the layers to.
  TORCH_ARG(AlgebraSpec, algebra);
  /// Which layers to convert, by dotted name and module; all by default.
  TORCH_ARG(Where, where);
  /// New weights by the layers' initialiser, for a model yet to be trained; else the nearest weights.
  TORCH_ARG(bool, fresh) = false;
};

/// Converts the layers of a module, in place: real quatrain::nn::Linear, Embedding, convolutions, LSTM, GRU,
/// RNN and cells wherever they are held, and torch::nn::Linear and torch's six convolutions in a
/// torch::nn::Sequential. The weights become the nearest hypercomplex ones (ops::nearest).
///
/// If all layers of a real MultiheadAttention are converted, the module itself becomes one over the algebra,
/// with attention = real and its channels in the new order of heads. Its weights can then be loaded into a
/// model that was built over the algebra. Types, devices, training mode and requires_grad stay. Skipped, with
/// the reason in the report: sizes that n does not divide, weights that another layer shares, what `where`
/// excludes, layers of torch::nn that other modules hold by type, convolutions with groups. Parameters are
/// new tensors: make the optimizer afterwards.
///
/// Without `fresh` it throws c10::ValueError for weights that are not finite and for an algebra with trained
/// factors, and then nothing is changed.
QUATRAIN_API ConversionReport convert(torch::nn::Module& module, const ConvertOptions& options);

/// Sets the weights of `twin` to those of `real`, the nearest ones where algebras differ: for a model built
/// twice, with options that differ in the algebra alone. Children, parameters and buffers must have the same
/// names, else std::invalid_argument says what differs, and the weights that were set before it stay set.
/// `real` may have layers of torch::nn where the twin has a Linear, a convolution, an LSTM, GRU, RNN or a
/// cell. Recurrent layers must have the same cell and order of directions (direction_first), convolutions the
/// same kernel, stride, padding, dilation and groups. Each head of a
/// MultiheadAttention keeps its channels. Where n does not divide a layer's outputs and the twin has the next
/// multiple, as models of sequences fill up their vocabularies, the rows beyond become zero. A twin with
/// component-wise attention is filled too, but computes something else than the real one's attention.
QUATRAIN_API ConversionReport fill_nearest(const torch::nn::Module& real, torch::nn::Module& twin);

struct QUATRAIN_API ConvertStateOptions {
  using Where = std::function<bool(const std::string& name)>;

  ConvertStateOptions(AlgebraSpec algebra) : algebra_(std::move(algebra)) {}
  ConvertStateOptions(const char* algebra) : algebra_(algebra) {}
  TORCH_ARG(AlgebraSpec, algebra);
  /// Which layers to convert, by dotted name. If given, it replaces the rule that layers whose names look
  /// like embeddings are not converted.
  TORCH_ARG(Where, where);
  /// Layers that are not converted, whatever `where` says.
  TORCH_ARG(Where, except);
  /// Heads of the MultiheadAttention modules whose weights are there (in our own files); 0: not known, which
  /// is an error where there are such modules.
  TORCH_ARG(int64_t, heads) = 0;
};

/// Converts a state: the named tensors of a real model become those of the hypercomplex one. `NAME.weight`
/// (out, in) of a foreign file and `NAME.S` (1, out, in) of ours become `NAME.S` and, where learned, `NAME.A`
/// and `NAME.w`; all else stays. The metadata name each layer's algebra, as load_weights wants it.
///
/// What is a linear layer: in our own files every `NAME.S`; in others every floating matrix `NAME.weight`
/// whose name has no part with `emb` in it and none that is `wte` or `wpe`.
QUATRAIN_API ConversionReport convert_state(Safetensors& state, const ConvertStateOptions& options);

}  // namespace quatrain::nn
