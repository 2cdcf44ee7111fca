#include "quatrain/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/reference.h"

namespace quatrain {
namespace {

using test::linear_reference;
using test::relative_error;

nn::MultiheadAttentionOptions options(const char* algebra, int64_t width = 48, int64_t heads = 2) {
  return nn::MultiheadAttentionOptions(width, heads).algebra(algebra);
}

/// The layer's result and weights by the literal loops, from its own linear maps written out.
std::pair<at::Tensor, at::Tensor> reference(const nn::MultiheadAttentionImpl& layer, const at::Tensor& x,
                                            const at::Tensor& memory, const std::vector<int64_t>& keys) {
  const int64_t n = layer.options.algebra().n, heads = layer.options.heads();
  const bool componentwise = layer.kind() == nn::AttentionKind::componentwise;
  const at::Tensor table = componentwise ? test::structure_of(*layer.output) : at::Tensor();
  std::vector<at::Tensor> weights, mixed;
  for (int64_t b = 0; b < x.size(0); ++b) {
    auto [w, y] = test::attention_reference(
        linear_reference(*layer.query, x[b]), linear_reference(*layer.key, memory[b]),
        linear_reference(*layer.value, memory[b]), table, n, heads, keys[static_cast<size_t>(b)]);
    weights.push_back(w);
    mixed.push_back(y);
  }
  return {linear_reference(*layer.output, torch::stack(mixed)), torch::stack(weights)};
}

at::Tensor padding_after(const std::vector<int64_t>& keys, int64_t length) {
  return torch::arange(length).unsqueeze(0) >= torch::tensor(keys).unsqueeze(1);
}

TEST(NnAttention, EqualsTheLiteralLoops) {
  torch::manual_seed(0);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : {"real", "complex", "quaternion", "octonion", "dual", "clifford(2,1)", "phm(4)"})
    for (const auto kind : {nn::AttentionKind::automatic, nn::AttentionKind::real}) {
      nn::MultiheadAttention layer(options(algebra, 32).attention(kind));
      const at::Tensor x = torch::randn({3, 5, 32}), memory = torch::randn({3, 7, 32});
      const std::vector<int64_t> keys{7, 3, 1};
      const at::Tensor padding = padding_after(keys, 7);
      const auto [expected, expected_weights] = reference(*layer, x, memory, keys);
      const auto [fast, none] = layer->forward(x, memory, memory, padding);
      EXPECT_LT(relative_error(fast, expected), 1e-12) << algebra << " " << nn::name(kind);
      EXPECT_FALSE(none.defined());
      const auto [slow, weights] = layer->forward(x, memory, memory, padding, /*need_weights=*/true);
      EXPECT_LT(relative_error(slow, expected), 1e-12) << algebra << " " << nn::name(kind);
      EXPECT_LT(relative_error(weights, expected_weights), 1e-12);
      EXPECT_TRUE(torch::allclose(weights.sum(-1), torch::ones_like(weights.sum(-1))));

      const auto [whole, whole_weights] = reference(*layer, x, memory, {7, 7, 7});
      EXPECT_LT(relative_error(std::get<0>(layer->forward(x, memory, memory)), whole), 1e-12);
    }
}

// QNLP (4) written out: the Hamilton product of all pairs of quaternions, one softmax a component.
TEST(NnAttention, QuaternionScoresAreHamiltonProducts) {
  torch::manual_seed(1);
  const test::DefaultDtype guard(torch::kDouble);
  const int64_t L = 4, m = 3;
  nn::MultiheadAttention layer(options("quaternion", 4 * m, 1));
  const at::Tensor x = torch::randn({1, L, 4 * m});
  const auto parts = [&](nn::Linear linear) { return linear->forward(x)[0].split(m, -1); };
  const auto q = parts(layer->query), k = parts(layer->key), v = parts(layer->value);
  const auto dot = [&](int i, int j) { return torch::matmul(q[i], k[j].t()); };
  const std::vector<at::Tensor> scores{
      dot(0, 0) - dot(1, 1) - dot(2, 2) - dot(3, 3), dot(0, 1) + dot(1, 0) + dot(2, 3) - dot(3, 2),
      dot(0, 2) - dot(1, 3) + dot(2, 0) + dot(3, 1), dot(0, 3) + dot(1, 2) - dot(2, 1) + dot(3, 0)};
  std::vector<at::Tensor> mixed;
  for (int c = 0; c < 4; ++c)
    mixed.push_back(torch::matmul((scores[static_cast<size_t>(c)] / std::sqrt(4.0 * m)).softmax(-1), v[c]));
  const at::Tensor expected = layer->output(torch::cat(mixed, -1));
  EXPECT_LT(relative_error(layer->self_attention(x)[0], expected), 1e-12);
}

TEST(NnAttention, TakesInputWithoutABatch) {
  for (const bool packed : {false, true}) {
    nn::MultiheadAttention layer(options("quaternion").packed(packed));
    const auto x = torch::randn({2, 5, 48}), one = x[1];
    const auto padding = torch::zeros({2, 5}, torch::kBool);
    padding[1][4] = true;
    const auto [whole, weights] = layer->forward(x, x, x, padding, true);
    const auto [alone, own] = layer->forward(one, one, one, padding[1], true);
    EXPECT_TRUE(torch::allclose(alone, whole[1], 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(own, weights[1], 1e-5, 1e-6));
  }
}

TEST(NnAttention, NoKeyGivesZerosBeforeTheOutput) {
  torch::manual_seed(2);
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const bool need_weights : {false, true}) {
      nn::MultiheadAttention layer(options(algebra));
      {
        const torch::NoGradGuard no_grad;
        layer->output->bias.normal_();
      }
      at::Tensor x = torch::randn({2, 5, 48}).requires_grad_();
      const auto [y, weights] = layer->forward(x, x, x, padding_after({5, 0}, 5), need_weights);
      EXPECT_TRUE(torch::allclose(y[1], layer->output->bias.expand({5, 48})));
      if (need_weights) {
        EXPECT_EQ(weights[1].abs().sum().item<float>(), 0);
      }
      y.square().sum().backward();
      EXPECT_TRUE(x.grad().isfinite().all().item<bool>()) << algebra;
      for (const auto& item : layer->named_parameters())
        EXPECT_TRUE(item->grad().isfinite().all().item<bool>()) << algebra << " " << item.key();
    }
}

/// A packed layer with the weights of a separate one.
nn::MultiheadAttention packed_twin(const nn::MultiheadAttention& separate, nn::HeadSplit split) {
  nn::MultiheadAttention packed(nn::MultiheadAttentionOptions(separate->options).packed(true).split(split));
  const torch::NoGradGuard no_grad;
  const int64_t n = separate->options.algebra().n, width = separate->options.width();
  const auto of_three = [&](auto get) {
    return std::vector<at::Tensor>{get(separate->query), get(separate->key), get(separate->value)};
  };
  packed->packed->S.copy_(torch::cat(of_three([](const nn::Linear& l) { return l->S; }), 1));
  packed->packed->bias.copy_(torch::stack(of_three([&](const nn::Linear& l) {
                                            return l->bias.view({n, width / n});
                                          }),
                                          1)
                                 .flatten());
  packed->output->S.copy_(separate->output->S);
  packed->output->bias.copy_(separate->output->bias);
  return packed;
}

TEST(NnAttention, PackedProjectionIsSplitInsideComponents) {
  torch::manual_seed(3);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : {"real", "quaternion", "octonion"}) {
    nn::MultiheadAttention separate(options(algebra));
    {
      const torch::NoGradGuard no_grad;
      for (const at::Tensor& parameter : separate->parameters()) parameter.normal_(0, 0.2);
    }
    nn::MultiheadAttention packed = packed_twin(separate, nn::HeadSplit::inside);
    const at::Tensor x = torch::randn({2, 5, 48});
    EXPECT_LT(relative_error(packed->self_attention(x), separate->self_attention(x)), 1e-12) << algebra;
    EXPECT_THROW(packed->forward(x, x + 1, x + 1), c10::Error);
  }
}

TEST(NnAttention, PrintedSplitIsAPlainSplitOfTheLastAxis) {
  torch::manual_seed(4);
  const test::DefaultDtype guard(torch::kDouble);
  for (const bool packed : {false, true}) {
    nn::MultiheadAttention layer(options("quaternion").packed(packed).split(nn::HeadSplit::printed));
    EXPECT_EQ(layer->kind(), nn::AttentionKind::real);
    const at::Tensor x = torch::randn({2, 5, 48});
    std::vector<at::Tensor> qkv =
        packed ? layer->packed(x).chunk(3, -1)
               : std::vector<at::Tensor>{layer->query(x), layer->key(x), layer->value(x)};
    for (at::Tensor& t : qkv) t = t.view({2, 5, 2, 24}).transpose(1, 2);
    const at::Tensor mixed = torch::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
    EXPECT_LT(
        relative_error(layer->self_attention(x), layer->output(mixed.transpose(1, 2).reshape({2, 5, 48}))),
        1e-12);
  }
}

TEST(NnAttention, DropoutActsOnTheWeightsInTrainingOnly) {
  torch::manual_seed(5);
  for (const char* algebra : {"real", "quaternion"}) {
    const at::Tensor x = torch::randn({2, 5, 48});
    nn::MultiheadAttention layer(options(algebra).dropout(0.5));
    const at::Tensor dropped = layer->self_attention(x);
    EXPECT_FALSE(torch::allclose(dropped, layer->self_attention(x)));
    layer->eval();
    EXPECT_TRUE(torch::equal(layer->self_attention(x), layer->self_attention(x)));
    // The mean over many draws is the result without dropout.
    const at::Tensor expected = layer->self_attention(x);
    layer->train();
    const torch::NoGradGuard no_grad;
    at::Tensor sum = torch::zeros_like(expected);
    for (int draw = 0; draw < 400; ++draw) sum += layer->self_attention(x);
    EXPECT_LT(relative_error(sum / 400, expected), 0.15) << algebra;
  }
}

TEST(NnAttention, CausalRowsAreThoseOfShorterTexts) {
  torch::manual_seed(6);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    nn::MultiheadAttention layer(options(algebra));
    const at::Tensor x = torch::randn({2, 6, 48}), padding = padding_after({6, 2}, 6);
    const at::Tensor y = layer->self_attention(x, padding, {}, /*causal=*/true);
    const at::Tensor lower = torch::ones({6, 6}, torch::kBool).tril();
    EXPECT_LT(relative_error(layer->self_attention(x, padding, lower), y), 1e-12);
    EXPECT_LT(
        relative_error(std::get<0>(layer->forward(x, x, x, padding, /*need_weights=*/true, {}, true)), y),
        1e-12);
    for (int64_t l = 0; l < 6; ++l) {
      const at::Tensor text = x.narrow(1, 0, l + 1);
      const at::Tensor last = layer->self_attention(text, padding.narrow(1, 0, l + 1)).select(1, l);
      EXPECT_LT(relative_error(y.select(1, l), last), 1e-12) << algebra << " " << l;
    }
    // What is added to the scores: the lower triangle again.
    const at::Tensor added =
        torch::zeros({6, 6}).masked_fill(~lower, -std::numeric_limits<double>::infinity());
    EXPECT_LT(relative_error(std::get<0>(layer->forward(x, x, x, padding, false, added)), y), 1e-12);
  }
}

// What a decoder does: words one by one and in chunks over a cache, and a memory that is projected once.
TEST(NnAttention, ProjectingApartFromAttending) {
  torch::manual_seed(7);
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"real", "quaternion", "octonion", "phm(4)"})
    for (const bool packed : {false, true})
      for (const auto split : {nn::HeadSplit::inside, nn::HeadSplit::printed}) {
        SCOPED_TRACE(std::string(algebra) + (packed ? ", packed, " : ", ") + nn::name(split));
        nn::MultiheadAttention layer(options(algebra, 32).packed(packed).split(split));
        const int64_t n = split == nn::HeadSplit::inside ? layer->options.algebra().n : 1;
        const at::Tensor x = torch::randn({3, 9, 32}), padding = padding_after({9, 5, 1}, 9);
        const at::Tensor whole = layer->self_attention(x, padding, {}, /*causal=*/true);
        at::Tensor keys = torch::full({3, 12, n, 2, 16 / n}, std::nan("")), values = keys.clone();
        for (int64_t t = 0, count = 1; t < 9; t += count, count = t < 3 ? 1 : 3) {
          const auto [Q, K, V] = layer->project(x.narrow(1, t, count));
          keys.narrow(1, t, count).copy_(K);
          values.narrow(1, t, count).copy_(V);
          const auto [y, none] =
              layer->attend(Q, keys.narrow(1, 0, t + count), values.narrow(1, 0, t + count),
                            {.padding = padding.narrow(1, 0, t + count), .causal = true, .offset = t});
          EXPECT_LT(relative_error(y, whole.narrow(1, t, count)), 1e-5) << t;
          EXPECT_FALSE(none.defined());
        }
        if (packed) {
          EXPECT_THROW(layer->project_query(x), c10::Error);
          EXPECT_THROW(layer->project_key_value(x, x), c10::Error);
          continue;
        }
        const at::Tensor memory = torch::randn({3, 4, 32});
        const auto [K, V] = layer->project_key_value(memory, memory);
        const auto [y, weights] = layer->attend(layer->project_query(x), K, V, {}, /*need_weights=*/true);
        const auto [expected, expected_weights] = layer->forward(x, memory, memory, {}, true);
        EXPECT_TRUE(torch::equal(y, expected));
        EXPECT_TRUE(torch::equal(weights, expected_weights));
      }
}

// The algebra and dropout of `how` are the layer's; scale and order are the caller's.
TEST(NnAttention, AttendingHasTheLayersAlgebraAndDropout) {
  torch::manual_seed(8);
  nn::MultiheadAttention layer(options("quaternion").dropout(0.5));
  layer->eval();
  const at::Tensor x = torch::randn({2, 5, 48});
  const auto [Q, K, V] = layer->project(x);
  const auto with = [&](const ops::AttentionOptions& how) {
    return std::get<0>(layer->attend(Q, K, V, how));
  };
  EXPECT_TRUE(torch::equal(with({.algebra = "octonion", .dropout = 1}), layer->self_attention(x)));
  EXPECT_FALSE(torch::allclose(with({.scale = 1}), layer->self_attention(x)));
  EXPECT_FALSE(torch::allclose(with({.order = ops::ProductOrder::key_query}), layer->self_attention(x)));
}

TEST(NnAttention, AutomaticFollowsThePapers) {
  EXPECT_EQ(nn::MultiheadAttention(options("quaternion"))->kind(), nn::AttentionKind::componentwise);
  EXPECT_EQ(nn::MultiheadAttention(options("phm(4)"))->kind(), nn::AttentionKind::real);
  EXPECT_EQ(nn::MultiheadAttention(options("real"))->kind(), nn::AttentionKind::real);
}

TEST(NnAttention, RefusesWhatHasNoMeaning) {
  using testing::HasSubstr;
  const auto message = [](const nn::MultiheadAttentionOptions& o) -> std::string {
    try {
      nn::MultiheadAttention layer(o);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const auto componentwise = nn::AttentionKind::componentwise;
  EXPECT_THAT(message(options("phm(4)").attention(componentwise)), HasSubstr("take attention = real"));
  EXPECT_THAT(message(options("quaternion").attention(componentwise).split(nn::HeadSplit::printed)),
              HasSubstr("split = 'inside'"));
  EXPECT_EQ(message(options("quaternion", 100, 8)),
            "MultiheadAttention: width must be divisible by n * heads = 32, got 100 (nearest: 96, 128)");
  nn::MultiheadAttention layer(options("quaternion"));
  const at::Tensor x = torch::randn({2, 5, 48});
  EXPECT_THROW(layer->self_attention(torch::randn({2, 5, 40})), c10::Error);
  EXPECT_THROW(layer->self_attention(x, torch::zeros({2, 4}, torch::kBool)), c10::Error);
  EXPECT_THROW(layer->self_attention(x, torch::zeros({2, 5})), c10::Error);
}

}  // namespace
}  // namespace quatrain
