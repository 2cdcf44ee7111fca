// Steps by kernels beside the layers' own steps, which are made of operators.

#include "nn/layer_steps.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "ops/linear/resolved.h"
#include "ops/reference.h"
#include "quatrain/nn/encoder.h"

namespace quatrain {
namespace {

using nn::AttentionCache;
using nn::LayerSteps;
using nn::TransformerDecoderLayer;
using nn::TransformerDecoderLayerOptions;
using test::relative_error;

constexpr int64_t kWidth = 48, kSlots = 5, kWords = 4, kSource = 6;

TransformerDecoderLayerOptions decoder_options() {
  return TransformerDecoderLayerOptions(kWidth, 2).feed_forward(96);
}

/// Nothing stays at the value at which it is drawn: norms, biases, alpha.
void disturb(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters())
    if (item.key().ends_with("bias") || item.key().find("norm") != std::string::npos ||
        item.key().ends_with("alpha"))
      item->add_(torch::randn_like(*item), 0.3);
}

/// Two sets of the same caches, one for each way.
struct Caches {
  std::vector<AttentionCache> self, cross;

  Caches(torch::nn::ModuleList layers, const at::Tensor& memory) {
    for (const auto& layer : *layers)
      if (auto* decoder = layer->as<nn::TransformerDecoderLayerImpl>()) {
        self.push_back(decoder->attention->make_cache(kSlots, kWords));
        const auto [keys, values] = decoder->cross_attention->project_key_value(memory, memory);
        cross.push_back({keys, values, {}, {}});
      } else {
        self.push_back(layer->as<nn::TransformerEncoderLayerImpl>()->attention->make_cache(kSlots, kWords));
      }
  }
  /// Rows see any slots, sentences of their own, and different numbers of their places.
  void see(int64_t rows, int64_t length, const at::Tensor& slots, const at::Tensor& sentences) {
    const auto ints = torch::TensorOptions(torch::kInt);
    for (AttentionCache& cache : self) {
      cache.table = slots.narrow(0, 0, rows).narrow(1, 0, length);
      cache.lengths = torch::full({rows}, length, ints);
    }
    for (AttentionCache& cache : cross) {
      cache.table = sentences.narrow(0, 0, rows).unsqueeze(1).repeat({1, kSource});
      cache.lengths = torch::arange(rows, ints) % kSource + 1;
    }
  }
};

/// Whether a processor multiplies a map on the engine. For real ones it may take ATen's products.
bool on_engine(const nn::Linear& map, int64_t rows) {
  const auto operands = map->operands(false);
  return ops::ResolvedLinear::of(operands.S, map->bias, operands.product, map->options.way(), rows)
      .has_value();
}
template <class Layer>
bool served(const Layer& layer, int64_t rows) {
  return on_engine(layer.feed_forward->linear1, rows) && on_engine(layer.attention->output, rows);
}

/// Words one after the other, for a number of rows that changes.
void compare(torch::nn::ModuleList layers, nn::LayerNorm norm) {
  const torch::NoGradGuard no_grad;
  disturb(*layers);
  layers->eval();
  const at::Tensor memory = torch::randn({2, kSource, kWidth});
  Caches kernels(layers, memory), operators(layers, memory);
  LayerSteps steps(layers, norm);
  const at::Tensor slots = torch::randint(kSlots, {kSlots, kWords}, torch::kInt),
                   sentences = torch::randint(2, {kSlots}, torch::kInt);
  // A word of every slot before the first step.
  for (size_t i = 0; i < kernels.self.size(); ++i)
    for (auto [a, b] : {std::pair{&kernels.self[i].keys, &operators.self[i].keys},
                        {&kernels.self[i].values, &operators.self[i].values}})
      b->copy_(a->normal_());
  for (int64_t place = 0; place < kWords; ++place) {
    const int64_t rows = place < 2 ? kSlots : 3;
    const at::Tensor x = torch::randn({rows, kWidth}), before = x.clone();
    kernels.see(rows, place + 1, slots, sentences);
    operators.see(rows, place + 1, slots, sentences);
    const at::Tensor y = steps(x, place, kernels.self, kernels.cross);
    EXPECT_EQ(steps.by_kernels(), kernels.cross.empty()
                                      ? served(*layers[0]->as<nn::TransformerEncoderLayerImpl>(), rows)
                                      : served(*layers[0]->as<nn::TransformerDecoderLayerImpl>(), rows));
    EXPECT_TRUE(torch::equal(x, before));
    at::Tensor expected = x;
    for (size_t i = 0; i < operators.self.size(); ++i)
      expected = operators.cross.empty() ? layers[i]->as<nn::TransformerEncoderLayerImpl>()->step(
                                               expected, place, operators.self[i])
                                         : layers[i]->as<nn::TransformerDecoderLayerImpl>()->step(
                                               expected, place, operators.self[i], operators.cross[i]);
    if (norm) expected = norm->forward(expected);
    ASSERT_LT(relative_error(y, expected), 2e-6) << "word " << place;
    for (size_t i = 0; i < operators.self.size(); ++i) {
      EXPECT_LT(relative_error(kernels.self[i].keys, operators.self[i].keys), 2e-6);
      EXPECT_LT(relative_error(kernels.self[i].values, operators.self[i].values), 2e-6);
    }
  }
}

void compare(const TransformerDecoderLayerOptions& options) {
  torch::manual_seed(3);
  torch::nn::ModuleList layers(TransformerDecoderLayer{options}, TransformerDecoderLayer{options});
  compare(layers, options.norm() == nn::NormStyle::pre ? nn::LayerNorm(kWidth) : nullptr);
}

TEST(LayerSteps, AlgebrasAndNorms) {
  for (const char* algebra : {"real", "complex", "quaternion", "phm(2)", "phm(4)", "wkp(4)", "phm(3)"})
    for (const auto norm : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi})
      for (const bool printed : {false, true}) {
        if (printed && norm == nn::NormStyle::pre) continue;
        SCOPED_TRACE(std::string(algebra) + " " + nn::name(norm) + (printed ? " printed" : ""));
        compare(decoder_options().algebra(algebra).norm(norm).printed(printed));
      }
}

TEST(LayerSteps, OtherOptions) {
  const auto quaternion = [] { return decoder_options().algebra("quaternion"); };
  for (const char* activation : {"identity", "relu", "tanh", "sigmoid", "gelu", "silu"}) {
    SCOPED_TRACE(activation);
    compare(quaternion().activation(activation));
  }
  for (const auto attention : {nn::AttentionKind::real, nn::AttentionKind::componentwise})
    for (const bool packed : {false, true}) {
      SCOPED_TRACE(std::string(nn::name(attention)) + (packed ? " packed" : ""));
      compare(quaternion().attention(attention).packed(packed));
    }
  for (const bool packed : {false, true}) {
    SCOPED_TRACE(packed ? "packed" : "three maps");
    compare(quaternion().attention(nn::AttentionKind::real).split(nn::HeadSplit::printed).packed(packed));
    compare(decoder_options().algebra("real").packed(packed));
  }
  compare(quaternion().scope(nn::Scope::partial));
  compare(quaternion().norm_per_component(true));
  for (const ops::Way way : {ops::Way::factored, ops::Way::mixed, ops::Way::materialised}) {
    SCOPED_TRACE(ops::name(way));
    compare(quaternion().way(way));
  }
}

TEST(LayerSteps, ACausalEncoder) {
  for (const auto norm : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi}) {
    SCOPED_TRACE(nn::name(norm));
    torch::manual_seed(5);
    const auto options =
        nn::TransformerEncoderLayerOptions(kWidth, 2).feed_forward(96).algebra("phm(4)").norm(norm);
    torch::nn::ModuleList layers(nn::TransformerEncoderLayer{options}, nn::TransformerEncoderLayer{options});
    compare(layers, norm == nn::NormStyle::pre ? nn::LayerNorm(kWidth) : nullptr);
  }
}

struct Autocast {
  Autocast() { at::autocast::set_autocast_enabled(at::kCPU, true); }
  ~Autocast() { at::autocast::set_autocast_enabled(at::kCPU, false); }
};

TEST(LayerSteps, OperatorsServeWhatKernelsDoNot) {
  torch::manual_seed(7);
  const auto options = decoder_options().algebra("quaternion");
  torch::nn::ModuleList layers(TransformerDecoderLayer{options}, TransformerDecoderLayer{options});
  const Autocast autocast;
  const torch::NoGradGuard no_grad;
  layers->eval();
  Caches caches(layers, torch::randn({2, kSource, kWidth}));
  for (AttentionCache& cache : caches.cross)
    cache.keys = cache.keys.to(at::kFloat), cache.values = cache.values.to(at::kFloat);
  caches.see(3, 1, torch::zeros({kSlots, kWords}, torch::kInt), torch::zeros({kSlots}, torch::kInt));
  LayerSteps steps(layers, nullptr);
  EXPECT_EQ(steps(torch::randn({3, kWidth}), 0, caches.self, caches.cross).size(0), 3);
  EXPECT_FALSE(steps.by_kernels());
}

// Where answers are to stand alone, neither the way nor a bit depends on how many rows there are.
TEST(LayerSteps, RowsThatStandAloneDoNotDependOnTheirNumber) {
  const torch::NoGradGuard no_grad;
  const ops::PlannedRowsGuard planned(static_cast<ops::PlannedRows>(32));
  for (const char* algebra : {"real", "quaternion", "phm(4)", "octonion"})
    for (const ops::Way way : {ops::Way::automatic, ops::Way::mixed, ops::Way::materialised}) {
      SCOPED_TRACE(std::string(algebra) + " " + ops::name(way));
      torch::manual_seed(9);
      const auto options =
          nn::TransformerEncoderLayerOptions(64, 2).feed_forward(96).algebra(algebra).way(way);
      torch::nn::ModuleList layers(nn::TransformerEncoderLayer{options});
      layers->eval();
      const at::Tensor x = torch::randn({40, 64});
      const auto step = [&](int64_t rows) {
        const auto ints = torch::TensorOptions(torch::kInt);
        std::vector<AttentionCache> caches{
            layers[0]->as<nn::TransformerEncoderLayerImpl>()->attention->make_cache(40, 1)};
        caches[0].table = torch::arange(rows, ints).unsqueeze(1);
        caches[0].lengths = torch::ones({rows}, ints);
        LayerSteps steps(layers, nullptr);
        const at::Tensor y = steps(x.narrow(0, 0, rows), 0, caches);
        return std::pair(y, steps.by_kernels());
      };
      const auto [all, by_kernels] = step(40);
      for (const int64_t rows : {1, 31, 32, 33}) {
        const auto [some, same] = step(rows);
        EXPECT_EQ(same, by_kernels) << rows;
        EXPECT_TRUE(torch::equal(some, all.narrow(0, 0, rows))) << rows;
      }
    }
}

TEST(LayerSteps, SeesWeightsThatAreWrittenOrMoved) {
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"quaternion", "phm(4)", "wkp(4)"}) {
    torch::manual_seed(11);
    const auto options = nn::TransformerEncoderLayerOptions(64, 2).feed_forward(96).algebra(algebra);
    torch::nn::ModuleList layers(nn::TransformerEncoderLayer{options});
    layers->eval();
    auto& layer = *layers[0]->as<nn::TransformerEncoderLayerImpl>();
    const auto ints = torch::TensorOptions(torch::kInt);
    std::vector<AttentionCache> caches{layer.attention->make_cache(3, 1)};
    caches[0].table = torch::arange(3, ints).unsqueeze(1), caches[0].lengths = torch::ones({3}, ints);
    const at::Tensor x = torch::randn({3, 64});
    LayerSteps steps(layers, nullptr);
    steps(x, 0, caches);
    for (auto& parameter : layer.parameters()) {
      parameter.mul_(1.5);
      EXPECT_LT(relative_error(steps(x, 0, caches), layer.step(x, 0, caches[0])), 2e-6) << algebra;
    }
    layers->to(torch::kDouble);
    for (auto& parameter : layer.parameters()) parameter.mul_(1.5);
    layers->to(torch::kFloat);
    EXPECT_LT(relative_error(steps(x, 0, caches), layer.step(x, 0, caches[0])), 2e-6) << algebra;
    EXPECT_TRUE(steps.by_kernels());
    // What no version tells.
    for (auto& parameter : layer.parameters()) parameter.set_requires_grad(false).data().mul_(1.5);
    layers->train();
    layers->eval();
    EXPECT_LT(relative_error(steps(x, 0, caches), layer.step(x, 0, caches[0])), 2e-6) << algebra;
  }
}

TEST(LayerSteps, RefusesPlacesAndRowsThatCachesLack) {
  const torch::NoGradGuard no_grad;
  torch::nn::ModuleList layers(
      nn::TransformerEncoderLayer{nn::TransformerEncoderLayerOptions(64, 2).algebra("quaternion")});
  layers->eval();
  const auto ints = torch::TensorOptions(torch::kInt);
  std::vector<AttentionCache> caches{
      layers[0]->as<nn::TransformerEncoderLayerImpl>()->attention->make_cache(3, 2)};
  caches[0].table = torch::zeros({4, 2}, ints), caches[0].lengths = torch::ones({4}, ints);
  LayerSteps steps(layers, nullptr);
  EXPECT_THROW(steps(torch::randn({3, 64}), 2, caches), c10::Error);
  EXPECT_THROW(steps(torch::randn({3, 64}), -1, caches), c10::Error);
  EXPECT_THROW(steps(torch::randn({4, 64}), 0, caches), c10::Error);
  EXPECT_THROW(steps(torch::randn({3, 64}), 1, caches), c10::Error) << "the table has four rows";
  caches[0].table = torch::zeros({3, 2}, ints), caches[0].lengths = torch::ones({3}, ints);
  EXPECT_NO_THROW(steps(torch::randn({3, 64}), 1, caches));
  EXPECT_THROW(steps(torch::randn({3, 32}), 1, caches), c10::Error);
  EXPECT_THROW(steps(torch::randn({3, 64}), 1, {}), c10::Error);
  EXPECT_THROW(steps(torch::randn({3, 64}), 1, caches, caches), c10::Error) << "an encoder has no memory";
}

}  // namespace
}  // namespace quatrain
