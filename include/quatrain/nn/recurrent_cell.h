#pragma once

#include <torch/arg.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <tuple>

#include "quatrain/nn/layer.h"
#include "quatrain/nn/recurrent_weights.h"

namespace quatrain::nn {

/// What LSTMCell, GRUCell and RNNCell have in common.
template <class Self>
struct RecurrentCellOptions : MapOptions<Self>, RecurrentSettingsOptions<Self> {
  RecurrentCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  /// Sizes of the input's last axis and of the state; n must divide both.
  int64_t input_size() const { return input_size_; }
  int64_t hidden_size() const { return hidden_size_; }

 private:
  int64_t input_size_, hidden_size_;
};

/// What the three cells share.
template <class Derived>
class RecurrentCellModule : public HypercomplexModule<Derived> {
 public:
  void reset_parameters() { weights_.draw(); }
  std::vector<HypercomplexWeight*> weights() override { return weights_.weights(); }
  HypercomplexLayer::Place place_in_real(const std::string& parameter) const override {
    return weights_.place_in_real(parameter).value_or(HypercomplexLayer::Place{parameter, {}, {}});
  }

 protected:
  RecurrentWeights weights_;
};

struct QUATRAIN_API LSTMCellOptions : RecurrentCellOptions<LSTMCellOptions> {
  using RecurrentCellOptions::RecurrentCellOptions;
  /// What bias_ih of the forget gates starts with.
  TORCH_ARG(double, forget_bias) = 0;
  /// h_t = o c_t, as PHM prints it.
  TORCH_ARG(bool, printed) = false;
};

/// One step of an LSTM, by the equations of LSTM, for loops of one's own: x (B, d) or (d), states (B, hidden)
/// or (hidden), zero where they are not given. Its parameters are those of RecurrentWeights without a suffix;
/// at n = 1 it is torch::nn::LSTMCell.
class QUATRAIN_API LSTMCellImpl : public RecurrentCellModule<LSTMCellImpl> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(LSTMCellOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// The next h and c.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x,
                                             std::optional<std::tuple<at::Tensor, at::Tensor>> state = {});

  LSTMCellOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(std::optional<std::tuple<at::Tensor, at::Tensor>>())})
};
TORCH_MODULE(LSTMCell);

struct QUATRAIN_API GRUCellOptions : RecurrentCellOptions<GRUCellOptions> {
  using RecurrentCellOptions::RecurrentCellOptions;
};

/// One step of a GRU, by the equations of GRU; see LSTMCell.
class QUATRAIN_API GRUCellImpl : public RecurrentCellModule<GRUCellImpl> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(GRUCellOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// The next h.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& h = {});

  GRUCellOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(GRUCell);

struct QUATRAIN_API RNNCellOptions : RecurrentCellOptions<RNNCellOptions> {
  using RecurrentCellOptions::RecurrentCellOptions;
  TORCH_ARG(Nonlinearity, nonlinearity) = torch::kTanh;
};

/// One step of an RNN, by the equation of RNN; see LSTMCell.
class QUATRAIN_API RNNCellImpl : public RecurrentCellModule<RNNCellImpl> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(RNNCellOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// The next h.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& h = {});

  RNNCellOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(RNNCell);

}  // namespace quatrain::nn
