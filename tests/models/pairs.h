#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ops/reference.h"

/// What models of pairs of texts have to do alike.
namespace quatrain::test {

constexpr int64_t kVocabulary = 20;

/// Texts of so many random words, filled up with 0 to (texts, width).
inline at::Tensor ids(const std::vector<int64_t>& lengths, int64_t width) {
  at::Tensor texts =
      torch::randint(1, kVocabulary, {static_cast<int64_t>(lengths.size()), width}, torch::kLong);
  for (size_t i = 0; i < lengths.size(); ++i) texts[static_cast<int64_t>(i)].slice(0, lengths[i]).zero_();
  return texts;
}

using Pair = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

/// `model` in float64 and eval mode.
inline void expect_padding_and_batch_change_nothing(const Pair& model) {
  const at::Tensor first = ids({3, 7, 5}, 7), second = ids({4, 2, 6}, 6);
  const at::Tensor expected = model(first, second);
  const at::Tensor longer = torch::constant_pad_nd(first, {0, 4}),
                   other = torch::constant_pad_nd(second, {0, 9});
  EXPECT_LT(relative_error(model(longer, second), expected), 1e-12) << "padding of the first";
  EXPECT_LT(relative_error(model(first, other), expected), 1e-12) << "padding of the second";
  for (int64_t b = 0; b < 3; ++b)
    EXPECT_LT(relative_error(model(first.slice(0, b, b + 1), second.slice(0, b, b + 1)),
                             expected.slice(0, b, b + 1)),
              1e-12)
        << "pair " << b << " alone";
  EXPECT_GT(relative_error(model(second, first), expected), 1e-3) << "the texts' places count";
}

/// The gradients of a model in float64, in a random direction of all parameters that are trained.
inline void expect_gradients(torch::nn::Module& model, const std::function<at::Tensor()>& logits_of) {
  const auto loss = [&] {
    torch::manual_seed(5);  // logits_of draws the same texts
    const at::Tensor logits = logits_of();
    return (logits * torch::arange(1, logits.numel() + 1, logits.options()).view_as(logits)).sum();
  };
  model.zero_grad();
  loss().backward();
  for (const auto& item : model.named_parameters()) {
    at::Tensor parameter = item.value();
    if (!parameter.requires_grad()) continue;
    ASSERT_TRUE(parameter.grad().defined()) << item.key();
    const at::Tensor direction = torch::randn_like(parameter);
    const double step = 1e-6;
    const torch::NoGradGuard no_grad;
    parameter.add_(direction, step);
    const double above = loss().item<double>();
    parameter.sub_(direction, 2 * step);
    const double below = loss().item<double>();
    parameter.add_(direction, step);
    const double expected = (above - below) / (2 * step);
    EXPECT_NEAR((parameter.grad() * direction).sum().item<double>(), expected,
                1e-5 * (1 + std::abs(expected)))
        << item.key();
  }
}

template <class Make>
void expect_words_are_fixed_unless_trained(const Make& make) {
  for (const bool train : {false, true}) {
    auto model = make(train);
    const at::Tensor& weight = model->words->embedding->weight;
    const at::Tensor vectors = torch::randn_like(weight);
    model->set_words(vectors);
    EXPECT_TRUE(torch::equal(weight.slice(0, 1), vectors.slice(0, 1)));
    EXPECT_EQ(weight[0].abs().sum().template item<double>(), 0) << "of padding";
    model(ids({3}, 4), ids({2}, 4)).sum().backward();
    EXPECT_EQ(weight.grad().defined(), train);
    if (train) {
      EXPECT_EQ(weight.grad()[0].abs().sum().template item<double>(), 0) << "padding learns nothing";
    }
    const auto copy = model->clone();
    EXPECT_EQ(copy->named_parameters()["words.embedding.weight"].requires_grad(), train);
    EXPECT_THROW(model->set_words(torch::randn({kVocabulary, 3})), c10::ValueError);
  }
}

template <class Make>
void expect_clones_saves_and_loads(const Make& make) {
  torch::manual_seed(3);
  auto model = make(), other = make();
  using Impl = typename decltype(model)::Impl;
  model->eval();
  other->eval();
  const at::Tensor first = ids({3, 5}, 5), second = ids({4, 2}, 4), expected = model(first, second);
  const auto copy = std::dynamic_pointer_cast<Impl>(model->clone());
  EXPECT_TRUE(torch::equal(copy->forward(first, second), expected));
  copy->to(torch::kDouble);
  EXPECT_LT(relative_error(copy->forward(first, second), expected), 1e-5);
  copy->to(torch::kBFloat16);
  EXPECT_LT(relative_error(copy->forward(first, second), expected), 0.1);
  EXPECT_TRUE(torch::equal(model(first, second), expected));

  other(first, second);  // fills the cache of prepared weights
  std::stringstream stream;
  torch::save(model, stream);
  torch::load(other, stream);
  EXPECT_TRUE(torch::equal(other(first, second), expected));
}

template <class Model>
void expect_refuses_what_is_no_pair(Model& model, const std::string& name) {
  const auto message = [&](const at::Tensor& first, const at::Tensor& second) -> std::string {
    try {
      model(first, second);
    } catch (const c10::ValueError& error) {
      return error.what_without_backtrace();
    }
    return "nothing";
  };
  const at::Tensor good = ids({3, 4}, 4);
  EXPECT_EQ(message(good, ids({3, 0}, 4)),
            name + ": text 1 of second has no word, only padding (0); leave such pairs out");
  EXPECT_EQ(message(ids({0, 1}, 4), good),
            name + ": text 0 of first has no word, only padding (0); leave such pairs out");
  EXPECT_EQ(message(good, ids({3}, 4)), name + ": first and second must have as many texts, got 2 and 1");
  for (const at::Tensor& bad : {good[0], good.to(torch::kFloat), good.slice(0, 0, 0)})
    EXPECT_NE(message(bad, good).find("first must be int64 (batch, length) with at least one text"),
              std::string::npos);
  EXPECT_THROW(model(good.slice(1, 0, 0), good), c10::ValueError) << "no place for a word";
}

}  // namespace quatrain::test
