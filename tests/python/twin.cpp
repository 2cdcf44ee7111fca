// The C++ side of test_twins.py: the same layers, from the same seed or from weights that Python wrote.
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "quatrain/models/resnet.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/nn.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"

#ifdef QUATRAIN_TWIN_OF_RUNS
#include "quatrain/tasks/run.h"
#endif

namespace {

namespace fs = std::filesystem;
namespace models = quatrain::models;
namespace nn = quatrain::nn;
using Module = torch::nn::Module;

struct Twin {
  std::shared_ptr<Module> module;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& padding)> forward;
};

template <class Holder>
Twin of(Holder layer) {
  return {layer.ptr(), [layer](const at::Tensor& x, const at::Tensor&) mutable { return layer->forward(x); }};
}

template <class Holder>
Twin recurrent(Holder layer) {
  return {layer.ptr(),
          [layer](const at::Tensor& x, const at::Tensor&) mutable { return std::get<0>(layer->forward(x)); }};
}

Twin encoder(const std::string& algebra, nn::NormStyle norm, bool packed, bool per_component) {
  nn::TransformerEncoder layer(nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(16, 2)
                                                                 .feed_forward(32)
                                                                 .algebra(algebra)
                                                                 .norm(norm)
                                                                 .packed(packed)
                                                                 .norm_per_component(per_component)
                                                                 .activation("gelu"),
                                                             2));
  return {layer.ptr(), [layer](const at::Tensor& x, const at::Tensor& padding) mutable {
            return layer->forward(x, padding);
          }};
}

Twin make(const std::string& kind, const std::string& algebra) {
  if (kind == "linear") return of(nn::Linear(nn::LinearOptions(16, 24).algebra(algebra)));
  if (kind == "polar")
    return of(nn::Linear(
        nn::LinearOptions(16, 24).algebra(algebra).bias(false).initialiser(nn::Initialiser::polar_paper_he)));
  if (kind == "convolution")
    return of(nn::Conv2d(
        nn::Conv2dOptions(8, 12, 3).stride(2).padding(1).padding_mode(torch::kReflect).algebra(algebra)));
  if (kind == "convolution_transposed")
    return of(nn::ConvTranspose1d(
        nn::ConvTranspose1dOptions(8, 12, 3).stride(2).algebra(algebra).initialiser(nn::Initialiser::he)));
  if (kind == "whitening") return of(nn::WhiteningNorm(8));
  if (kind == "feed_forward") return of(nn::FeedForward(nn::FeedForwardOptions(16, 32).algebra(algebra)));
  if (kind == "attention") {
    nn::MultiheadAttention layer(nn::MultiheadAttentionOptions(16, 2)
                                     .algebra(algebra)
                                     .split(nn::HeadSplit::printed)
                                     .attention(nn::AttentionKind::real));
    return {layer.ptr(), [layer](const at::Tensor& x, const at::Tensor& padding) mutable {
              return layer->self_attention(x, padding);
            }};
  }
  if (kind == "pre") return encoder(algebra, nn::NormStyle::pre, false, true);
  if (kind == "post") return encoder(algebra, nn::NormStyle::post, true, false);
  if (kind == "phydi") return encoder(algebra, nn::NormStyle::phydi, false, false);
  if (kind == "decoder") {
    nn::TransformerDecoder layers(nn::TransformerDecoderOptions(nn::TransformerDecoderLayerOptions(16, 2)
                                                                    .feed_forward(32)
                                                                    .algebra(algebra)
                                                                    .norm(nn::NormStyle::pre)
                                                                    .packed(true),
                                                                2));
    return {layers.ptr(), [layers](const at::Tensor& x, const at::Tensor& padding) mutable {
              return layers->forward(x, x.flip(1), padding, padding.flip(1));
            }};
  }
  if (kind == "embedding") {
    nn::Embedding layer(nn::EmbeddingOptions(56, 16).algebra(algebra));
    return {layer.ptr(), [layer](const at::Tensor& x, const at::Tensor&) mutable {
              return layer->scores(layer->forward(x));
            }};
  }
  if (kind == "lstm")
    return recurrent(nn::LSTM(nn::LSTMOptions(16, 24)
                                  .num_layers(2)
                                  .batch_first(true)
                                  .bidirectional(true)
                                  .algebra(algebra)
                                  .forget_bias(1)));
  if (kind == "gru")
    return recurrent(nn::GRU(
        nn::GRUOptions(16, 24).algebra(algebra).gates(nn::Gates::separate).batch_first(true).chrono(50)));
  if (kind == "rnn")
    return recurrent(nn::RNN(nn::RNNOptions(16, 24)
                                 .algebra(algebra)
                                 .gates(nn::Gates::packed)
                                 .single_bias(true)
                                 .batch_first(true)
                                 .nonlinearity(torch::kReLU)));
  if (kind == "resnet")
    return of(models::ResNet(models::ResNetOptions(4, 5).algebra(algebra).widths({8, 16, 16, 32})));
  if (kind == "fixup")
    return of(models::ResNet(models::ResNetOptions(4, 5)
                                 .algebra(algebra)
                                 .depth(50)
                                 .widths({8, 8, 16, 16})
                                 .bias(true)
                                 .residual(models::Residual::fixup)));
  if (kind == "classifier") {
    models::TextClassifier model(
        models::TextClassifierOptions(50, 3).width(16).heads(2).feed_forward(32).algebra(algebra));
    return {model.ptr(),
            [model](const at::Tensor& x, const at::Tensor&) mutable { return model->forward(x); }};
  }
  throw std::invalid_argument("twin: unknown kind " + kind);
}

at::Tensor tensor(const nn::Safetensors& file, const std::string& name) {
  const at::Tensor* found = file.find(name);
  return found ? *found : at::Tensor();
}

// Reads x and padding from FOLDER/input, writes what the twin makes of them.
void answer(const fs::path& folder, const Twin& twin) {
  const torch::NoGradGuard no_grad;
  twin.module->eval();
  const auto input = nn::read_safetensors(folder / "input");
  nn::write_safetensors(folder / "output",
                        {{"y", twin.forward(tensor(input, "x"), tensor(input, "padding"))}});
}

}  // namespace

// usage: twin make KIND ALGEBRA FOLDER    draws the weights from seed 7 and writes them to FOLDER/weights
//        twin read KIND ALGEBRA FOLDER    reads them from there
//        twin run RUN FOLDER              the model of a run
int main(int argc, char** argv) {
  try {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "run" && argc == 4) {
#ifdef QUATRAIN_TWIN_OF_RUNS
      const std::shared_ptr<quatrain::tasks::Model> model = quatrain::tasks::load_run(argv[2]);
      const std::shared_ptr<Module> module(model, &model->module());
      answer(argv[3],
             {module, [model](const at::Tensor& x, const at::Tensor&) { return model->forward({x}); }});
      return 0;
#else
      return 3;
#endif
    }
    if (argc != 5) return 2;
    const fs::path folder = argv[4];
    torch::manual_seed(7);
    const Twin twin = make(argv[2], argv[3]);
    if (command == "make")
      nn::save_weights(*twin.module, folder / "weights");
    else
      nn::load_weights(*twin.module, folder / "weights");
    answer(folder, twin);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
