#include "quatrain/models/beam_search.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "models/translators.h"
#include "system_memory.h"
#include "threads.h"

namespace {

using namespace quatrain;
using models::SearchOptions;
using models::Seq2Seq;
using test::is_forbidden, test::plain_search, test::random_sources, test::Tokens, test::trained_like,
    test::translation;

TEST(BeamSearch, EqualsAPlainLoopInDoublePrecision) {
  torch::manual_seed(4);
  for (const test::Design& design : test::designs()) {
    SCOPED_TRACE(testing::PrintToString(design));
    Seq2Seq model = trained_like(design);
    model->to(torch::kDouble);
    const auto sources = random_sources(9);
    using P = models::LengthPenalty;
    std::set<size_t> lengths;
    for (const auto& options : {translation(1, 1, 1, P::power), translation(4, 4, 1, P::power),
                                translation(5, 2, 0.6, P::wu), translation(3, 1, 0, P::power, 3)}) {
      const auto found = models::translate(model, sources, options);
      for (size_t i = 0; i < sources.size(); ++i) {
        const auto expected =
            plain_search({model}, sources[i], static_cast<int64_t>(sources[i].size()) + 3, options.search);
        ASSERT_EQ(found[i].size(), expected.size()) << i;
        for (size_t k = 0; k < expected.size(); ++k) {
          EXPECT_EQ(found[i][k].tokens, expected[k].tokens) << i << " " << k;
          EXPECT_NEAR(found[i][k].score, expected[k].score, 1e-10);
          ASSERT_EQ(found[i][k].token_scores.size(), expected[k].tokens.size() + 1);
          lengths.insert(expected[k].tokens.size());
        }
      }
    }
    EXPECT_GT(lengths.size(), 3U) << "the targets should differ in length";
  }
}

TEST(BeamSearch, PatienceEqualsAPlainLoopInDoublePrecision) {
  torch::manual_seed(4);
  Seq2Seq model = trained_like("quaternion");
  model->to(torch::kDouble);
  const auto sources = random_sources(9);
  for (const double patience : {1.5, 0.0}) {
    auto options = translation(2, 2, 1, models::LengthPenalty::power);
    options.search.patience = patience;
    const auto found = models::translate(model, sources, options);
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto expected =
          plain_search({model}, sources[i], static_cast<int64_t>(sources[i].size()) + 3, options.search);
      ASSERT_EQ(found[i].size(), expected.size()) << patience << " " << i;
      for (size_t k = 0; k < expected.size(); ++k)
        EXPECT_EQ(found[i][k].tokens, expected[k].tokens) << patience << " " << i << " " << k;
    }
  }
}

// Two hypotheses are finished after two tokens; the likeliest third one goes on with certain tokens.
TEST(BeamSearch, PatienceWaitsForALongerTarget) {
  const auto search = [](double patience) {
    int step = 0;
    const auto next = [&](const Tokens& tokens, const Tokens&) {
      const int now = step++;
      at::Tensor chances = torch::zeros({static_cast<int64_t>(tokens.size()), 6}, torch::kDouble);
      for (size_t row = 0; row < tokens.size(); ++row) {
        const at::Tensor of_row = chances[static_cast<int64_t>(row)];
        of_row[3] = now == 0 ? .3 : now == 1 ? (tokens[row] == 4 ? .2 : .9) : now == 2 ? 0 : 1;  // the end
        of_row[4] = now == 0 ? .6 : now == 1 ? (tokens[row] == 4 ? .8 : .1) : now == 2 ? 1 : 0;
        of_row[5] = now == 0 ? .1 : 0;
      }
      return chances.log();
    };
    SearchOptions options;
    options.beam = 2;
    options.patience = patience;
    return models::beam_search(next, {models::SearchTask{}}, options)[0][0].tokens;
  };
  EXPECT_EQ(search(1), (Tokens{4}));
  for (const double patience : {2.0, SearchOptions().patience})
    EXPECT_EQ(search(patience), (Tokens{4, 4, 4})) << patience;
}

// The end mark is likeliest at once, though a second token would give the better score.
TEST(BeamSearch, ABeamOfOneTakesTheLikeliestToken) {
  int step = 0;
  const auto next = [&](const Tokens& tokens, const Tokens&) {
    at::Tensor chances = torch::zeros({static_cast<int64_t>(tokens.size()), 5}, torch::kDouble);
    chances.select(1, 3).fill_(step == 0 ? .6 : 1);
    chances.select(1, 4).fill_(step == 0 ? .4 : 0);
    ++step;
    return chances.log();
  };
  SearchOptions options;
  for (const auto& [beam, expected] : {std::pair<int64_t, Tokens>{1, {}}, {2, {4}}}) {
    step = 0;
    options.beam = beam;
    EXPECT_EQ(models::beam_search(next, {models::SearchTask{}}, options)[0][0].tokens, expected) << beam;
  }
}

// Nine tokens, five of them words: without bans they come again and again, and with them none may be left.
TEST(BeamSearch, BansEqualAPlainLoopInDoublePrecision) {
  torch::manual_seed(14);
  Seq2Seq model = trained_like("quaternion", 9);
  model->to(torch::kDouble);
  const auto sources = random_sources(6, 9);
  size_t ended_early = 0, differ = 0;
  for (const int64_t no_repeat : {0, 1, 2, 3})
    for (const auto& banned : {std::vector<Tokens>{}, {{5}, {6, 7}}, {{4, 4, 4}, {8, 1}, {7}, {7}}})
      for (const int64_t beam : {1, 3}) {
        auto options = translation(beam, beam, 1, models::LengthPenalty::power, 7);
        options.longest_offset = 9;
        options.search.no_repeat = no_repeat;
        options.search.banned = banned;
        const auto found = models::translate(model, sources, options);
        auto free = options;
        free.search.no_repeat = 0;
        free.search.banned.clear();
        const auto without = models::translate(model, sources, free);
        for (size_t i = 0; i < sources.size(); ++i) {
          const auto longest = std::max<int64_t>(7, static_cast<int64_t>(sources[i].size()) + 8);
          const auto expected = plain_search({model}, sources[i], longest, options.search);
          ASSERT_EQ(found[i].size(), expected.size()) << no_repeat << " " << i;
          for (size_t k = 0; k < expected.size(); ++k) {
            EXPECT_EQ(found[i][k].tokens, expected[k].tokens) << no_repeat << " " << i << " " << k;
            EXPECT_NEAR(found[i][k].score, expected[k].score, 1e-10);
            EXPECT_FALSE(is_forbidden(found[i][k].tokens, options.search));
            ended_early += found[i][k].tokens.size() < 7;
          }
          differ += found[i][0].tokens != without[i][0].tokens;
        }
      }
  EXPECT_GT(ended_early, 0U) << "somewhere nothing should be left but the end, before `shortest`";
  EXPECT_GT(differ, 20U) << "what is banned should be what would be written";
}

TEST(BeamSearch, PrefixesMayHaveWhatIsBanned) {
  torch::manual_seed(15);
  Seq2Seq model = trained_like("real", 9);
  auto options = translation(2, 1, 1, models::LengthPenalty::power, 9);
  options.search.no_repeat = 2;
  options.search.banned = {{5}, {4, 6}};
  const Tokens prefix{5, 5, 5, 4, 6};
  const Tokens tokens = models::translate(model, random_sources(1, 9), options, {prefix})[0][0].tokens;
  ASSERT_GT(tokens.size(), prefix.size());
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), tokens.begin()));
  EXPECT_FALSE(is_forbidden({tokens.begin() + 4, tokens.end()}, options.search));  // from 6 on
}

TEST(BeamSearch, ScoresOfBannedTokensAreLeftAsTheyWere) {
  const at::Tensor logits = torch::randn({2, 9});
  const at::Tensor before = logits.clone();
  SearchOptions options;
  options.beam = 2;
  options.shortest = 3;
  options.banned = {{4}, {4}, {5, 6}};
  models::beam_search([&](const Tokens& tokens, const Tokens&) { return logits.narrow(0, 0, tokens.size()); },
                      {{.longest = 4, .prefix = {}}}, options);
  EXPECT_TRUE(logits.equal(before));
}

TEST(Translate, ExactAnswersDoNotDependOnTheBatch) {
  torch::manual_seed(5);
  auto all = test::designs();
  all.push_back({"octonion"});
  for (const test::Design& design : all) {
    SCOPED_TRACE(testing::PrintToString(design));
    Seq2Seq model = trained_like(design);
    const auto sources = random_sources(24, 24, 161);  // to 162 tokens
    auto options = translation(4, 2, 1, models::LengthPenalty::power);
    options.longest = 40;
    const test::Threads threads(2);
    options.batch = 16;
    const auto together = models::translate(model, sources, options);
    for (const int count : {1, 2}) {
      const test::Threads so_many(count);
      for (size_t i = 0; i < sources.size(); ++i) {
        const auto alone = models::translate(model, {sources[i]}, options);
        ASSERT_EQ(alone[0].size(), together[i].size());
        for (size_t k = 0; k < alone[0].size(); ++k) {
          EXPECT_EQ(alone[0][k].tokens, together[i][k].tokens);
          EXPECT_EQ(alone[0][k].token_scores, together[i][k].token_scores);  // bit for bit
        }
      }
    }
    options.exact = false;
    const auto free = models::translate(model, sources, options);
    for (size_t i = 0; i < sources.size(); ++i) EXPECT_NEAR(free[i][0].score, together[i][0].score, 1e-5);
  }
}

// A step of 160 rows and one of 4, where ways that round by the number of rows may be taken.
TEST(Translate, ExactAnswersOfManyRowsDoNotDependOnTheBatch) {
  torch::manual_seed(6);
  for (const test::Design& design : test::designs()) {
    SCOPED_TRACE(testing::PrintToString(design));
    Seq2Seq model = trained_like(design);
    std::vector<Tokens> sources(40);
    for (Tokens& source : sources) {
      source.assign(6, 3);
      for (size_t i = 0; i < 5; ++i) source[i] = torch::randint(4, 24, {}).item<int64_t>();
    }
    auto options = translation(4, 1, 1, models::LengthPenalty::power);
    options.batch = 40;
    const auto together = models::translate(model, sources, options);
    for (size_t i = 0; i < sources.size(); i += 7)
      EXPECT_EQ(models::translate(model, {sources[i]}, options)[0][0].token_scores,
                together[i][0].token_scores);
  }
}

// Whose products round by the number of rows, if they are left to. Processors without products of that type
// add all sums in one order, and this cannot fail there.
TEST(Translate, ExactAnswersInBfloat16DoNotDependOnTheBatch) {
  torch::manual_seed(5);
  for (const test::Design& design : test::designs()) {
    SCOPED_TRACE(testing::PrintToString(design));
    Seq2Seq model = trained_like(design, 200);
    const auto sources = random_sources(24, 200, 90);
    auto options = translation(4, 1, 1, models::LengthPenalty::power);
    options.longest = 12;
    options.batch = 24;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, torch::kBFloat16);
    const auto together = models::translate(model, sources, options);
    for (size_t i = 0; i < sources.size(); i += 3)
      EXPECT_EQ(models::translate(model, {sources[i]}, options)[0][0].token_scores,
                together[i][0].token_scores);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
}

TEST(BeamSearch, ScoresThatAreNotFiniteAreErrorsOfTheirSentence) {
  SearchOptions options;
  options.beam = 2;
  int64_t steps = 0;
  const auto search = [&] {
    models::beam_search(
        [&](const Tokens& tokens, const Tokens&) {
          at::Tensor logits = torch::arange(9, torch::kFloat).repeat({std::ssize(tokens), 1});
          // Of the second of three sentences, one of whose two rows.
          if (++steps == 3) logits.index_put_({3, 7}, std::numeric_limits<float>::quiet_NaN());
          return logits;
        },
        {{.longest = 5, .prefix = {}}, {.longest = 5, .prefix = {}}, {.longest = 5, .prefix = {}}}, options);
  };
  try {
    search();
    FAIL() << "no error";
  } catch (const models::NotFiniteError& error) {
    EXPECT_EQ(error.sentence(), 1U);
  }
  EXPECT_EQ(steps, 3);
}

// Steps after the third take no memory for tensors from the system: a translation five times as long takes
// no more blocks. (How many it takes before depends on sizes that happen to share one.)
TEST(Translate, LongerAnswersTakeNoMoreMemory) {
  torch::manual_seed(7);
  for (const test::Design& design : test::designs()) {
    Seq2Seq model = trained_like(design);
    const auto sources = random_sources(3);
    const auto blocks = [&](int64_t length) {
      auto options = translation(4, 1, 1, models::LengthPenalty::power);
      options.search.shortest = options.longest = options.longest_offset = length;
      const test::SystemMemory system;
      models::translate(model, sources, options);
      return system.blocks();
    };
    blocks(40);  // prepares weights
    EXPECT_LE(blocks(200), blocks(40)) << design;
    // Beyond the places of the sinusoids that are kept, where tables of both lengths take blocks of one size.
    const int64_t far = 700;
    EXPECT_LE(blocks(far + 100), blocks(far)) << design;
  }
}

TEST(Translate, PrefixesAreKeptAndScored) {
  torch::manual_seed(6);
  Seq2Seq model = trained_like("quaternion");
  const auto sources = random_sources(5);
  const std::vector<Tokens> prefixes{{5, 6}, {}, {9}, {7, 7, 7}, {20}};
  const auto options = translation(3, 1, 1, models::LengthPenalty::power);
  const auto found = models::translate(model, sources, options, prefixes);
  std::vector<Tokens> targets;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Tokens& tokens = found[i][0].tokens;
    ASSERT_GE(tokens.size(), prefixes[i].size());
    EXPECT_TRUE(std::equal(prefixes[i].begin(), prefixes[i].end(), tokens.begin()));
    targets.push_back(tokens);
  }
  const auto scores = models::score_targets(model, sources, targets, options);
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSERT_EQ(scores[i].size(), found[i][0].token_scores.size());
    for (size_t j = 0; j < scores[i].size(); ++j)
      EXPECT_NEAR(scores[i][j], found[i][0].token_scores[j], 1e-4);
  }
}

TEST(BeamSearch, RefusesWhatCannotBe) {
  const auto step = [](const Tokens& tokens, const Tokens&) {
    return torch::zeros({static_cast<int64_t>(tokens.size()), 6});
  };
  const auto search = [&](int64_t beam, int64_t best, models::SearchTask task) {
    SearchOptions options;
    options.beam = beam, options.best = best;
    return models::beam_search(step, {std::move(task)}, options);
  };
  EXPECT_NO_THROW(search(6, 6, {}));
  EXPECT_THROW(search(7, 1, {}), c10::ValueError);  // above the vocabulary
  EXPECT_THROW(search(0, 1, {}), c10::ValueError);
  EXPECT_THROW(search(2, 3, {}), c10::ValueError);
  EXPECT_THROW(search(2, 1, {.longest = 1, .prefix = {4, 4}}), c10::ValueError);
  for (const int64_t mark : {SearchOptions().begin, SearchOptions().end, SearchOptions().pad})
    EXPECT_THROW(search(2, 1, {.longest = 5, .prefix = {4, mark}}), c10::ValueError);
  for (const int64_t unknown : {6, -1, 1000000000})
    EXPECT_THROW(search(2, 1, {.longest = 5, .prefix = {4, unknown}}), c10::ValueError);
  for (const auto& banned : {Tokens{}, Tokens{6}, Tokens{4, -1}}) {
    SearchOptions options;
    options.banned = {banned};
    EXPECT_THROW(models::beam_search(step, {models::SearchTask{}}, options), c10::ValueError);
  }
  SearchOptions hasty;
  hasty.patience = 0.5;
  EXPECT_THROW(models::beam_search(step, {models::SearchTask{}}, hasty), c10::ValueError);
  SearchOptions negative;
  negative.no_repeat = -1;
  EXPECT_THROW(models::beam_search(step, {models::SearchTask{}}, negative), c10::ValueError);
  EXPECT_TRUE(models::beam_search(step, {}).empty());
  const auto bad = [](const Tokens& tokens, const Tokens&) {
    return torch::full({static_cast<int64_t>(tokens.size()), 6}, std::nan(""));
  };
  EXPECT_THROW(models::beam_search(bad, {models::SearchTask{}}), c10::ValueError);
}

TEST(BeamSearch, EqualScoresGoByTheirTokens) {
  const auto step = [](const Tokens& tokens, const Tokens&) {
    at::Tensor logits = torch::zeros({static_cast<int64_t>(tokens.size()), 9});
    logits.select(1, 3).fill_(-50);
    return logits;
  };
  SearchOptions options;
  options.beam = options.best = 3;
  const auto found = models::beam_search(step, {{.longest = 1, .prefix = {}}}, options)[0];
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].tokens, Tokens{1});  // 0 and 2 are marks that are never chosen
  EXPECT_EQ(found[1].tokens, Tokens{4});
  EXPECT_EQ(found[2].tokens, Tokens{5});
}

// The first step has a row for each sentence, later ones a row for each living hypothesis, and none of a
// sentence that is done: the second one after its first step, the first one after its second.
TEST(BeamSearch, StepsHaveTheRowsOfLivingHypotheses) {
  using Rows = std::pair<Tokens, Tokens>;  // their tokens and parents
  std::vector<Rows> asked;
  Tokens sentences;  // of the rows of the step before
  const auto step = [&](const Tokens& tokens, const Tokens& parents) {
    const size_t now = asked.size();
    asked.emplace_back(tokens, parents);
    Tokens own;
    for (const int64_t parent : parents)
      own.push_back(now == 0 ? parent : sentences.at(static_cast<size_t>(parent)));
    sentences = own;
    at::Tensor chances = torch::zeros({std::ssize(tokens), 6}, torch::kDouble);
    for (int64_t row = 0; row < std::ssize(tokens); ++row) {
      const auto i = static_cast<size_t>(row);
      const auto set = [&](double end, double four, double five) {
        chances[row][3] = end, chances[row][4] = four, chances[row][5] = five;
      };
      set(1, 0, 0);
      if (now == 0 && own[i] == 0) set(0, .3, .7);
      if (now == 0 && own[i] == 1) set(.9, .1, 0);
      if (now == 0 && own[i] == 2) set(0, .6, .4);
      if (now == 1 && own[i] == 0) tokens[i] == 5 ? set(.9, .1, 0) : set(0, 1, 0);
      if (now == 1 && own[i] == 2) tokens[i] == 4 ? set(0, .4, .6) : set(0, 1, 0);
    }
    return chances.log();
  };
  SearchOptions options;
  options.beam = 2;
  options.alpha = 0;
  const auto found = models::beam_search(step, std::vector<models::SearchTask>(3), options);
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(asked[0], (Rows{{2, 2, 2}, {0, 1, 2}}));
  EXPECT_EQ(asked[1], (Rows{{5, 4, 4, 5}, {0, 0, 2, 2}}));
  EXPECT_EQ(asked[2], (Rows{{4, 5}, {3, 2}}));
  EXPECT_EQ(found[0][0].tokens, Tokens{5});
  EXPECT_EQ(found[1][0].tokens, Tokens{});
  EXPECT_EQ(found[2][0].tokens, (Tokens{5, 4}));
}

TEST(BeamSearch, GoesOnWhereALongerOneMayWin) {
  // The end is likelier than token 4 at first (.6, .4), and token 4 is followed by a sure token and the end:
  // by mean log-probability the longer one wins, by the sum the shorter.
  const auto step = [](const Tokens& tokens, const Tokens&) {
    at::Tensor logits = torch::full({static_cast<int64_t>(tokens.size()), 6}, -1e9);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      if (tokens[i] == 2) logits[row][3] = std::log(0.6), logits[row][4] = std::log(0.4);
      if (tokens[i] == 4) logits[row][5] = 0;
      if (tokens[i] == 5) logits[row][3] = 0;
    }
    return logits;
  };
  SearchOptions options;
  options.beam = 2;
  EXPECT_EQ(models::beam_search(step, {models::SearchTask{}}, options)[0][0].tokens, (Tokens{4, 5}));
  options.alpha = 0;
  EXPECT_EQ(models::beam_search(step, {models::SearchTask{}}, options)[0][0].tokens, Tokens{});
}

}  // namespace
