#include "quatrain/nn/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/layers.h"
#include "nn/reference.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/norm.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "temporary_folder.h"

namespace quatrain::nn {
namespace {

using test::linear;
using test::of;
using test::relative_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConvertTest : public test::FolderTest {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

// Gives a real layer the matrix of a hypercomplex one of random weights, and a bias.
void make_exact(LinearImpl& layer, const std::string& algebra) {
  const torch::NoGradGuard no_grad;
  const Linear source = linear(algebra, layer.options.in_features(), layer.options.out_features());
  layer.S[0].copy_(source->matrix());
  if (layer.bias.defined()) layer.bias.normal_();
}

models::TextClassifierOptions classifier_options(const std::string& algebra = "real", bool packed = false) {
  return models::TextClassifierOptions(20, 3)
      .width(16)
      .heads(2)
      .feed_forward(32)
      .layers(2)
      .packed(packed)
      .algebra(algebra)
      .attention(AttentionKind::real);
}

// The real layer is exactly of the algebra: what comes out computes the same, in the same holder.
TEST_F(ConvertTest, LayersAreConvertedInPlace) {
  for (const char* algebra :
       {"complex", "quaternion", "clifford(2,0)", "phm(4)", "wkp(4)", "phm(quaternion)"}) {
    SCOPED_TRACE(algebra);
    Linear layer = linear("real");
    make_exact(*layer, algebra);
    const Linear held = layer;
    const auto x = torch::randn({5, 16}), expected = layer->forward(x);
    const ConversionReport report = convert(*layer, algebra);
    EXPECT_EQ(held->options.algebra().text(), AlgebraSpec(algebra).text());
    EXPECT_LT(relative_error(Linear(held)->forward(x), expected), 1e-6);
    ASSERT_EQ(report.layers.size(), 1u);
    EXPECT_LT(report.layers[0].error.value(), 1e-6);
    EXPECT_EQ(report.layers[0].before, 16 * 8 + 8);
    EXPECT_EQ(report.layers[0].after, parameter_report(*linear(algebra)).total);
    EXPECT_EQ(report.after, report.layers[0].after);
  }
}

// A matrix that is of no algebra: the error is that of the operator, and the layer's matrix is that far away.
TEST_F(ConvertTest, TheErrorIsThatOfTheMatrix) {
  for (const char* algebra : {"quaternion", "phm(2)", "wkp(4)"}) {
    Linear layer = linear("real");
    const auto H = layer->matrix().detach().clone();
    const ConversionReport report = convert(*layer, algebra);
    EXPECT_NEAR(report.layers[0].error.value(), relative_error(layer->matrix().detach(), H), 1e-6);
    EXPECT_GT(report.layers[0].error.value(), 0.1);
    EXPECT_EQ(report.converted(), 1);
  }
}

TEST_F(ConvertTest, TorchLayersInASequentialAreReplaced) {
  torch::nn::Sequential model(torch::nn::Linear(8, 12), torch::nn::ReLU(),
                              torch::nn::Linear(torch::nn::LinearOptions(12, 4).bias(false)));
  const auto x = torch::randn({3, 8});
  {
    const torch::NoGradGuard no_grad;
    model->at<torch::nn::LinearImpl>(0).weight.copy_(linear("quaternion", 8, 12)->matrix());
    model->at<torch::nn::LinearImpl>(2).weight.copy_(linear("quaternion", 12, 4)->matrix());
  }
  const auto expected = model->forward(x);
  const ConversionReport report = convert(*model, "quaternion");
  EXPECT_EQ(report.converted(), 2);
  EXPECT_LT(relative_error(model->forward(x), expected), 1e-6);
  EXPECT_TRUE(model->named_parameters().contains("0.S"));
  EXPECT_FALSE(model->named_parameters().contains("0.weight"));
  // The layers that are called are the ones whose parameters are told.
  EXPECT_EQ(&model->at<LinearImpl>(0).S, &model->children()[0]->as<LinearImpl>()->S);
  EXPECT_FALSE(model->named_parameters().contains("2.bias"));
  EXPECT_EQ(report.before, 8 * 12 + 12 + 12 * 4);
  EXPECT_EQ(report.after, 8 * 12 / 4 + 12 + 12 * 4 / 4);
}

// What is not converted stays as it is, and the report says why.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    for (const char* name : {"good", "kept", "tied"})
      register_module(name, Linear(LinearOptions(16, 16).algebra("real")));
    register_module("again", named_children()["tied"]);
    register_module("odd", Linear(LinearOptions(16, 10).algebra("real")));
    register_module("done", Linear(LinearOptions(16, 16).algebra("octonion")));
    register_module("typed", torch::nn::Linear(16, 16));
    register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})));
  }
};
TORCH_MODULE(Mixed);

TEST_F(ConvertTest, LayersThatAreSkippedSayWhy) {
  Mixed model;
  std::map<std::string, torch::Tensor> before;
  for (const auto& item : model->named_parameters()) before[item.key()] = item.value().clone();
  const ConversionReport report = convert(
      *model, ConvertOptions("quaternion").where([](const std::string& name, const torch::nn::Module& layer) {
        EXPECT_TRUE(dynamic_cast<const torch::nn::LinearImpl*>(&layer) ||
                    dynamic_cast<const LinearImpl*>(&layer));
        return name != "kept";
      }));
  EXPECT_EQ(of(report, "good").skipped, "");
  EXPECT_EQ(of(report, "kept").skipped, "excluded by where");
  EXPECT_EQ(of(report, "tied").skipped, "its weight is tied to again.S");
  EXPECT_EQ(of(report, "again").skipped, "its weight is tied to tied.S");
  EXPECT_EQ(of(report, "odd").skipped, "n = 4 does not divide 10");
  EXPECT_EQ(of(report, "done").skipped, "is hypercomplex already (octonion)");
  EXPECT_THAT(of(report, "typed").skipped, HasSubstr("only in a torch::nn::Sequential"));
  EXPECT_EQ(report.layers.size(), 7u);
  EXPECT_EQ(report.converted(), 1);
  EXPECT_EQ(report.before - report.after, 16 * 16 - 16 * 16 / 4);
  for (const auto& item : model->named_parameters())
    if (!item.key().starts_with("good")) {
      EXPECT_TRUE(torch::equal(item.value(), before.at(item.key()))) << item.key();
    }
  EXPECT_THAT(report.table(), HasSubstr("n = 4 does not divide 10"));
  EXPECT_THAT(report.table(), HasSubstr("whole model"));
}

TEST_F(ConvertTest, TypesModeAndFrozenWeightsStay) {
  Linear layer = linear("real");
  layer->to(torch::kDouble);
  layer->eval();
  layer->S.set_requires_grad(false);
  convert(*layer, "phm(4)");
  EXPECT_FALSE(layer->is_training());
  EXPECT_FALSE(layer->S.requires_grad());
  EXPECT_FALSE(layer->A.requires_grad());
  EXPECT_TRUE(layer->bias.requires_grad());
  for (const auto& p : layer->parameters()) EXPECT_EQ(p.scalar_type(), torch::kDouble);
}

// Factors in A's place have no nearest weights in closed form: drawn anew they may stand there, else nothing
// changes.
TEST_F(ConvertTest, TrainedFactorsAreForFreshModels) {
  Linear layer = linear("real");
  const auto H = layer->matrix().detach().clone();
  EXPECT_THROW(convert(*layer, "phm(4, trained_rank=6)"), c10::Error);
  EXPECT_TRUE(torch::equal(layer->matrix(), H));
  EXPECT_EQ(convert(*layer, ConvertOptions("phm(4, trained_rank=6)").fresh(true)).converted(), 1);
  EXPECT_EQ(layer->forward(torch::randn({2, 16})).sizes(), (std::vector<int64_t>{2, 8}));
}

TEST_F(ConvertTest, FreshWeightsHaveTheInitialisersScale) {
  Linear layer(LinearOptions(256, 256).algebra("real").initialiser(Initialiser::he));
  {
    const torch::NoGradGuard no_grad;
    layer->S.fill_(100);
  }
  const ConversionReport report = convert(*layer, ConvertOptions("phm(4)").fresh(true));
  EXPECT_FALSE(report.layers[0].error.has_value());
  EXPECT_NEAR(layer->matrix().var().item<double>(), 2.0 / 256, 4e-4);
}

// A model whose layers are all of the algebra computes the same after conversion, attention included, and its
// weights load into a model that was built over the algebra.
TEST_F(ConvertTest, WholeModelsComputeTheSame) {
  const auto tokens = torch::randint(1, 20, {4, 7}, torch::kLong);
  for (const bool packed : {false, true}) {
    for (const char* algebra : {"quaternion", "phm(4)"}) {
      SCOPED_TRACE(std::string(algebra) + (packed ? " packed" : ""));
      // Exact where the heads' channels come to lie, so that the real matrices are not: made from the twin.
      models::TextClassifier twin(classifier_options(algebra, packed)),
          real(classifier_options("real", packed));
      models::TextClassifier again(classifier_options(algebra, packed));
      twin->eval(), real->eval(), again->eval();
      fill_nearest(*twin, *real);
      const auto expected = twin->forward(tokens);
      EXPECT_LT(relative_error(real->forward(tokens), expected), 1e-5);

      const ConversionReport filled = fill_nearest(*real, *again);
      EXPECT_EQ(filled.converted(), packed ? 8 : 12);
      for (const auto& layer : filled.layers) EXPECT_LT(layer.error.value_or(0), 1e-6) << layer.name;
      EXPECT_LT(relative_error(again->forward(tokens), expected), 1e-5);
      EXPECT_EQ(of(filled, "head").skipped, "is of the algebra real in both");

      const ConversionReport report =
          convert(*real, ConvertOptions(algebra).where([](const std::string& name, const auto&) {
            return name.starts_with("encoder");
          }));
      EXPECT_EQ(report.converted(), packed ? 8 : 12);
      EXPECT_EQ(report.after, parameter_report(*twin).total);
      EXPECT_LT(relative_error(real->forward(tokens), expected), 1e-5);
      EXPECT_LT(
          relative_error(std::static_pointer_cast<models::TextClassifierImpl>(real->clone())->forward(tokens),
                         expected),
          1e-5);
      save_weights(*real, folder_ / "converted.safetensors");
      models::TextClassifier loaded(classifier_options(algebra, packed));
      loaded->eval();
      load_weights(*loaded, folder_ / "converted.safetensors");
      EXPECT_LT(relative_error(loaded->forward(tokens), expected), 1e-5);
    }
  }
}

// Where only some layers of an attention module are converted, its heads stay where they were.
TEST_F(ConvertTest, AttentionInPartKeepsItsHeads) {
  MultiheadAttention attention(MultiheadAttentionOptions(16, 2).algebra("real"));
  make_exact(*attention->query, "quaternion");
  make_exact(*attention->output, "quaternion");
  const auto x = torch::randn({2, 5, 16}), expected = attention->self_attention(x);
  const ConversionReport report =
      convert(*attention, ConvertOptions("quaternion").where([](const std::string& name, const auto&) {
        return name == "query" || name == "output";
      }));
  EXPECT_EQ(report.converted(), 2);
  EXPECT_LT(relative_error(attention->self_attention(x), expected), 1e-5);
  // Four heads of 4 channels have no place for four components inside: one by one too.
  MultiheadAttention narrow(MultiheadAttentionOptions(8, 4).algebra("real"));
  for (auto* layer : {&narrow->query, &narrow->key, &narrow->value, &narrow->output})
    make_exact(**layer, "quaternion");
  const auto y = torch::randn({2, 5, 8}), wanted = narrow->self_attention(y);
  EXPECT_EQ(convert(*narrow, "quaternion").converted(), 4);
  EXPECT_LT(relative_error(narrow->self_attention(y), wanted), 1e-5);
}

TEST_F(ConvertTest, ConvertedModelsTrain) {
  models::TextClassifier model(classifier_options());
  convert(*model, "phm(4)");
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  const auto tokens = torch::randint(1, 20, {16, 5}, torch::kLong),
             labels = torch::randint(0, 3, {16}, torch::kLong);
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(model->forward(tokens), labels);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST_F(ConvertTest, TwinsOfAnotherMakeAreRefused) {
  const auto refusal = [](const torch::nn::Module& real, torch::nn::Module& twin) {
    try {
      fill_nearest(real, twin);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(refusal(*linear("real"), *linear("quaternion", 8, 8)), HasSubstr("must have one size"));
  EXPECT_THAT(refusal(*torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})), *linear("quaternion", 8, 8)),
              HasSubstr("must be a linear layer in both models"));
  models::TextClassifier real(classifier_options());
  EXPECT_THAT(refusal(*real, *models::TextClassifier(classifier_options("phm(4)").layers(3))),
              HasSubstr("layers"));
  EXPECT_THAT(refusal(*real, *models::TextClassifier(classifier_options("phm(4)").heads(4))),
              HasSubstr("number of heads"));
  EXPECT_THAT(
      refusal(*real,
              *models::TextClassifier(
                  models::TextClassifierOptions(21, 3).width(16).heads(2).feed_forward(32).layers(2).algebra(
                      "phm(4)"))),
      HasSubstr("'embedding.weight' must have one shape"));
}

TEST_F(ConvertTest, FactorizeReportsEachLearnedLayer) {
  torch::nn::Sequential model(linear("phm(4)"), linear("quaternion"), linear("wkp(2)"));
  model->eval();
  const FactorizeReport report = factorize(*model);
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_EQ(report.learned, 2);
  EXPECT_EQ(report.sound, 2);
  EXPECT_EQ(report.layers[0].name, "0");
  EXPECT_EQ(report.layers[1].name, "2");
  EXPECT_EQ(report.layers[0].rank, 8);
  EXPECT_EQ(report.layers[1].rank, 3);
  for (const auto& layer : report.layers) {
    EXPECT_LT(layer.error, 1e-6);
    EXPECT_GE(layer.condition, 1);
  }
  EXPECT_TRUE(model->at<LinearImpl>(0).has_factors());
  EXPECT_EQ(ops::rank(model->at<LinearImpl>(0).operands(false).product), 8);
  EXPECT_THAT(report.table(), HasSubstr("held"));
  const torch::NoGradGuard no_grad;
  model->at<LinearImpl>(0).A.zero_();
  const FactorizeReport none = factorize(*model);
  EXPECT_EQ(none.sound, 1);
  EXPECT_FALSE(none.layers[0].sound);
  EXPECT_THAT(none.table(), HasSubstr("none that are sound"));
}

// Heads that both cut alike stay where they are: weights of one algebra are copied, bit for bit.
TEST_F(ConvertTest, AttentionOfOneAlgebraIsCopied) {
  for (const char* algebra : {"real", "quaternion", "phm(4)", "wkp(4)", "phm(4, trained_rank=6)"}) {
    SCOPED_TRACE(algebra);
    const auto options = MultiheadAttentionOptions(16, 2).algebra(algebra);
    MultiheadAttention from(options), to(options);
    const ConversionReport report = fill_nearest(*from, *to);
    EXPECT_EQ(report.converted(), 0);
    for (const auto& line : report.layers) EXPECT_FALSE(line.error.has_value()) << line.name;
    for (const auto& item : from->named_parameters())
      EXPECT_TRUE(torch::equal(to->named_parameters()[item.key()], item.value())) << item.key();
  }
}

TEST_F(ConvertTest, HeadsThatMoveWithinAnAlgebraAreReported) {
  const auto options = MultiheadAttentionOptions(16, 2).algebra("quaternion").attention(AttentionKind::real);
  MultiheadAttention inside(MultiheadAttentionOptions(options).split(HeadSplit::inside)),
      printed(MultiheadAttentionOptions(options).split(HeadSplit::printed));
  const ConversionReport report = fill_nearest(*inside, *printed);
  EXPECT_EQ(report.converted(), 4);
  for (const auto& line : report.layers) EXPECT_GT(line.error.value_or(0), 0.1) << line.name;
}

// A layer that cannot be converted stops all: no layer before it is another's.
TEST_F(ConvertTest, AModelIsConvertedWhollyOrNotAtAll) {
  torch::nn::Sequential model(linear("real"), torch::nn::Linear(8, 16), MultiheadAttention(16, 2),
                              linear("real"));
  {
    const torch::NoGradGuard no_grad;
    model->at<LinearImpl>(3).S.fill_(std::nan(""));
  }
  std::map<std::string, at::Tensor> before;
  for (const auto& item : model->named_parameters()) before[item.key()] = item.value().clone();
  EXPECT_ANY_THROW(convert(*model, "phm(4)"));
  const auto after = model->named_parameters();
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, value] : before) {
    ASSERT_TRUE(after.contains(name)) << name;
    EXPECT_TRUE(torch::allclose(after[name], value, 0, 0, /*equal_nan=*/true)) << name;
  }
}

TEST_F(ConvertTest, ANormOfTheAlgebraIsRefusedWithAWayOut) {
  torch::nn::Sequential real(linear("real", 8, 8), WhiteningNorm(WhiteningNormOptions(8).n(1))),
      twin(linear("quaternion", 8, 8), WhiteningNorm(WhiteningNormOptions(8).n(4)));
  try {
    fill_nearest(*real, *twin);
    FAIL() << "no error";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("'1.weight' must have one shape in both models, got [1, 8] and [10, 2]"));
    EXPECT_THAT(error.what(), HasSubstr("train the twin from its own start"));
  }
}

}  // namespace
}  // namespace quatrain::nn
