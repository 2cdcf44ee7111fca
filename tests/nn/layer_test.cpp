// A layer that Quatrain does not have is saved, loaded, counted, factorized, converted and decayed as Linear
// is.
#include "quatrain/nn/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

#include "nn/reference.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/nn.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "temporary_folder.h"

namespace quatrain::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct CellOptions : MapOptions<CellOptions> {
  explicit CellOptions(int64_t width) : width_(width) {}
  TORCH_ARG(int64_t, width);
};

/// tanh(scale (H_input x + H_state h)): two weights, and a parameter that is called S but is none.
class CellImpl : public HypercomplexModule<CellImpl> {
 public:
  explicit CellImpl(CellOptions options) : options(options) { CellImpl::reset(); }

  void reset() override {
    WeightOptions weight;
    weight.algebra = options.algebra();
    weight.in_features = weight.out_features = options.width();
    weight.suffix = "_input";
    input.make(*this, weight);
    weight.suffix = "_state";
    state.make(*this, weight);
    scale = register_parameter("S", torch::ones({}));
  }
  std::vector<HypercomplexWeight*> weights() override { return {&input, &state}; }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& h) {
    const auto of = [this](const HypercomplexWeight& weight, const at::Tensor& v) {
      const auto operands = weight.operands(is_training());
      return ops::linear(v, operands.S, {}, operands.product, options.way(), {}, operands.constant);
    };
    return torch::tanh(scale * (of(input, x) + of(state, h)));
  }

  CellOptions options;
  HypercomplexWeight input, state;
  at::Tensor scale;
};
TORCH_MODULE(Cell);

/// A model in which it stands beside layers of torch.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(const std::string& algebra) {
    cell = register_module("cell", Cell(CellOptions(16).algebra(algebra)));
    head = register_module("head", torch::nn::Linear(16, 2));
  }
  at::Tensor forward(const at::Tensor& x) { return head(cell(x, x)); }

  Cell cell{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

class NnLayer : public test::FolderTest {
 protected:
  void SetUp() override { torch::manual_seed(1); }

  std::string refusal(torch::nn::Module& module) {
    try {
      load_weights(module, path_);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "not refused";
  }

  std::filesystem::path path_ = folder_ / "model.safetensors";
};

TEST_F(NnLayer, ParametersAreRegisteredInTheLayer) {
  std::vector<std::string> names;
  const Net net("wkp(4)");
  for (const auto& item : net->named_parameters()) names.push_back(item.key());
  EXPECT_THAT(names, ElementsAre("cell.A_input", "cell.w_input", "cell.S_input", "cell.A_state",
                                 "cell.w_state", "cell.S_state", "cell.S", "head.weight", "head.bias"));
}

TEST_F(NnLayer, IsSavedWithItsAlgebra) {
  Net quaternion("quaternion");
  save_weights(*quaternion, path_);
  const auto metadata = read_safetensors(path_).metadata;
  EXPECT_EQ(metadata.at("algebra/cell"), "quaternion " + algebra::get("quaternion").hash());
  EXPECT_TRUE(metadata.contains("table/quaternion"));

  Net same("quaternion"), other("split_quaternion"), learned("phm(4)");
  load_weights(*same, path_);
  const at::Tensor x = torch::randn({3, 16});
  EXPECT_TRUE(torch::equal(same(x), quaternion(x)));
  const at::Tensor before = other(x).detach();
  EXPECT_THAT(refusal(*other), AllOf(HasSubstr("layer 'cell' was trained with the algebra quaternion "),
                                     HasSubstr("the model has split_quaternion ")));
  EXPECT_TRUE(torch::equal(other(x), before));
  EXPECT_THAT(refusal(*learned), HasSubstr("the model has phm(4)"));

  Safetensors file = read_safetensors(path_);
  file.metadata["algebra/cell"] = "quaternion " + algebra::get("split_quaternion").hash();
  write_safetensors(path_, file.tensors, file.metadata);
  EXPECT_THAT(refusal(*same), HasSubstr(algebra::get("quaternion").hash())) << "another table";
}

TEST_F(NnLayer, ArchivesTellTheAlgebra) {
  Net quaternion("quaternion"), same("quaternion"), other("split_quaternion"), learned("phm(4)");
  const auto archive = [](const auto& module) {
    std::stringstream stream;
    torch::save(module, stream);
    return stream.str();
  };
  const auto load = [](auto& module, const std::string& bytes) {
    std::stringstream stream(bytes);
    torch::load(module, stream);
  };
  const std::string stored = archive(quaternion);
  load(same, stored);
  const at::Tensor x = torch::randn({3, 16});
  EXPECT_TRUE(torch::equal(same(x), quaternion(x)));

  const at::Tensor before = other(x).detach();
  const auto refuses = [&](const char* has) {
    return ThrowsMessage<c10::Error>(
        AllOf(HasSubstr("was trained with the algebra quaternion "), HasSubstr(has)));
  };
  EXPECT_THAT([&] { load(other, stored); }, refuses("the model has split_quaternion "));
  EXPECT_TRUE(torch::equal(other(x), before));
  EXPECT_THAT([&] { load(learned, stored); }, refuses("the model has phm(4)"));

  const Net started("phm(quaternion)");
  load(learned, archive(started));
  EXPECT_TRUE(torch::equal(learned(x), Net(started)(x))) << "where A started does not matter";

  Net smaller("phm(2)");
  EXPECT_THAT([&] { load(smaller, archive(started)); },
              ThrowsMessage<c10::Error>(
                  HasSubstr("'A_input' is Float [4, 4, 4] in the archive and Float [2, 2, 2]")));
  // Torch would take the bytes of doubles for floats.
  same->to(torch::kDouble);
  EXPECT_THAT([&] { load(quaternion, archive(same)); },
              ThrowsMessage<c10::Error>(HasSubstr("'S_input' is Double [4, 4, 4] in the archive and Float")));

  // What was written before archives told, or by a module that only has the parameters' names.
  struct Bare : torch::nn::Module {};
  const auto bare = std::make_shared<Bare>();
  Linear linear(LinearOptions(8, 8).algebra("quaternion"));
  for (const auto& item : linear->named_parameters())
    bare->register_parameter(item.key(), item.value().detach());
  Linear filled(LinearOptions(8, 8).algebra("quaternion"));
  load(filled, archive(bare));
  EXPECT_TRUE(torch::equal(filled->S, linear->S));
}

TEST_F(NnLayer, IsCounted) {
  const ParameterReport report = parameter_report(*Net("phm(4)"));
  EXPECT_EQ(report.weights, 2 * (16 * 16 / 4 + 64));
  EXPECT_EQ(report.total, report.weights + 1 + 16 * 2 + 2);
}

TEST_F(NnLayer, DecaysByRoleNotByName) {
  const Net net("wkp(4)");
  const auto decaying = decaying_parameters(*net);
  ASSERT_EQ(decaying.size(), 2u);
  EXPECT_TRUE(decaying[0].is_same(net->cell->input.S));
  EXPECT_TRUE(decaying[1].is_same(net->cell->state.S)) << "and not the scale, which is called S";
}

TEST_F(NnLayer, IsFactorized) {
  Net net("phm(2)");
  net->eval();
  const at::Tensor x = torch::randn({3, 16}), before = net(x);
  const FactorizeReport report = factorize(*net);
  ASSERT_EQ(report.learned, 2);
  EXPECT_EQ(report.sound, 2);
  EXPECT_EQ(report.layers[0].name, "cell.S_input");
  EXPECT_EQ(report.layers[1].name, "cell.S_state");
  net->cell->options.way(ops::Way::factored);
  EXPECT_TRUE(torch::allclose(net(x), before, 1e-4, 1e-5));

  const auto copy = std::dynamic_pointer_cast<CellImpl>(net->cell->clone());
  for (const HypercomplexWeight* weight : copy->weights()) EXPECT_TRUE(weight->has_factors());
  copy->to(torch::kDouble);
  for (const HypercomplexWeight* weight : copy->weights()) EXPECT_TRUE(weight->has_factors());

  save_weights(*Net("phm(2)"), path_);
  load_weights(*net, path_);
  EXPECT_FALSE(net->cell->input.has_factors()) << "those of the weights before";
  net->cell->options.way(ops::Way::automatic);
  Net again("phm(2)");
  load_weights(*again, path_);
  EXPECT_TRUE(torch::allclose(net(x), again(x), 1e-5, 1e-6));
}

TEST_F(NnLayer, ForgetsWhatWasPrepared) {
  const torch::NoGradGuard no_grad;
  Net net("quaternion");
  net->cell->options.way(ops::Way::materialised);
  net->eval();
  const at::Tensor x = torch::randn({3, 16});
  const int64_t before = ops::prepared_size().weights;
  const std::vector<std::function<void()>> changes{[&] { net->train(); },
                                                   [&] { net->to(torch::kDouble), net->to(torch::kFloat); },
                                                   [&] {
                                                     save_weights(*Net("quaternion"), path_);
                                                     load_weights(*net, path_);
                                                   }};
  for (const auto& change : changes) {
    net->eval();
    net(x);
    ASSERT_EQ(ops::prepared_size().weights, before + 2) << "nothing was kept, so nothing is tested";
    change();
    EXPECT_EQ(ops::prepared_size().weights, before);
  }
}

TEST_F(NnLayer, IsConverted) {
  Net quaternion("quaternion"), net("real");
  {
    const torch::NoGradGuard no_grad;
    net->cell->input.S[0].copy_(quaternion->cell->input.matrix());
    net->cell->state.S[0].copy_(quaternion->cell->state.matrix());
    net->cell->scale.fill_(0.5);
  }
  net->cell->input.S.set_requires_grad(false);
  net->eval();
  const at::Tensor x = torch::randn({3, 16}), before = net(x);
  const ConversionReport report = convert(*net, "quaternion");
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(report.layers[0].name, "cell.S_input");
  EXPECT_EQ(report.layers[1].name, "cell.S_state");
  EXPECT_EQ(report.converted(), 2) << "torch's own layer is not in a Sequential";
  for (int i = 0; i < 2; ++i) EXPECT_LT(*report.layers[i].error, 1e-6);
  EXPECT_EQ(net->cell->algebra().text(), "quaternion");
  EXPECT_EQ(net->cell->input.S.sizes(), (at::IntArrayRef{4, 4, 4}));
  EXPECT_TRUE(torch::allclose(net(x), before, 1e-4, 1e-6));
  EXPECT_FALSE(net->cell->is_training());
  EXPECT_FALSE(net->cell->input.S.requires_grad());
  EXPECT_TRUE(net->cell->state.S.requires_grad());
  EXPECT_EQ(parameter_report(*net).total, report.after);
  save_weights(*net, path_);
  load_weights(*quaternion, path_);

  EXPECT_THAT(convert(*net, "complex").layers[0].skipped, HasSubstr("is hypercomplex already (quaternion)"));
  EXPECT_THAT(convert(*Net("real"), "phm(5)").layers[0].skipped, HasSubstr("n = 5 does not divide 16"));
  Net fresh("real");
  EXPECT_EQ(convert(*fresh, ConvertOptions("phm(4)").fresh(true)).converted(), 2);
  EXPECT_TRUE(fresh->cell->input.A.defined());
}

TEST_F(NnLayer, IsFilledFromItsTwin) {
  Net real("real"), twin("phm(4)"), copy("phm(4)");
  const ConversionReport report = fill_nearest(*real, *twin);
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_GT(*report.layers[0].error, 0.1);
  EXPECT_NEAR(*report.layers[0].error,
              test::relative_error(twin->cell->input.matrix(), real->cell->input.matrix()), 1e-5);
  fill_nearest(*twin, *copy);
  const at::Tensor x = torch::randn({3, 16});
  EXPECT_TRUE(torch::equal(copy(x), twin(x)));
}

TEST_F(NnLayer, OptionsOfItsOwnTakeTheSharedOnes) {
  const auto shared = LinearOptions(8, 8).algebra("phm(4)").bias(false).way(ops::Way::mixed);
  const auto cell = CellOptions(16).like(shared);
  EXPECT_EQ(cell.width(), 16);
  EXPECT_EQ(cell.algebra().text(), "phm(4)");
  EXPECT_FALSE(cell.bias());
  EXPECT_EQ(cell.way(), ops::Way::mixed);
}

// As torch's do: arguments with defaults may be left out.
TEST(Layer, StandsInASequential) {
  const at::Tensor x = torch::ones({2, 3, 8}), rows = torch::ones({2, 8}),
                   words = torch::ones({2, 3}, torch::kLong);
  const auto sizes = [](torch::nn::Sequential model, const at::Tensor& input) {
    return model->forward(input).sizes().vec();
  };
  EXPECT_EQ(sizes(torch::nn::Sequential(TransformerEncoderLayer(8, 2), Linear(8, 4)), x),
            (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(sizes(torch::nn::Sequential(
                      TransformerEncoder(TransformerEncoderOptions(TransformerEncoderLayerOptions(8, 2), 2))),
                  x),
            x.sizes().vec());
  EXPECT_EQ(sizes(torch::nn::Sequential(GRUCell(8, 8), RNNCell(8, 4)), rows), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(sizes(torch::nn::Sequential(models::TextClassifier(
                      models::TextClassifierOptions(20, 5).width(16).heads(2).feed_forward(32).layers(1))),
                  words),
            (std::vector<int64_t>{2, 5}));
  torch::nn::AnyModule lstm(LSTM(8, 8)), gru(GRU(8, 8)), cell(LSTMCell(8, 8)),
      attention(MultiheadAttention(8, 2)), decoder(TransformerDecoderLayer(8, 2));
  using State = std::tuple<at::Tensor, at::Tensor>;
  EXPECT_EQ((std::get<0>(lstm.forward<std::tuple<at::Tensor, State>>(x)).sizes()), x.sizes());
  EXPECT_EQ(std::get<0>(gru.forward<State>(x)).sizes(), x.sizes());
  EXPECT_EQ(std::get<0>(cell.forward<State>(rows)).sizes(), rows.sizes());
  EXPECT_EQ(std::get<0>(attention.forward<State>(x, x, x)).sizes(), x.sizes());
  EXPECT_EQ(decoder.forward(x, x).sizes(), x.sizes());
}

}  // namespace
}  // namespace quatrain::nn
