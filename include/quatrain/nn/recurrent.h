#pragma once

#include <torch/arg.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>
#include <torch/nn/utils/rnn.h>

#include <optional>
#include <tuple>
#include <vector>

#include "quatrain/nn/layer.h"
#include "quatrain/nn/recurrent_weights.h"

namespace quatrain::nn {

struct QUATRAIN_API RecurrentSizes {
  int64_t input = 0, hidden = 0, layers = 1;
  bool batch_first = false, bidirectional = false, direction_first = false, share_directions = false;
};

/// What LSTM, GRU and RNN have in common. Every setter returns the layer's own options.
template <class Self>
struct RecurrentLayerOptions : MapOptions<Self>, DropOptions<Self>, RecurrentSettingsOptions<Self> {
  RecurrentLayerOptions(int64_t input_size, int64_t hidden_size)
      : sizes{.input = input_size, .hidden = hidden_size} {}

  /// d: size of the input's last axis, and hidden_size that of the state; n must divide both.
  int64_t input_size() const { return sizes.input; }
  int64_t hidden_size() const { return sizes.hidden; }

  /// Layers, one on top of the other; `dropout` acts between them.
  Self& num_layers(int64_t value) {
    sizes.layers = value;
    return self();
  }
  int64_t num_layers() const { return sizes.layers; }

  /// Input and output (batch, steps, ...) instead of (steps, batch, ...).
  Self& batch_first(bool value) {
    sizes.batch_first = value;
    return self();
  }
  bool batch_first() const { return sizes.batch_first; }

  /// A second direction, from the last step to the first. The outputs of the two are joined inside each
  /// component, which at n = 1 is torch's order.
  Self& bidirectional(bool value) {
    sizes.bidirectional = value;
    return self();
  }
  bool bidirectional() const { return sizes.bidirectional; }

  /// The layer's output has one direction after the other, each with its components, as torch's layers have
  /// it: for what goes on with the columns of a real layer. Between the layers of a stack they stay joined.
  Self& direction_first(bool value) {
    sizes.direction_first = value;
    return self();
  }
  bool direction_first() const { return sizes.direction_first; }

  /// Both directions have the weights of the first (the printed sizes of QRNN's LSTMs).
  Self& share_directions(bool value) {
    sizes.share_directions = value;
    return self();
  }
  bool share_directions() const { return sizes.share_directions; }

  RecurrentSizes sizes;

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// A stack of recurrent layers: what LSTM, GRU and RNN do with sequences.
///
/// Of B sequences in T steps: x (T, B, d) (or (B, T, d) with batch_first, or (T, d) for one sequence) gives y
/// (T, B, D hidden) likewise, with D = 2 directions or 1. States: (layers D, B, hidden), a layer's directions
/// one after the other; undefined ones are zero. With a projection y and h have proj_size in the place of
/// hidden.
class QUATRAIN_API RecurrentStack {
 public:
  struct States {
    at::Tensor h, c;
  };

  template <class Options>
  void make(torch::nn::Module& layer, const char* name, ops::Cell cell, const Options& options,
            double forget_bias = 0, int64_t projection = 0) {
    make(layer, name,
         {.cell = cell,
          .input = options.input_size(),
          .hidden = options.hidden_size(),
          .projection = projection,
          .map = options.map_settings,
          .recurrent = options.recurrent_settings,
          .forget_bias = forget_bias,
          .suffix = {}},
         options.sizes, options.dropout());
  }
  void draw();
  std::vector<HypercomplexWeight*> weights();
  HypercomplexLayer::Place place_in_real(const std::string& parameter) const;

  std::pair<at::Tensor, States> forward(const at::Tensor& x, const States& states, bool training) const;
  std::pair<torch::nn::utils::rnn::PackedSequence, States> forward(
      const torch::nn::utils::rnn::PackedSequence& x, const States& states, bool training) const;

 private:
  void make(torch::nn::Module& layer, const char* name, RecurrentWeights::Options first,
            const RecurrentSizes& sizes, double dropout);
  std::pair<at::Tensor, States> rows_forward(const at::Tensor& rows, const at::Tensor& batch_sizes,
                                             const States& states, bool training) const;
  States start(const States& given, int64_t batch, const at::Tensor& x) const;

  const char* name_ = "";
  ops::Cell cell_ = ops::Cell::lstm;
  int64_t n_ = 1, input_ = 0, hidden_ = 0, state_ = 0, directions_ = 1;  // state_: size of h
  bool batch_first_ = false, direction_first_ = false;
  double dropout_ = 0;
  std::vector<RecurrentWeights> layers_;  // of each layer one, or one a direction
  size_t weights_of_layer_ = 1;
};

/// Base class of LSTM, GRU and RNN: all but the states that they take.
template <class Derived>
class RecurrentModule : public HypercomplexModule<Derived> {
 public:
  void reset_parameters() { stack_.draw(); }
  std::vector<HypercomplexWeight*> weights() override { return stack_.weights(); }
  HypercomplexLayer::Place place_in_real(const std::string& parameter) const override {
    return stack_.place_in_real(parameter);
  }
  /// The outputs keep the order of a real layer's, since what reads them does not change with this layer.
  std::shared_ptr<torch::nn::Module> with_algebra(const AlgebraSpec& algebra) const override {
    auto options = static_cast<const Derived&>(*this).options;
    if (options.bidirectional() && options.algebra().n == 1) options.direction_first(true);
    options.algebra(algebra);
    return std::make_shared<Derived>(std::move(options));
  }

 protected:
  RecurrentStack stack_;
};

struct QUATRAIN_API LSTMOptions : RecurrentLayerOptions<LSTMOptions> {
  using RecurrentLayerOptions::RecurrentLayerOptions;
  /// What bias_ih of the forget gates starts with (0 in the papers).
  TORCH_ARG(double, forget_bias) = 0;
  /// h_t = o c_t, without sigmoid and tanh, as PHM prints it.
  TORCH_ARG(bool, printed) = false;
  /// Size that h is projected to by a map of its own without bias, as torch does; n must divide it, and it
  /// must be smaller than hidden_size, which c keeps. 0 for none.
  TORCH_ARG(int64_t, proj_size) = 0;
};

/// A long short-term memory over any algebra (QRNN (20)-(24), PHM 4.1); at n = 1 torch::nn::LSTM.
///     i, f, g, o = W * x_t + R * h_{t-1} + b
///     c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),    h_t = sigmoid(o) tanh(c_t)
///
/// Its parameters are those of RecurrentWeights, of layer l with the suffix `_l0`, `_l1` ..., of the second
/// direction `_l0_reverse`.
class QUATRAIN_API LSTMImpl : public RecurrentModule<LSTMImpl> {
 public:
  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  /// Throws std::invalid_argument where n does not divide a size, and for counts and probabilities out of
  /// range.
  explicit LSTMImpl(LSTMOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  using State = std::tuple<at::Tensor, at::Tensor>;  ///< h and c
  /// y and the last states. Sizes: see RecurrentStack.
  std::tuple<at::Tensor, State> forward(const at::Tensor& x, std::optional<State> state = {});
  std::tuple<torch::nn::utils::rnn::PackedSequence, State> forward_with_packed_input(
      const torch::nn::utils::rnn::PackedSequence& x, std::optional<State> state = {});

  LSTMOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(std::optional<State>())})
};
TORCH_MODULE(LSTM);

struct QUATRAIN_API GRUOptions : RecurrentLayerOptions<GRUOptions> {
  using RecurrentLayerOptions::RecurrentLayerOptions;
};

/// A gated recurrent unit over any algebra; at n = 1 torch::nn::GRU. Parameters as LSTM's.
///     x = W * x_t + b,    y = R * h_{t-1} + b', for the gates r, z, n;    r = x_r + y_r,    z = x_z + y_z
///     n = tanh(x_n + sigmoid(r) y_n),    h_t = (1 - sigmoid(z)) n + sigmoid(z) h_{t-1}
class QUATRAIN_API GRUImpl : public RecurrentModule<GRUImpl> {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(GRUOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// y and the last states h. Sizes: see RecurrentStack.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, const at::Tensor& h = {});
  std::tuple<torch::nn::utils::rnn::PackedSequence, at::Tensor> forward_with_packed_input(
      const torch::nn::utils::rnn::PackedSequence& x, const at::Tensor& h = {});

  GRUOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(GRU);

struct QUATRAIN_API RNNOptions : RecurrentLayerOptions<RNNOptions> {
  using RecurrentLayerOptions::RecurrentLayerOptions;
  TORCH_ARG(Nonlinearity, nonlinearity) = torch::kTanh;
};

/// A plain recurrence over any algebra, h_t = tanh(W * x_t + R * h_{t-1} + b) (QRNN (6)); at n = 1
/// torch::nn::RNN. Parameters as LSTM's.
class QUATRAIN_API RNNImpl : public RecurrentModule<RNNImpl> {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(RNNOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// y and the last states h. Sizes: see RecurrentStack.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, const at::Tensor& h = {});
  std::tuple<torch::nn::utils::rnn::PackedSequence, at::Tensor> forward_with_packed_input(
      const torch::nn::utils::rnn::PackedSequence& x, const at::Tensor& h = {});

  RNNOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(RNN);

}  // namespace quatrain::nn
