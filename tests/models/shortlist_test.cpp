// Searches whose output layer has a type of its own, or rows of some of the tokens alone.

#include "quatrain/models/shortlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "models/output_projection.h"
#include "models/translators.h"

namespace quatrain {
namespace {

using models::Ensemble, models::Seq2Seq, models::Shortlist;
using test::random_sources, test::Tokens, test::trained_like, test::translation;

constexpr int64_t kWords = 60;

// Each token brings a few others; nine tokens and the marks are everywhere.
std::shared_ptr<const Shortlist> some_words(int64_t vocabulary = kWords) {
  std::vector<Tokens> lists;
  for (int64_t token = 0; token < vocabulary; ++token)
    lists.push_back({token, (token * 7 + 3) % vocabulary, (token * 5 + 11) % vocabulary});
  return std::make_shared<Shortlist>(lists, Tokens{0, 1, 2, 3, 5, 12, 19, 26, 33, 40, 47, 54}, vocabulary);
}

std::shared_ptr<const Shortlist> all_words(int64_t vocabulary = kWords) {
  Tokens all(static_cast<size_t>(vocabulary));
  std::iota(all.begin(), all.end(), 0);
  return std::make_shared<Shortlist>(std::vector<Tokens>(static_cast<size_t>(vocabulary)), all, vocabulary);
}

// With the output layer that is asked for, so that tokens of all kinds are written.
Seq2Seq translator(models::OutputLayer output, int64_t width = 32, int64_t vocabulary = kWords,
                   const std::string& algebra = "quaternion", bool embedding_in_algebra = false) {
  Seq2Seq model(models::Seq2SeqOptions(vocabulary, vocabulary)
                    .width(width)
                    .heads(2)
                    .feed_forward(48)
                    .encoder_layers(2)
                    .decoder_layers(2)
                    .algebra(algebra)
                    .output(output)
                    .embedding_in_algebra(embedding_in_algebra)
                    .dropout(0));
  const torch::NoGradGuard no_grad;
  for (auto& p : model->target->parameters()) p.mul_(3);
  if (model->output) {
    for (auto& p : model->output->parameters()) p.mul_(2);
    model->output->bias.uniform_(-1, 1);
  }
  model->eval();
  return model;
}

models::TranslationOptions beam_of_three() {
  auto options = translation(3, 3, 1, models::LengthPenalty::power);
  options.batch = 16;
  return options;
}

TEST(Shortlist, HoldsEachTokenOnce) {
  const Shortlist list({{3, 1, 3}, {}, {5, 0}}, {4, 4, 1}, 6);
  EXPECT_EQ(list.sources(), 3);
  EXPECT_EQ(list.targets(), 6);
  EXPECT_THAT(list.of(0), testing::ElementsAre(1, 3));
  EXPECT_THAT(list.always(), testing::ElementsAre(1, 4));
  EXPECT_EQ(list.tokens({2, 0, 2}), (Tokens{0, 1, 3, 4, 5}));
  EXPECT_EQ(list.tokens({1}), (Tokens{1, 4}));
  EXPECT_THROW(Shortlist({{6}}, {}, 6), std::invalid_argument);
  EXPECT_THROW(Shortlist({{0}}, {-1}, 6), std::invalid_argument);
  EXPECT_THROW(list.tokens({3}), std::invalid_argument);
}

TEST(Shortlist, OfAllTokensChangesNothing) {
  torch::manual_seed(31);
  for (const auto output : {models::OutputLayer::tied, models::OutputLayer::real}) {
    Seq2Seq model = translator(output);
    model->to(at::kDouble);
    const auto sources = random_sources(9, kWords);
    std::vector<Tokens> prefixes(sources.size());
    prefixes[2] = {7, 9}, prefixes[4] = {50};
    for (const bool exact : {true, false}) {
      auto options = beam_of_three();
      options.exact = exact;
      options.search.no_repeat = 2;
      options.search.banned = {{8}, {9, 10}};
      const auto free = models::translate(model, sources, options, prefixes);
      options.shortlist = all_words();
      const auto listed = models::translate(model, sources, options, prefixes);
      for (size_t i = 0; i < sources.size(); ++i) {
        ASSERT_EQ(free[i].size(), listed[i].size());
        for (size_t k = 0; k < free[i].size(); ++k) {
          EXPECT_EQ(free[i][k].tokens, listed[i][k].tokens);
          EXPECT_NEAR(free[i][k].score, listed[i][k].score, 1e-12);
        }
      }
    }
  }
}

// The log-probability of targets by a model that gives all tokens outside the lists none.
TEST(Shortlist, NormalisesOverASentencesOwnTokens) {
  torch::manual_seed(32);
  Seq2Seq model = translator(models::OutputLayer::real), other = translator(models::OutputLayer::tied);
  model->to(at::kDouble), other->to(at::kDouble);
  const auto sources = random_sources(9, kWords);
  auto options = beam_of_three();
  options.shortlist = some_words();
  options.search.banned = {{5}, {59, 58}};
  const torch::NoGradGuard no_grad;
  for (const Ensemble& ensemble : {Ensemble(model), Ensemble({model, other})}) {
    const auto found = models::translate(ensemble, sources, options);
    for (size_t i = 0; i < sources.size(); ++i) {
      const Tokens list = options.shortlist->tokens(sources[i]);
      ASSERT_LT(list.size(), kWords);
      for (const auto& hypothesis : found[i]) {
        Tokens input{2}, following = hypothesis.tokens;
        input.insert(input.end(), following.begin(), following.end());
        following.push_back(3);
        at::Tensor sum;
        for (Seq2Seq one : ensemble.models) {
          const at::Tensor scores =
              one->forward(torch::tensor(sources[i]).unsqueeze(0), torch::tensor(input).unsqueeze(0))[0];
          const at::Tensor own = scores.index_select(1, torch::tensor(list)).softmax(1);
          sum = sum.defined() ? sum + own : own;
        }
        sum = (sum / static_cast<double>(ensemble.models.size())).log();
        for (size_t j = 0; j < following.size(); ++j) {
          const auto place = std::lower_bound(list.begin(), list.end(), following[j]);
          ASSERT_TRUE(place != list.end() && *place == following[j]) << following[j];
          EXPECT_NE(following[j], 5);
          EXPECT_NEAR(hypothesis.token_scores[j],
                      sum[static_cast<int64_t>(j)][place - list.begin()].item<double>(), 1e-10);
        }
      }
    }
  }
}

TEST(Shortlist, APrefixHasItsTokens) {
  torch::manual_seed(33);
  const Seq2Seq model = translator(models::OutputLayer::real);
  const Tokens source{4, 3};
  auto options = beam_of_three();
  options.shortlist = some_words();
  ASSERT_FALSE(std::ranges::binary_search(options.shortlist->tokens(source), 59));
  const auto found = models::translate(model, {source}, options, {{59, 4}});
  for (const auto& hypothesis : found[0]) {
    ASSERT_GE(hypothesis.tokens.size(), 2U);
    EXPECT_EQ(hypothesis.tokens[0], 59);
    EXPECT_EQ(hypothesis.tokens[1], 4);
  }
}

// A model that never writes what fills up its vocabulary: all ways to score find the same tokens.
TEST(Shortlist, AFilledVocabularyHasItsTokensAlone) {
  torch::manual_seed(38);
  constexpr int64_t kOdd = 61;
  const auto sources = random_sources(9, kOdd);
  for (const auto output :
       {models::OutputLayer::tied, models::OutputLayer::real, models::OutputLayer::algebra})
    for (const bool in_algebra : {true, false}) {
      if (!in_algebra && output != models::OutputLayer::algebra) continue;
      const Seq2Seq model = translator(output, 32, kOdd, "quaternion", in_algebra);
      auto options = beam_of_three();
      options.search.beam = 9;  // of three, the rounding of bfloat16 may decide which beginning is kept
      const auto expected = models::translate(model, sources, options);
      for (const auto projection : {models::Projection::float32, models::Projection::bfloat16})
        for (const bool exact : {true, false}) {
          options.projection = projection;
          options.exact = exact;
          if (output == models::OutputLayer::real) options.shortlist = all_words(kOdd);
          const auto found = models::translate(model, sources, options);
          std::vector<Tokens> targets;
          for (const auto& hypotheses : found) targets.push_back(hypotheses[0].tokens);
          const auto own = models::score_targets(model, sources, targets);
          for (size_t i = 0; i < sources.size(); ++i) {
            EXPECT_NEAR(found[i][0].score, expected[i][0].score,
                        projection == models::Projection::float32 ? 1e-4 : 0.1);
            for (const int64_t token : found[i][0].tokens) EXPECT_LT(token, kOdd);
            for (size_t j = 0; j < own[i].size(); ++j)
              EXPECT_NEAR(found[i][0].token_scores[j], own[i][j],
                          projection == models::Projection::float32 ? 1e-4 : 0.1);
          }
        }
    }
}

// Bit for bit, with lists and unions of many lengths.
TEST(Shortlist, ExactAnswersDoNotDependOnTheBatch) {
  constexpr int64_t kMany = 3000;
  std::vector<Tokens> lists;
  for (int64_t token = 0; token < kMany; ++token) {
    Tokens& list = lists.emplace_back();
    for (int64_t i = 0; i < 1 + token % 50; ++i) list.push_back((token * 31 + i * 57) % kMany);
  }
  const auto shortlist = std::make_shared<Shortlist>(lists, Tokens{0, 1, 2, 3}, kMany);
  for (const int64_t width : {32, 1024}) {
    torch::manual_seed(34);
    const Seq2Seq real = translator(models::OutputLayer::real, width, kMany),
                  tied = translator(models::OutputLayer::tied, width, kMany);
    auto sources = random_sources(13, kMany);
    for (const Ensemble& ensemble : {Ensemble(real), Ensemble(tied), Ensemble({real, tied})})
      for (const auto projection : {models::Projection::float32, models::Projection::bfloat16})
        for (const bool listed : {true, false}) {
          if (!listed && projection == models::Projection::float32) continue;  // as without either
          auto options = beam_of_three();
          options.projection = projection;
          if (listed) options.shortlist = shortlist;
          const auto together = models::translate(ensemble, sources, options);
          for (size_t i = 0; i < sources.size(); i += 3) {
            const auto alone = models::translate(ensemble, {sources[i]}, options)[0];
            ASSERT_EQ(alone.size(), together[i].size());
            for (size_t k = 0; k < alone.size(); ++k) {
              EXPECT_EQ(alone[k].tokens, together[i][k].tokens) << width << " " << i;
              EXPECT_EQ(alone[k].token_scores, together[i][k].token_scores) << width << " " << i;
            }
          }
        }
  }
}

// Sums of fewer scores than a vector has are made in another order, unless something stands behind them.
TEST(Shortlist, ListsOfAFewTokensAreAddedUpAlike) {
  torch::manual_seed(37);
  const Ensemble ensemble({translator(models::OutputLayer::real), translator(models::OutputLayer::tied)});
  std::vector<Tokens> lists(kWords, {4, 5, 6});
  for (int64_t token = 40; token < kWords; ++token) lists[50].push_back(token);
  auto options = beam_of_three();
  options.shortlist = std::make_shared<Shortlist>(lists, Tokens{}, kWords);
  const std::vector<Tokens> sources{{4, 3}, {7, 3}, {11, 12, 3}, {8, 8, 3}, {50, 3}};
  const auto together = models::translate(ensemble, sources, options);
  for (size_t i = 0; i + 1 < sources.size(); ++i)
    EXPECT_EQ(models::translate(ensemble, {sources[i]}, options)[0][0].token_scores,
              together[i][0].token_scores);
}

TEST(Shortlist, RefusesWhatItDoesNotFit) {
  const auto refusal = [](const Seq2Seq& model, models::TranslationOptions options) -> std::string {
    try {
      models::translate(model, {{4, 3}}, options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  auto options = beam_of_three();
  options.shortlist = some_words(59);
  EXPECT_THAT(refusal(translator(models::OutputLayer::real), options),
              testing::HasSubstr("must be for the model's vocabularies of 60 and 60 tokens"));
  options.shortlist = some_words();
  EXPECT_THAT(refusal(translator(models::OutputLayer::algebra), options),
              testing::HasSubstr("a shortlist takes rows of a real output layer"));
  options.search.beam = options.search.best = 61;
  EXPECT_THAT(refusal(translator(models::OutputLayer::real), options),
              testing::HasSubstr("beam must be at most the vocabulary's 60 tokens"));
}

TEST(Projection, BfloatIsCloseToFloat) {
  using models::OutputProjection, models::Projection;
  torch::manual_seed(35);
  const torch::NoGradGuard no_grad;
  for (const auto output :
       {models::OutputLayer::tied, models::OutputLayer::real, models::OutputLayer::algebra}) {
    const Seq2Seq model = translator(output, 64, 4400);
    const at::Tensor hidden = torch::randn({37, 64});
    for (const bool exact : {true, false}) {
      const at::Tensor exactly = OutputProjection(model, Projection::float32, exact)(hidden);
      const OutputProjection rounded(model, Projection::bfloat16, exact);
      const at::Tensor scores = rounded(hidden);
      ASSERT_EQ(scores.sizes(), exactly.sizes());
      EXPECT_EQ(scores.scalar_type(), at::kFloat);
      const double error = ((scores - exactly).norm() / exactly.norm()).item<double>();
      EXPECT_LT(error, 1e-2);
      EXPECT_GT(error, 1e-5) << "nothing was rounded";
      if (!rounded.is_real()) continue;
      const at::Tensor some = torch::randperm(4400).narrow(0, 0, 700);
      const at::Tensor listed = rounded.of(some)(hidden);
      EXPECT_LT(((listed - exactly.index_select(1, some)).norm() / exactly.norm()).item<double>(), 1e-2);
    }
  }
}

TEST(Projection, BfloatWritesAboutTheSame) {
  torch::manual_seed(36);
  for (const auto output : {models::OutputLayer::real, models::OutputLayer::algebra}) {
    const Seq2Seq model = translator(output);
    const auto sources = random_sources(9, kWords);
    auto options = translation(3, 1, 1, models::LengthPenalty::power);
    const auto free = models::translate(model, sources, options);
    options.projection = models::Projection::bfloat16;
    const auto rounded = models::translate(model, sources, options);
    for (size_t i = 0; i < sources.size(); ++i) EXPECT_NEAR(rounded[i][0].score, free[i][0].score, 0.05);
  }
  EXPECT_EQ(models::parse_projection("bfloat16"), models::Projection::bfloat16);
  EXPECT_THROW(models::parse_projection("int8"), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
