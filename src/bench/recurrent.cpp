#include "quatrain/nn/recurrent.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "bench/pass.h"
#include "bench/recurrent.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"

namespace quatrain::bench {
namespace {

namespace rnn = torch::nn::utils::rnn;

int64_t output_width(const RecurrentCase& asked) {
  return asked.projection > 0 ? asked.projection : asked.width;
}

rnn::PackedSequence random_sequences(const RecurrentCase& asked) {
  std::vector<int64_t> lengths;
  for (int64_t b = asked.batch; b > 0; --b)
    lengths.push_back(std::max<int64_t>(1, asked.steps * b / asked.batch));
  return rnn::pack_padded_sequence(torch::randn({asked.steps, asked.batch, asked.width}),
                                   torch::tensor(lengths));
}

// A pass of a layer over random sequences of the case.
template <class Layer>
Call pass_of_layer(const RecurrentCase& asked, Layer layer) {
  const auto parameters = layer->parameters();
  if (!asked.packed) {
    const at::Tensor x = torch::randn({asked.steps, asked.batch, asked.width}),
                     grad = torch::randn({asked.steps, asked.batch, output_width(asked)});
    return pass_of(
        asked.training, [layer](const at::Tensor& v) mutable { return std::get<0>(layer->forward(v)); },
        parameters, x, grad);
  }
  const rnn::PackedSequence sequences = random_sequences(asked);
  const auto forward = [layer, sequences](const at::Tensor& v) mutable {
    return std::get<0>(layer->forward_with_packed_input(rnn::PackedSequence(v, sequences.batch_sizes())))
        .data();
  };
  return pass_of(asked.training, forward, parameters, sequences.data(),
                 torch::randn({sequences.data().size(0), output_width(asked)}));
}

template <class Layer>
Candidate candidate(const char* name, const RecurrentCase& asked, Layer layer) {
  layer->train(asked.training);
  int64_t parameters = 0;
  for (const at::Tensor& parameter : layer->parameters()) parameters += parameter.numel();
  return {name, pass_of_layer(asked, layer), parameters};
}

template <class Layer, class Options>
Candidate our_candidate(const RecurrentCase& asked, Options options) {
  Layer layer(options.algebra(asked.algebra).gates(nn::parse_gates(asked.gates)));
  layer->eval();
  if (!asked.training) nn::factorize(*layer);
  return candidate("ours", asked, layer);
}

Candidate ours(const RecurrentCase& asked) {
  torch::manual_seed(0);
  if (asked.cell == "lstm")
    return our_candidate<nn::LSTM>(asked,
                                   nn::LSTMOptions(asked.width, asked.width).proj_size(asked.projection));
  if (asked.cell == "gru") return our_candidate<nn::GRU>(asked, nn::GRUOptions(asked.width, asked.width));
  return our_candidate<nn::RNN>(asked, nn::RNNOptions(asked.width, asked.width));
}

Candidate torchs(const RecurrentCase& asked) {
  torch::manual_seed(0);
  if (asked.cell == "lstm")
    return candidate(
        "real", asked,
        torch::nn::LSTM(torch::nn::LSTMOptions(asked.width, asked.width).proj_size(asked.projection)));
  if (asked.cell == "gru") return candidate("real", asked, torch::nn::GRU(asked.width, asked.width));
  return candidate("real", asked, torch::nn::RNN(asked.width, asked.width));
}

// What else a user could take for an LSTM in inference: oneDNN's with weights that were reordered once, and
// for one step torch's cell.
std::vector<Candidate> rivals(const RecurrentCase& asked) {
  if (asked.cell != "lstm" || asked.training || asked.packed || asked.projection > 0) return {};
  torch::nn::LSTM layer(asked.width, asked.width);
  const auto weights = layer->named_parameters();
  const auto reorder =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_reorder_mkldnn_rnn_layer_weight", ""});
  std::vector<Candidate> all;
  const at::Tensor x = torch::randn({asked.steps, asked.batch, asked.width}),
                   h = torch::zeros({1, asked.batch, asked.width});
  if (reorder) {
    std::vector<c10::IValue> stack{weights["weight_ih_l0"],
                                   weights["weight_hh_l0"],
                                   asked.width,
                                   false,
                                   true,
                                   false,
                                   std::vector<int64_t>{asked.steps, asked.batch, asked.width}};
    reorder->callBoxed(&stack);
    const auto packed = stack[0].toTensorVector();
    all.push_back({"prepacked", [=, width = asked.width] {
                     const torch::NoGradGuard no_grad;
                     at::mkldnn_rnn_layer(x, packed[0], packed[1], weights["bias_ih_l0"],
                                          weights["bias_hh_l0"], h, h, false, {}, 2, width, 1, true, false,
                                          false, false);
                   }});
  }
  if (asked.steps == 1)
    all.push_back({"cell", [=, cell = torch::nn::LSTMCell(asked.width, asked.width)]() mutable {
                     const torch::NoGradGuard no_grad;
                     cell->forward(x[0], std::tuple(h[0], h[0]));
                   }});
  return all;
}

Contest contest_of(const RecurrentCase& asked) {
  Contest contest{.candidates = {ours(asked), torchs(asked)}};
  for (Candidate& rival : rivals(asked)) contest.candidates.push_back(std::move(rival));
  Contender contender;
  contender.asked = {field("algebra", asked.algebra),
                     field("cell", asked.cell),
                     field("gates", asked.gates),
                     field("width", asked.width),
                     field("projection", asked.projection),
                     column("batch", std::to_string(asked.batch) + "x" + std::to_string(asked.steps), true),
                     hidden("batch", asked.batch),
                     hidden("steps", asked.steps),
                     field("lengths", asked.packed ? "mixed" : "equal"),
                     field("caches", asked.emptied ? "emptied" : "warm"),
                     hidden("dtype", "float32")};
  contender.more = [](const Found& found) {
    return std::vector<Field>{ratio_to(found, "prepacked", "prepacked"), ratio_to(found, "cell", "LSTMCell")};
  };
  contest.contenders.push_back(std::move(contender));
  return contest;
}

}  // namespace

Subject recurrent(const std::vector<RecurrentCase>& cases, double seconds) {
  Subject subject;
  subject.title = "Recurrent layers, one layer in one direction, float32";
  subject.notes =
      "batch: sequences x steps. lengths: mixed ones are a PackedSequence of even spread. gates: one map for "
      "all\nof them, or one for each. caches: as the call before left them, or emptied before each. Beside "
      "torch's layer: oneDNN's\nwith weights that were reordered once, which torch offers no user, and for "
      "one step torch::nn::LSTMCell.\n";
  // Many single steps in a row, else the first of them would find the caches as other layers leave them.
  subject.timing = {.seconds = seconds, .turn = 3e-3};
  for (const auto& asked : cases) {
    Case one{.threads = asked.threads, .training = asked.training};
    if (asked.training) {
      one.memory.emplace_back("ours", [asked] { return ours(asked).call; });
      one.memory.emplace_back("real", [asked] { return torchs(asked).call; });
    }
    if (asked.emptied) one.before = empty_caches;
    one.make = [asked] { return contest_of(asked); };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

}  // namespace quatrain::bench
