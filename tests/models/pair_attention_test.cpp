#include "quatrain/models/pair_attention.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <string>

#include "models/pairs.h"
#include "nn/visit.h"
#include "ops/reference.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/parameters.h"
#include "system_memory.h"

namespace quatrain {
namespace {

using models::PairAttention;
using models::PairAttentionOptions;
using test::ids;
using test::relative_error;

PairAttentionOptions attending(const std::string& algebra = "quaternion") {
  return PairAttentionOptions(test::kVocabulary, 3).width(8).word_width(6).algebra(algebra);
}

PairAttention in_double(const PairAttentionOptions& options) {
  PairAttention model(options);
  model->to(torch::kDouble);
  model->eval();
  const torch::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model->parameters())
    if (parameter.dim() == 1) parameter.normal_(0, 0.1);  // biases
  return model;
}

at::Tensor words_of(PairAttention& model, const at::Tensor& text) {
  const at::Tensor vectors =
      torch::embedding(model->words->embedding->weight, text.masked_select(text.ne(0)));
  const auto& p = model->words->projection;
  return torch::tanh(torch::nn::functional::linear(vectors, p->S[0], p->bias));
}

// The decomposable attention model with torch's operators alone, one pair at a time.
at::Tensor deatt(PairAttention& model, const at::Tensor& first, const at::Tensor& second) {
  const auto network = [](models::Perceptron& layers, at::Tensor x) {
    for (auto& layer : layers->layers)
      x = torch::relu(torch::nn::functional::linear(x, layer->S[0], layer->bias));
    return x;
  };
  const auto matched = [](const at::Tensor& l, const at::Tensor& r) {
    return torch::cat({l, r, l * r, l - r}, -1);
  };
  std::vector<at::Tensor> logits;
  for (int64_t b = 0; b < first.size(0); ++b) {
    const at::Tensor A = words_of(model, first[b]), B = words_of(model, second[b]), E = A.mm(B.t());
    const at::Tensor B_ = E.softmax(1).mm(B), A_ = E.t().softmax(1).mm(A);
    auto& with_second = model->compare ? model->compare : model->compare_second;
    auto& with_first = model->compare ? model->compare : model->compare_first;
    const at::Tensor C1 = network(with_second, matched(A_, B)).sum(0),
                     C2 = network(with_first, matched(B_, A)).sum(0);
    logits.push_back(torch::nn::functional::linear(network(model->aggregate, matched(C1, C2)),
                                                   model->head->S[0], model->head->bias));
  }
  return torch::stack(logits);
}

TEST(PairAttention, RealOneIsDeAtt) {
  torch::manual_seed(0);
  for (const bool shared : {true, false}) {
    PairAttention model = in_double(attending("real").shared_comparison(shared).layers(shared ? 2 : 3));
    const at::Tensor first = ids({3, 7, 5}, 7), second = ids({4, 2, 6}, 9);
    EXPECT_LT(relative_error(model(first, second), deatt(model, first, second)), 1e-12);
  }
}

// Q-Att as QNLP writes it, number by number, with the table of the algebra.
struct WrittenOut {
  int64_t n, m;
  at::Tensor table;      // (i, c, j); undefined where each layer has learned its own
  bool one_map = false;  // attention = real: all components have the weights of their whole product

  // (l, n m) -> n of (l, m)
  std::vector<at::Tensor> components(const at::Tensor& x) const { return x.view({-1, n, m}).unbind(1); }
  static at::Tensor joined(const std::vector<at::Tensor>& parts) { return torch::cat(parts, -1); }

  template <class Multiply>
  std::vector<at::Tensor> product(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                                  const Multiply& multiply) const {
    std::vector<at::Tensor> sums(static_cast<size_t>(n));
    if (!table.defined()) {  // texts share no table: element by element
      for (size_t c = 0; c < sums.size(); ++c) sums[c] = multiply(a[c], b[c]);
      return sums;
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < n; ++c)
        for (int64_t j = 0; j < n; ++j) {
          const at::Tensor term =
              table[i][c][j] * multiply(a[static_cast<size_t>(i)], b[static_cast<size_t>(j)]);
          at::Tensor& sum = sums[static_cast<size_t>(c)];
          sum = sum.defined() ? sum + term : term;
        }
    return sums;
  }
  at::Tensor matched(const at::Tensor& left, const at::Tensor& right) const {
    const auto a = components(left), b = components(right);
    const auto ab = product(a, b, [](const at::Tensor& x, const at::Tensor& y) { return x * y; });
    std::vector<at::Tensor> parts;
    for (size_t c = 0; c < a.size(); ++c)
      for (const at::Tensor& part : {a[c], b[c], ab[c], a[c] - b[c]}) parts.push_back(part);
    return joined(parts);
  }
  at::Tensor network(models::Perceptron& layers, at::Tensor x) const {
    for (auto& layer : layers->layers)
      x = torch::relu(torch::nn::functional::linear(
          x, test::expanded(table.defined() ? table : layer->A, layer->S), layer->bias));
    return x;
  }
  at::Tensor logits(PairAttention& model, const at::Tensor& first, const at::Tensor& second) const {
    const at::Tensor A = words_of(model, first), B = words_of(model, second);
    const auto a = components(A), b = components(B);
    const auto E = one_map
                       ? std::vector<at::Tensor>(a.size(), A.mm(B.t()))
                       : product(a, b, [](const at::Tensor& x, const at::Tensor& y) { return x.mm(y.t()); });
    std::vector<at::Tensor> B_, A_;
    for (size_t c = 0; c < E.size(); ++c) {
      B_.push_back(E[c].softmax(1).mm(b[c]));
      A_.push_back(E[c].t().softmax(1).mm(a[c]));
    }
    const at::Tensor C1 = network(model->compare, matched(joined(A_), B)).sum(0),
                     C2 = network(model->compare, matched(joined(B_), A)).sum(0);
    const at::Tensor Y = network(model->aggregate, matched(C1.unsqueeze(0), C2.unsqueeze(0)))[0];
    return torch::nn::functional::linear(Y, model->head->S[0], model->head->bias);
  }
};

// The largest relative error of a model's logits, whose components have three values each.
double error_beside(const WrittenOut& written, const PairAttentionOptions& options) {
  torch::manual_seed(1);
  PairAttention model = in_double(options);
  {
    const torch::NoGradGuard no_grad;
    model->words->embedding->weight.mul_(3);  // so that the softmaxes are far from even
  }
  const at::Tensor first = ids({3, 7, 5}, 7), second = ids({4, 2, 6}, 9), logits = model(first, second);
  double largest = 0;
  for (int64_t b = 0; b < 3; ++b)
    largest = std::max(largest, relative_error(logits[b], written.logits(model, first[b], second[b])));
  return largest;
}

TEST(PairAttention, IsTheWrittenOutFormula) {
  for (const char* algebra : {"complex", "quaternion", "split_quaternion", "octonion"}) {
    const at::Tensor table = test::table_of(algebra);
    const int64_t n = table.size(0);
    EXPECT_LT(error_beside({n, 3, table}, attending(algebra).width(3 * n)), 1e-12) << algebra;
  }
}

// One map of scores for all components, while products and layers are the algebra's.
TEST(PairAttention, WithRealAttentionItIsTheWrittenOutFormula) {
  for (const char* algebra : {"complex", "quaternion", "octonion"}) {
    const at::Tensor table = test::table_of(algebra);
    const int64_t n = table.size(0);
    const auto options = attending(algebra).width(3 * n).attention(nn::AttentionKind::real);
    EXPECT_LT(error_beside({n, 3, table, true}, options), 1e-12) << algebra;
    EXPECT_GT(error_beside({n, 3, table}, options), 1e-4) << algebra << ": the maps make no difference";
  }
}

// Its texts share no table: attention is real, products are element by element, layers have their own A.
TEST(PairAttention, OverLearnedAlgebrasItIsTheWrittenOutFormula) {
  for (const int64_t n : {2, 4, 5}) {
    const auto options = attending("phm(" + std::to_string(n) + ")").width(3 * n);
    EXPECT_LT(error_beside({n, 3, {}, true}, options), 1e-12) << n;
    EXPECT_GT(error_beside({n, 3, {}}, options), 1e-4) << n << ": the maps make no difference";
  }
}

TEST(PairAttention, InSingleItIsWhatItIsInDouble) {
  torch::manual_seed(2);
  for (const auto& options : {attending("real"), attending(), attending("phm(4)"),
                              attending().attention(nn::AttentionKind::real)}) {
    PairAttention exact = in_double(options), model(options);
    exact->to(torch::kFloat);
    const torch::NoGradGuard no_grad;
    for (const auto& item : exact->named_parameters())
      model->named_parameters()[item.key()].copy_(item.value());
    exact->to(torch::kDouble);
    const at::Tensor first = ids({3, 7, 5}, 7), second = ids({4, 2, 6}, 9);
    EXPECT_LT(relative_error(model(first, second), exact(first, second)), 1e-5) << options.algebra().text();
  }
}

TEST(PairAttention, WeightsAreOverWordsAlone) {
  torch::manual_seed(3);
  PairAttention model = in_double(attending());
  const at::Tensor first = ids({3, 7}, 7), second = ids({4, 2}, 6);
  const auto [of_second, of_first] = model->attention_weights(first, second);
  EXPECT_EQ(of_second.sizes(), (std::vector<int64_t>{2, 4, 7, 6}));
  EXPECT_EQ(of_first.sizes(), (std::vector<int64_t>{2, 4, 6, 7}));
  EXPECT_LT(relative_error(of_second.sum(-1), torch::ones({2, 4, 7})), 1e-12);
  EXPECT_EQ(of_second[0].slice(-1, 4).abs().sum().item<double>(), 0);
  EXPECT_EQ(of_first[0].slice(-1, 3).abs().sum().item<double>(), 0);
}

int64_t largest_tensor(const std::function<void()>& run) {
  const test::SystemMemory system;
  run();
  return system.largest();
}

TEST(PairAttention, KeepsNoMapOfScoresUnlessAskedFor) {
  torch::manual_seed(11);
  constexpr int64_t kWords = 2500, kMap = kWords * kWords * 4;  // bytes; tiles take a tenth of it
  const at::Tensor first = torch::randint(1, test::kVocabulary, {1, kWords}),
                   second = torch::randint(1, test::kVocabulary, {1, kWords});
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const bool train : {false, true}) {
      PairAttention model(attending(algebra));
      model->train(train);
      const torch::autograd::AutoGradMode with_gradients(train);
      EXPECT_LT(largest_tensor([&] {
                  const at::Tensor logits = model->forward(first, second);
                  if (train) logits.sum().backward();
                }),
                kMap / 4)
          << algebra << (train ? ", training" : ", inference");
      EXPECT_GE(largest_tensor([&] { model->attention_weights(first, second); }), kMap) << algebra;
    }
}

// Six panels of eleven pairs, the last one short.
TEST(PairAttention, EvaluatesManyPairsInPanels) {
  torch::manual_seed(12);
  const int threads = torch::get_num_threads();
  const at::Tensor first = ids(std::vector<int64_t>(62, 13), 25),
                   second = ids(std::vector<int64_t>(62, 9), 15);
  constexpr int64_t kWhole = int64_t{62} * 40 * 4 * 256 * 4;  // bytes of what is compared
  for (const bool shared : {true, false}) {
    PairAttention model(attending().width(256).shared_comparison(shared));
    model->eval();
    const at::Tensor expected = model(first, second).detach();
    torch::set_num_threads(1);
    const torch::NoGradGuard no_grad;
    model(first, second);  // weights that are packed once are no tensors of a panel
    EXPECT_LT(largest_tensor([&] { EXPECT_LT(relative_error(model(first, second), expected), 1e-5); }),
              kWhole / 5);
    // Of texts that fill a panel each, as many as there are threads.
    torch::set_num_threads(2);
    const at::Tensor long_first = first.repeat({1, 30}), long_second = second.repeat({1, 30});
    const at::Tensor one = model(long_first, long_second);
    torch::set_num_threads(64);
    EXPECT_LT(relative_error(model(long_first, long_second), one), 1e-5);
    model->train();
    EXPECT_GE(largest_tensor([&] { model(first, second); }), kWhole);
  }
  torch::set_num_threads(threads);
}

TEST(PairAttention, PaddingAndOtherPairsChangeNothing) {
  torch::manual_seed(4);
  for (const auto& options :
       {attending("real"), attending(), attending("phm(4)"), attending().attention(nn::AttentionKind::real),
        attending().shared_comparison(false)}) {
    PairAttention model = in_double(options);
    test::expect_padding_and_batch_change_nothing(
        [&](const at::Tensor& a, const at::Tensor& b) { return model(a, b); });
  }
}

TEST(PairAttention, GradientsAreThoseOfDifferences) {
  torch::manual_seed(5);
  for (auto options : {attending("real"), attending().train_words(true), attending("phm(4)"),
                       attending("phm(2)").shared_comparison(false)}) {
    PairAttention model = in_double(options.activation("tanh"));
    test::expect_gradients(*model, [&] { return model(ids({3, 5}, 5), ids({4, 2}, 4)); });
  }
}

TEST(PairAttention, WordsAreFixedUnlessTrained) {
  test::expect_words_are_fixed_unless_trained(
      [](bool train) { return PairAttention(attending().train_words(train)); });
}

TEST(PairAttention, ClonesMovesSavesAndLoads) {
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    test::expect_clones_saves_and_loads([&] { return PairAttention(attending(algebra)); });
}

TEST(PairAttention, IsFilledFromOneOfItsOwnAlgebraAlone) {
  PairAttention quaternion(attending()), real(attending("real")), other(attending("real"));
  EXPECT_EQ(nn::fill_nearest(*real, *other).after, nn::parameter_count(*other));
  const at::Tensor before = quaternion->aggregate->layers[0]->S.clone();
  try {
    nn::fill_nearest(*real, *quaternion);
    ADD_FAILURE() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "fill_nearest: the module cannot be converted to quaternion, because it multiplies its inputs, and "
        "their products are others there: train the twin from its own start");
  }
  EXPECT_TRUE(quaternion->aggregate->layers[0]->S.equal(before));
}

TEST(PairAttention, SizesAreThePapers) {
  const auto size = [](const PairAttentionOptions& options) {
    const PairAttention model(options);
    return nn::parameter_count(*model) - nn::parameter_count(*model->words->embedding);
  };
  const int64_t projection = 300 * 200 + 200, head = 200 * 3 + 3, network = 800 * 200 + 200 * 200;
  const auto options = [](const char* algebra) { return PairAttentionOptions(10, 3).algebra(algebra); };
  EXPECT_EQ(size(options("real")), projection + 2 * (network + 400) + head);
  EXPECT_EQ(size(options("quaternion")), projection + 2 * (network / 4 + 400) + head);
  EXPECT_EQ(size(options("real").shared_comparison(false)), 662003);        // printed: 700K
  EXPECT_EQ(size(options("quaternion").shared_comparison(false)), 212003);  // printed: 200K
}

TEST(PairAttention, RefusesWhatIsNoPair) {
  PairAttention model(attending());
  test::expect_refuses_what_is_no_pair(model, "PairAttention");
  EXPECT_THROW(PairAttention(attending().width(10)), std::invalid_argument);
  EXPECT_THROW(PairAttention(attending().layers(0)), std::invalid_argument);
  EXPECT_THROW(PairAttention(attending().padding_id(test::kVocabulary)), std::invalid_argument);
  EXPECT_THROW(PairAttention(attending("phm(4)").attention(nn::AttentionKind::componentwise)),
               std::invalid_argument);
  EXPECT_EQ(PairAttention(attending("phm(4)"))->kind(), nn::AttentionKind::real);
  // With one component both kinds are the same.
  for (const char* one : {"real", "phm(1)"})
    for (const auto kind : {nn::AttentionKind::automatic, nn::AttentionKind::componentwise})
      EXPECT_EQ(PairAttention(attending(one).attention(kind))->kind(), nn::AttentionKind::real) << one;
}

}  // namespace
}  // namespace quatrain
