// Several models that translate together: the mean of their probabilities at each token.

#include "quatrain/models/ensemble.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/translators.h"

namespace quatrain {
namespace {

using models::Ensemble;
using models::Seq2Seq;
using test::plain_search, test::random_sources, test::Tokens, test::trained_like, test::translation;

std::vector<Seq2Seq> several(const std::vector<test::Design>& designs, at::ScalarType type = at::kFloat) {
  std::vector<Seq2Seq> all;
  for (const test::Design& design : designs) {
    all.push_back(trained_like(design));
    all.back()->to(type);
  }
  return all;
}

TEST(Ensemble, EqualsAPlainLoopInDoublePrecision) {
  torch::manual_seed(21);
  using Kind = nn::AttentionKind;
  for (const auto& designs :
       {std::vector<test::Design>{{"real"}, {"quaternion"}},
        {{"phm(4)"}, {"real"}, {"real"}},
        {{"quaternion", Kind::componentwise}, {"quaternion", Kind::componentwise, true}}}) {
    const auto all = several(designs, at::kDouble);
    const Ensemble ensemble(all);
    const auto sources = random_sources(7);
    auto options = translation(4, 4, 1, models::LengthPenalty::power);
    options.search.no_repeat = 2;
    const auto found = models::translate(ensemble, sources, options);
    const auto alone = models::translate(all[0], sources, options);
    size_t differ = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto expected =
          plain_search(all, sources[i], static_cast<int64_t>(sources[i].size()) + 3, options.search);
      ASSERT_EQ(found[i].size(), expected.size()) << i;
      std::vector<Tokens> given;
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(found[i][k].tokens, expected[k].tokens) << i << " " << k;
        EXPECT_NEAR(found[i][k].score, expected[k].score, 1e-10);
        given.push_back(expected[k].tokens);
      }
      const auto scores =
          models::score_targets(ensemble, std::vector<Tokens>(given.size(), sources[i]), given);
      for (size_t k = 0; k < expected.size(); ++k)
        for (size_t j = 0; j < scores[k].size(); ++j)
          EXPECT_NEAR(scores[k][j], found[i][k].token_scores[j], 1e-10);
      differ += found[i][0].tokens != alone[i][0].tokens;
    }
    EXPECT_GT(differ, 0U) << "one model alone should answer otherwise";
  }
}

TEST(Ensemble, OneModelIsItself) {
  torch::manual_seed(22);
  const Seq2Seq model = trained_like("quaternion");
  const auto sources = random_sources(5);
  const auto options = translation(3, 1, 1, models::LengthPenalty::power);
  const auto one = models::translate(model, sources, options),
             same = models::translate(Ensemble({model}), sources, options),
             twice = models::translate(Ensemble({model, model}), sources, options);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(one[i][0].token_scores, same[i][0].token_scores);
    EXPECT_EQ(one[i][0].tokens, twice[i][0].tokens);
    EXPECT_NEAR(one[i][0].score, twice[i][0].score, 1e-5);
  }
}

TEST(Ensemble, ExactAnswersDoNotDependOnTheBatch) {
  torch::manual_seed(23);
  const Ensemble ensemble(several({{"real"},
                                   {"quaternion"},
                                   {"real"},
                                   {"phm(4)"},
                                   {"quaternion", nn::AttentionKind::componentwise, true},
                                   {"octonion"}}));
  const auto sources = random_sources(16, 24, 101);
  auto options = translation(3, 1, 1, models::LengthPenalty::power);
  options.longest = 40;
  options.batch = 16;
  const auto together = models::translate(ensemble, sources, options);
  std::vector<Tokens> targets;
  for (const auto& found : together) targets.push_back(found[0].tokens);
  const auto scores = models::score_targets(ensemble, sources, targets, options);
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto alone = models::translate(ensemble, {sources[i]}, options)[0];
    EXPECT_EQ(alone[0].tokens, together[i][0].tokens);
    EXPECT_EQ(alone[0].token_scores, together[i][0].token_scores);  // bit for bit
    EXPECT_EQ(models::score_targets(ensemble, {sources[i]}, {targets[i]}, options)[0], scores[i]);
  }
}

TEST(Ensemble, SmallProbabilitiesHaveAMean) {
  std::vector<at::Tensor> scores{torch::tensor({{0.0F, -200.0F, 5.0F}}),
                                 torch::tensor({{0.0F, -300.0F, 1.0F}})};
  const at::Tensor mean = Ensemble::mean(scores);
  const double a = -200 - std::log(1 + std::exp(5.0)), of_first = -std::log(1 + std::exp(5.0)),
               of_second = -std::log(1 + std::exp(1.0));
  EXPECT_NEAR(mean[0][1].item<double>(), a - std::log(2.0), 1e-4);
  EXPECT_NEAR(mean[0][0].item<double>(), std::log((std::exp(of_first) + std::exp(of_second)) / 2), 1e-6);
}

TEST(Ensemble, RefusesOtherVocabularies) {
  EXPECT_THROW(Ensemble(std::vector<Seq2Seq>{}), std::invalid_argument);
  EXPECT_THROW(Ensemble({trained_like("real", 24), trained_like("real", 25)}), std::invalid_argument);
  Seq2Seq training = trained_like("real");
  training->train();
  EXPECT_THROW(models::translate(Ensemble({trained_like("real"), training}), random_sources(1)),
               std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
