#pragma once

#include <torch/arg.h>
#include <torch/enum.h>

#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "quatrain/nn/layer.h"
#include "quatrain/nn/options.h"
#include "quatrain/nn/weight.h"
#include "quatrain/recurrent_ops.h"

namespace quatrain::nn {

/// How many maps the gates of a cell have, for its input and for its state each.
///   packed     one map for all, its output split inside every component
///   separate   one map a gate, each with its own A where it is learned (PHM-LSTM, section 4.1)
///   automatic  separate where A is learned, packed elsewhere, where the two are the same function
enum class Gates { automatic, packed, separate };
QUATRAIN_API const char* name(Gates gates);
QUATRAIN_API Gates parse_gates(std::string_view name);

/// What a plain recurrence takes its sum through: torch::kTanh or torch::kReLU, as torch::nn::RNNOptions has
/// it.
using Nonlinearity = std::variant<torch::enumtype::kTanh, torch::enumtype::kReLU>;
QUATRAIN_API ops::Cell cell_of(const Nonlinearity& nonlinearity);

/// Options of recurrent layers and cells.
struct QUATRAIN_API RecurrentSettings {
  Gates gates = Gates::automatic;
  bool single_bias = false;
  double recurrent_dropout = 0;
  int64_t chrono = 0;
};

template <class Self>
struct RecurrentSettingsOptions {
  Self& gates(Gates value) {
    recurrent_settings.gates = value;
    return self();
  }
  Gates gates() const { return recurrent_settings.gates; }

  /// One bias instead of torch's two, of input and state, whose sum is all that an lstm or a plain recurrence
  /// sees of them. A gru then has none inside its reset gate.
  Self& single_bias(bool value) {
    recurrent_settings.single_bias = value;
    return self();
  }
  bool single_bias() const { return recurrent_settings.single_bias; }

  /// Dropout of the state before its map. A layer has one mask for all steps of a sequence; a cell draws a
  /// new one in each call.
  Self& recurrent_dropout(double value) {
    recurrent_settings.recurrent_dropout = value;
    return self();
  }
  double recurrent_dropout() const { return recurrent_settings.recurrent_dropout; }

  /// Of an lstm or a gru, the longest time in steps, T, that the state is to remember something for (Tallec
  /// and Ollivier 2018, chrono initialisation): what keeps the state starts with biases log u, u uniform in
  /// 1 .. T - 1, and an lstm's input gates with -log u. 0 for none; else at least 3.
  Self& chrono(int64_t value) {
    recurrent_settings.chrono = value;
    return self();
  }
  int64_t chrono() const { return recurrent_settings.chrono; }

  RecurrentSettings recurrent_settings;

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// The weights of one recurrent layer in one direction, and what it computes of a sequence.
///
/// Not a module: its parameters are registered in the layer that holds it, under torch's names with S for
/// weight: `S_ih` (n, gates p, d/n) and `S_hh` (n, gates p, q) of packed gates, `S_ii`, `S_if`, ... (n, p,
/// d/n) and `S_hi`, ... `S_ho` (n, p, q) of separate ones; A, w and factors likewise; `bias_ih` and `bias_hh`
/// (n gates p), where the gates of each component lie side by side; `S_hr` (n, q, p) of a projection. p =
/// hidden_size / n; q = proj_size / n, or p without a projection. The state h has n q values, and c n p. All
/// names end with the suffix.
class QUATRAIN_API RecurrentWeights {
 public:
  struct Options {
    ops::Cell cell = ops::Cell::lstm;
    int64_t input = 0, hidden = 0;
    int64_t projection = 0;  ///< size that an lstm's outputs are projected to; 0 for none
    int64_t directions = 1;  ///< of the layer below, which the input has inside each component
    MapSettings map;
    RecurrentSettings recurrent;
    double forget_bias = 0;  ///< of an lstm's bias_ih
    std::string suffix;

    /// Refuses what layers and cells refuse alike, in the name of `layer`.
    void check(const char* layer) const;
  };
  /// For the layer's reset().
  void make(torch::nn::Module& layer, Options options);
  /// Draws the weights again and sets the biases to their start.
  void draw();

  /// x: (N, d) and batch_sizes (T) as ops::recurrence takes them, h (B, n q) and, where the cell has memory,
  /// c (B, hidden). Returns y (N, n q), h and c.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(const at::Tensor& x, const at::Tensor& batch_sizes,
                                                         const at::Tensor& h, const at::Tensor& c,
                                                         bool reverse, bool training) const;

  std::vector<HypercomplexWeight*> weights();
  /// For the layer's place_in_real: torch's names and the order of its rows, one gate after the other.
  /// Nothing for a parameter that is another's.
  std::optional<HypercomplexLayer::Place> place_in_real(const std::string& parameter) const;

  at::Tensor bias_ih, bias_hh;

 private:
  void start_biases() const;

  Options made_;
  std::vector<HypercomplexWeight> of_input_, of_state_;  // one, or one a gate
  std::vector<HypercomplexWeight> projection_;           // one or none
};

}  // namespace quatrain::nn
