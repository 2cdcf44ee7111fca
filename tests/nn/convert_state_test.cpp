#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "nn/layers.h"
#include "nn/reference.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/weights.h"
#include "temporary_folder.h"

namespace quatrain::nn {
namespace {

using test::expanded;
using test::of;
using test::relative_error;
using test::table_of;
using ::testing::HasSubstr;

class ConvertStateTest : public test::FolderTest {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

// A foreign model's tensors.
Safetensors foreign() {
  const auto tied = torch::randn({12, 8});
  Safetensors state;
  state.tensors = {
      {"embeddings.word.weight", torch::randn({20, 8})},
      {"block.0.fc.weight", expanded(table_of("quaternion"), torch::randn({4, 3, 2})).to(torch::kFloat)},
      {"block.0.fc.bias", torch::randn({12})},
      {"block.0.norm.weight", torch::randn({12})},
      {"block.0.conv.weight", torch::randn({4, 4, 3})},
      {"block.1.fc.weight", torch::randn({8, 8}).to(torch::kBFloat16)},
      {"a.weight", tied},
      {"b.weight", tied.clone()},
      {"wte.weight", torch::randn({16, 8})},
      {"zero.weight", torch::zeros({8, 4})},
      {"other_zero.weight", torch::zeros({8, 4})},
      {"counts.weight", torch::ones({4, 4}, torch::kLong)},
      {"head.weight", torch::randn({10, 8})},
      {"loose", torch::randn({8, 8})}};
  state.metadata = {{"format", "pt"}};
  return state;
}

TEST_F(ConvertStateTest, LinearLayersOfForeignFilesAreFound) {
  Safetensors state = foreign();
  const Safetensors before = state;
  const ConversionReport report = convert_state(state, "quaternion");
  EXPECT_LT(of(report, "block.0.fc").error.value(), 1e-6);
  EXPECT_EQ(of(report, "block.0.fc").before, 12 * 8 + 12);
  EXPECT_EQ(of(report, "block.0.fc").after, 12 * 8 / 4 + 12);
  EXPECT_EQ(of(report, "embeddings.word").skipped, "its name looks like an embedding's");
  EXPECT_EQ(of(report, "wte").skipped, "its name looks like an embedding's");
  EXPECT_EQ(of(report, "a").skipped, "its weight is tied to b.weight");
  EXPECT_EQ(of(report, "b").skipped, "its weight is tied to a.weight");
  EXPECT_EQ(of(report, "zero").skipped, "");
  EXPECT_EQ(of(report, "head").skipped, "n = 4 does not divide 10");
  EXPECT_THAT(of(report, "block.0.conv").skipped, testing::HasSubstr("is a convolution"));
  EXPECT_EQ(report.layers.size(), 10u);
  EXPECT_EQ(report.converted(), 4);

  const at::Tensor* S = state.find("block.0.fc.S");
  ASSERT_NE(S, nullptr);
  EXPECT_LT(relative_error(expanded(table_of("quaternion"), *S), *before.find("block.0.fc.weight")), 1e-6);
  EXPECT_EQ(state.find("block.0.fc.weight"), nullptr);
  EXPECT_EQ(state.find("block.0.fc.A"), nullptr);
  EXPECT_NE(state.find("block.0.fc.bias"), nullptr);
  EXPECT_EQ(state.find("block.1.fc.S")->scalar_type(), torch::kBFloat16);
  EXPECT_EQ(state.metadata.at("algebra/block.0.fc"), "quaternion " + algebra::get("quaternion").hash());
  EXPECT_TRUE(state.metadata.contains("table/quaternion"));
  EXPECT_EQ(state.metadata.at("format"), "pt");
  for (const char* name : {"embeddings.word.weight", "block.0.norm.weight", "block.0.conv.weight", "a.weight",
                           "b.weight", "counts.weight", "head.weight", "loose"})
    EXPECT_NE(state.find(name), nullptr) << name;
}

TEST_F(ConvertStateTest, LearnedAlgebrasTravelWithTheLayer) {
  for (const std::string algebra : {"phm(4)", "wkp(4)"}) {
    Safetensors state = foreign();
    const ConversionReport report = convert_state(state, ConvertStateOptions(AlgebraSpec(algebra)));
    EXPECT_LT(of(report, "block.0.fc").error.value(), 1e-6);
    EXPECT_EQ(state.find("block.0.fc.A")->sizes(), (std::vector<int64_t>{4, 4, 4}));
    EXPECT_EQ(state.find("block.0.fc.w") != nullptr, algebra == "wkp(4)");
    EXPECT_EQ(state.metadata.at("algebra/block.0.fc"), algebra);
    EXPECT_FALSE(state.metadata.contains("table/quaternion"));
    // The file loads into a layer.
    torch::nn::Module model;
    model.register_module("fc", Linear(LinearOptions(8, 12).algebra(algebra)));
    Safetensors part;
    for (const auto& [name, tensor] : state.tensors)
      if (name.starts_with("block.0.fc")) part.tensors.emplace_back(name.substr(8), tensor);
    part.metadata = {{"algebra/fc", algebra}};
    write_safetensors(folder_ / "part.safetensors", part.tensors, part.metadata);
    load_weights(model, folder_ / "part.safetensors");
  }
}

TEST_F(ConvertStateTest, WhereReplacesTheRuleOfNames) {
  Safetensors state = foreign();
  const ConversionReport report = convert_state(
      state, ConvertStateOptions("quaternion").where([](const std::string& name) { return name == "wte"; }));
  EXPECT_EQ(report.converted(), 1);
  EXPECT_EQ(of(report, "wte").skipped, "");
  EXPECT_EQ(of(report, "block.0.fc").skipped, "excluded by where");
}

models::TextClassifier classifier(const std::string& algebra, bool packed) {
  models::TextClassifier model(models::TextClassifierOptions(20, 3)
                                   .width(16)
                                   .heads(2)
                                   .feed_forward(32)
                                   .layers(2)
                                   .packed(packed)
                                   .algebra(algebra)
                                   .attention(AttentionKind::real));
  model->eval();
  return model;
}

// Our own files: the heads' channels move, and the result loads into a model over the algebra.
TEST_F(ConvertStateTest, OurOwnModelsComputeTheSame) {
  const auto tokens = torch::randint(1, 20, {4, 7}, torch::kLong);
  for (const bool packed : {false, true}) {
    auto source = classifier("quaternion", packed), real = classifier("real", packed);
    for (const auto& item : source->named_parameters())
      if (item.key().ends_with("bias")) item.value().data().normal_();
    fill_nearest(*source, *real);
    const auto expected = source->forward(tokens);
    save_weights(*real, folder_ / "real.safetensors");
    for (const char* algebra : {"quaternion", "phm(4)"}) {
      SCOPED_TRACE(algebra);
      Safetensors state = read_safetensors(folder_ / "real.safetensors");
      const ConversionReport report = convert_state(state, ConvertStateOptions(algebra).heads(2));
      EXPECT_EQ(report.converted(), packed ? 8 : 12);
      EXPECT_EQ(of(report, "head").skipped, "n = 4 does not divide 3");
      EXPECT_EQ(of(report, "encoder.layers.0.feed_forward.linear1").in_features, 16);
      EXPECT_EQ(of(report, "encoder.layers.0.feed_forward.linear1").out_features, 32);
      auto twin = classifier(algebra, packed);
      write_safetensors(folder_ / "twin.safetensors", state.tensors, state.metadata);
      load_weights(*twin, folder_ / "twin.safetensors");
      EXPECT_LT(relative_error(twin->forward(tokens), expected), 1e-5);
      // Once more: nothing is left to convert.
      EXPECT_EQ(convert_state(state, ConvertStateOptions("complex").heads(2)).converted(), 0);
    }
  }
}

TEST_F(ConvertStateTest, BadOptionsGetASentence) {
  save_weights(*classifier("real", false), folder_ / "real.safetensors");
  const auto refusal = [&](const ConvertStateOptions& options) {
    Safetensors state = read_safetensors(folder_ / "real.safetensors");
    try {
      convert_state(state, options);
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(state.tensors.size(), read_safetensors(folder_ / "real.safetensors").tensors.size());
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(refusal("quaternion"), HasSubstr("'encoder.layers.0.attention' is attention"));
  EXPECT_THAT(refusal(ConvertStateOptions("quaternion").heads(3)),
              HasSubstr("divisible by n * heads = 12, got 16"));
  EXPECT_THAT(refusal("real"), HasSubstr("the algebra must be hypercomplex"));
}

}  // namespace
}  // namespace quatrain::nn
