#include "quatrain/models/pair_encoder.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

#include "models/pairs.h"
#include "nn/visit.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using models::PairEncoder;
using models::PairEncoderOptions;
using test::ids;
using test::relative_error;

PairEncoderOptions encoding(const std::string& algebra = "quaternion") {
  return PairEncoderOptions(test::kVocabulary, 3, 12, 8).algebra(algebra).classifier_width(10);
}

TEST(PairEncoder, EncodersHaveThePapersSizes) {
  const auto size = [](const char* algebra) {
    const PairEncoder model(PairEncoderOptions(10, 3).algebra(algebra));
    return nn::parameter_count(*model->encoder);
  };
  EXPECT_EQ(size("real"), 721200);
  EXPECT_EQ(size("quaternion"), 181200);
  EXPECT_EQ(size("phm(2)"), 361264);
  EXPECT_EQ(size("phm(5)"), 146200);
  EXPECT_EQ(size("phm(10)"), 81200);
  const PairEncoder packed(PairEncoderOptions(10, 3).algebra("phm(5)").gates(nn::Gates::packed));
  EXPECT_EQ(nn::parameter_count(*packed->encoder), 146200 - 6 * 125);
}

TEST(PairEncoder, ClassifierHasTwoLayersOf300) {
  const PairEncoder model(PairEncoderOptions(10, 3));
  EXPECT_EQ(nn::parameter_count(*model->classifier), 2400 * 300 + 300 + 300 * 300 + 300);
  EXPECT_EQ(nn::parameter_count(*model->head), 300 * 3 + 3);
  const PairEncoder printed(PairEncoderOptions(10, 3).compared(false));
  EXPECT_EQ(nn::parameter_count(*printed->classifier), 1200 * 300 + 300 + 300 * 300 + 300);
}

// The same with torch's layers, one text at a time.
at::Tensor plain(PairEncoder& model, const at::Tensor& first, const at::Tensor& second) {
  const auto& o = model->options;
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(o.input_size(), o.hidden_size()).batch_first(true));
  lstm->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  auto theirs = lstm->named_parameters();
  const auto ours = model->encoder->named_parameters();
  theirs["weight_ih_l0"].copy_(ours["S_ih_l0"][0]);
  theirs["weight_hh_l0"].copy_(ours["S_hh_l0"][0]);
  theirs["bias_ih_l0"].copy_(ours["bias_ih_l0"]);
  theirs["bias_hh_l0"].zero_();
  const auto features = [&](const at::Tensor& text) {
    const at::Tensor words = text.masked_select(text.ne(0)).unsqueeze(0);
    const at::Tensor y =
        std::get<0>(lstm->forward(torch::embedding(model->words->embedding->weight, words)))[0];
    return torch::cat({std::get<0>(y.max(0)), y.mean(0)});
  };
  std::vector<at::Tensor> logits;
  for (int64_t b = 0; b < first.size(0); ++b) {
    const at::Tensor u = features(first[b]), v = features(second[b]);
    at::Tensor x = o.compared() ? torch::cat({u, v, (u - v).abs(), u * v}) : torch::cat({u, v});
    for (auto& layer : model->classifier->layers)
      x = torch::relu(torch::nn::functional::linear(x, layer->S[0], layer->bias));
    logits.push_back(torch::nn::functional::linear(x, model->head->S[0], model->head->bias));
  }
  return torch::stack(logits);
}

TEST(PairEncoder, RealOneIsTorchsLayers) {
  torch::manual_seed(0);
  for (const bool compared : {true, false}) {
    PairEncoder model(encoding("real").compared(compared));
    model->to(torch::kDouble);
    const at::Tensor first = ids({3, 7, 5}, 7), second = ids({4, 2, 6}, 9);
    EXPECT_LT(relative_error(model(first, second), plain(model, first, second)), 1e-12);
  }
}

TEST(PairEncoder, PaddingAndOtherPairsChangeNothing) {
  torch::manual_seed(1);
  for (const auto& options :
       {encoding("real"), encoding(), encoding("phm(2)"), encoding().bidirectional(true)}) {
    PairEncoder model(options);
    model->to(torch::kDouble);
    model->eval();
    test::expect_padding_and_batch_change_nothing(
        [&](const at::Tensor& a, const at::Tensor& b) { return model(a, b); });
  }
}

TEST(PairEncoder, GradientsAreThoseOfDifferences) {
  torch::manual_seed(2);
  for (const auto& options : {encoding(), encoding("phm(2)").gates(nn::Gates::packed).compared(false)}) {
    PairEncoder model(options);
    model->to(torch::kDouble);
    test::expect_gradients(*model, [&] { return model(ids({3, 5}, 5), ids({4, 2}, 4)); });
  }
}

TEST(PairEncoder, WordsAreFixedUnlessTrained) {
  test::expect_words_are_fixed_unless_trained(
      [](bool train) { return PairEncoder(encoding().train_words(train)); });
}

TEST(PairEncoder, ClonesMovesSavesAndLoads) {
  for (const char* algebra : {"real", "quaternion", "phm(2)"})
    test::expect_clones_saves_and_loads([&] { return PairEncoder(encoding(algebra)); });
}

TEST(PairEncoder, RefusesWhatIsNoPair) {
  PairEncoder model(encoding());
  test::expect_refuses_what_is_no_pair(model, "PairEncoder");
  at::Tensor gap = ids({4}, 4);
  gap[0][1] = 0;
  EXPECT_THROW(model(gap, ids({4}, 4)), c10::ValueError);
  EXPECT_THROW(PairEncoder(PairEncoderOptions(10, 3, 300, 301)), std::invalid_argument);
  EXPECT_THROW(PairEncoder(encoding().classifier_layers(0)), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
