#include "quatrain/models/ctc_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace quatrain::models {
namespace {

using testing::HasSubstr;
using Labels = std::vector<int64_t>;

constexpr double kAll = std::numeric_limits<double>::infinity();

at::Tensor random_frames(int64_t frames, int64_t classes, int64_t seed, double sharpness = 1.5) {
  torch::manual_seed(seed);
  return (sharpness * torch::randn({frames, classes}, torch::kDouble)).log_softmax(1);
}

/// The tokens of a path of classes.
std::vector<RecognisedToken> collapse(const at::Tensor& frames, const Labels& path, int64_t blank) {
  std::vector<RecognisedToken> tokens;
  for (size_t t = 0; t < path.size(); ++t) {
    const auto frame = static_cast<int64_t>(t);
    if (path[t] == blank) continue;
    if (t == 0 || path[t] != path[t - 1]) tokens.push_back({path[t], frame, frame, 0});
    tokens.back().end = frame + 1;
    tokens.back().confidence += frames[frame][path[t]].exp().item<double>();
  }
  for (auto& token : tokens) token.confidence /= static_cast<double>(token.end - token.begin);
  return tokens;
}

Labels labels_of(const std::vector<RecognisedToken>& tokens) {
  Labels labels;
  for (const auto& token : tokens) labels.push_back(token.token);
  return labels;
}

/// After each word the next one in number is likely, but behind two equal words the first is.
class Cyclic {
 public:
  int64_t words() const { return 4; }
  int64_t start() const { return 0; }
  double advance(int64_t& state, int64_t word) const {
    const int64_t likely = state >= 10 ? 0 : (state + 1) % 4;
    state = word + (state % 10 == word ? 10 : 0);
    return std::log(word == likely ? 0.55 : 0.12);
  }
  double end(int64_t state) const { return state == 2 ? -0.1 : -1.7; }
};

/// What every path of classes sums up to, the best first.
std::vector<Recognition> all_recognitions(const at::Tensor& frames, const CtcDecoderOptions& options,
                                          bool ended) {
  struct Sum {
    double probability = 0, most = -kAll;
    std::vector<RecognisedToken> tokens;
  };
  std::map<Labels, Sum> sums;
  const auto rows = frames.accessor<double, 2>();
  const auto classes = frames.size(1);
  Labels path(static_cast<size_t>(frames.size(0)), 0);
  for (bool done = false; !done;) {
    double score = 0;
    for (size_t t = 0; t < path.size(); ++t) score += rows[static_cast<int64_t>(t)][path[t]];
    Labels labels;
    for (size_t t = 0; t < path.size(); ++t)
      if (path[t] != options.blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
    Sum& sum = sums[labels];
    sum.probability += std::exp(score);
    if (score > sum.most) {
      sum.most = score;
      sum.tokens = collapse(frames, path, options.blank);
    }
    done = true;
    for (auto& label : path) {
      if (++label < classes) {
        done = false;
        break;
      }
      label = 0;
    }
  }
  std::vector<Recognition> all;
  for (const auto& [labels, sum] : sums) {
    double score = std::log(sum.probability) + options.insertion_bonus * static_cast<double>(labels.size());
    if (options.language) {
      int64_t state = options.language->start();
      for (const int64_t label : labels)
        score += options.language_weight *
                 options.language->advance(state, options.words[static_cast<size_t>(label)]);
      if (ended) score += options.language_weight * options.language->end(state);
    }
    all.push_back({sum.tokens, score});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

void expect_equal(const std::vector<Recognition>& found, const std::vector<Recognition>& expected,
                  double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i].score, expected[i].score, tolerance) << i;
    const auto &a = found[i].tokens, &b = expected[i].tokens;
    ASSERT_EQ(labels_of(a), labels_of(b)) << i;
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_EQ(a[k].begin, b[k].begin) << i << " " << k;
      EXPECT_EQ(a[k].end, b[k].end) << i << " " << k;
      EXPECT_NEAR(a[k].confidence, b[k].confidence, tolerance) << i << " " << k;
    }
  }
}

std::vector<Recognition> decode(const at::Tensor& frames, const CtcDecoderOptions& options) {
  CtcDecoder decoder(options);
  decoder.push(frames);
  return decoder.finish();
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

CtcDecoderOptions exact(int64_t beam = 5000) {
  CtcDecoderOptions options;
  options.beam = options.best = beam;
  options.token_threshold = kAll;
  return options;
}

CtcDecoderOptions with_language(CtcDecoderOptions options) {
  options.language = as_word_model(std::make_shared<const Cyclic>());
  options.words = {3, 1, 0, 2};
  options.words[static_cast<size_t>(options.blank)] = -1;
  options.language_weight = 0.7;
  options.insertion_bonus = 0.4;
  return options;
}

TEST(CtcDecoder, AWideBeamEqualsTheSumOverAllPaths) {
  for (const int64_t seed : {1, 2, 3})
    for (const int64_t blank : {0, 2}) {
      const auto frames = random_frames(6, 4, seed);
      auto options = exact();
      options.blank = blank;
      expect_equal(decode(frames, options), all_recognitions(frames, options, true), 1e-10);
      options = with_language(options);
      expect_equal(decode(frames, options), all_recognitions(frames, options, true), 1e-10);
      CtcDecoder decoder(options);
      decoder.push(frames);
      expect_equal(decoder.result(), all_recognitions(frames, options, false), 1e-10);
    }
}

// Narrow beams lose probability and find nothing that is not there; prefixes leave the beam and return.
TEST(CtcDecoder, ANarrowBeamStaysBelowTheSums) {
  int64_t right = 0;
  for (int64_t seed = 0; seed < 30; ++seed) {
    const auto frames = random_frames(8, 3, seed);
    for (const int64_t beam : {2, 3, 5, 9}) {
      const auto options = exact(beam);
      const auto found = decode(frames, options), all = all_recognitions(frames, options, true);
      ASSERT_EQ(found.size(), static_cast<size_t>(beam));
      for (size_t i = 0; i < found.size(); ++i) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const Recognition& one) {
          return labels_of(one.tokens) == labels_of(found[i].tokens);
        });
        ASSERT_NE(same, all.end());
        EXPECT_LE(found[i].score, same->score + 1e-10);
        if (i > 0) {
          EXPECT_LE(found[i].score, found[i - 1].score);
        }
        for (size_t j = 0; j < i; ++j) EXPECT_NE(labels_of(found[i].tokens), labels_of(found[j].tokens));
      }
      right += labels_of(found[0].tokens) == labels_of(all[0].tokens);
    }
  }
  EXPECT_GT(right, 100);  // of 120
}

TEST(CtcDecoder, TheBestPathIsTheCollapseOfTheBestClasses) {
  for (const int64_t blank : {0, 4}) {
    const auto frames = random_frames(300, 5, 8);
    const auto [most, classes] = frames.max(1);
    const Labels path(classes.const_data_ptr<int64_t>(), classes.const_data_ptr<int64_t>() + 300);
    CtcDecoderOptions options;
    options.blank = blank;
    expect_equal(decode(frames, options), {{collapse(frames, path, blank), most.sum().item<double>()}}, 1e-9);
  }
}

TEST(CtcDecoder, ABlankDividesRepetitions) {
  auto scores = torch::full({9, 3}, -6.0);
  const std::vector<int64_t> path{1, 1, 0, 1, 2, 2, 0, 0, 2};
  for (int64_t t = 0; t < 9; ++t) scores[t][path[static_cast<size_t>(t)]] = 0;
  for (const int64_t beam : {1, 8}) {
    CtcDecoderOptions options;
    options.beam = beam;
    const auto tokens = decode(scores.log_softmax(1), options)[0].tokens;
    ASSERT_EQ(labels_of(tokens), (Labels{1, 1, 2, 2}));
    EXPECT_EQ(tokens[0].begin, 0);
    EXPECT_EQ(tokens[0].end, 2);
    EXPECT_EQ(tokens[1].begin, 3);
    EXPECT_EQ(tokens[1].end, 4);
    EXPECT_EQ(tokens[2].end, 6);
    EXPECT_EQ(tokens[3].begin, 8);
    EXPECT_EQ(tokens[3].end, 9);
    EXPECT_NEAR(tokens[0].confidence, 1 / (1 + 2 * std::exp(-6)), 1e-6);
  }
}

TEST(CtcDecoder, PiecesGiveTheSame) {
  const auto frames = random_frames(120, 4, 5);
  for (const int64_t beam : {1, 7}) {
    auto options = exact(beam);
    if (beam > 1) options = with_language(options);
    if (beam == 1) options.best = 1;
    CtcDecoder once(options), pieces(options);
    for (int64_t utterance = 0; utterance < 2; ++utterance) {
      once.push(frames);
      int64_t begin = 0;
      for (const int64_t size : {1, 0, 2, 50, 67}) {
        pieces.push(frames.narrow(0, begin, size));
        begin += size;
        EXPECT_FALSE(pieces.result().empty());
      }
      expect_equal(pieces.result(), once.result(), 0);
      expect_equal(pieces.finish(), once.finish(), 0);
    }
  }
}

TEST(CtcDecoder, UtterancesMayHaveOtherClasses) {
  const auto options = exact(4);
  CtcDecoder decoder(options);
  for (const int64_t classes : {3, 6, 2}) {
    const auto frames = random_frames(20, classes, classes);
    decoder.push(frames);
    expect_equal(decoder.finish(), decode(frames, options), 0);
  }
}

TEST(CtcDecoder, AMovedDecoderGoesOn) {
  const auto options = with_language(exact(6));
  const auto frames = random_frames(40, 4, 9);
  std::vector<CtcDecoder> decoders;
  for (int64_t i = 0; i < 3; ++i) {
    decoders.emplace_back(options);
    for (auto& decoder : decoders) decoder.push(frames.narrow(0, 10 * i, 10));
  }
  expect_equal(decoders[0].finish(), decode(frames.narrow(0, 0, 30), options), 0);
}

TEST(CtcDecoder, WithoutFramesThereIsNothing) {
  for (const int64_t beam : {1, 4}) {
    CtcDecoderOptions options;
    options.beam = beam;
    for (const auto& found : {CtcDecoder(options).finish(), decode(torch::zeros({0, 5}), options)}) {
      ASSERT_EQ(found.size(), 1U);
      EXPECT_TRUE(found[0].tokens.empty());
      EXPECT_EQ(found[0].score, 0);
    }
  }
  EXPECT_NEAR(CtcDecoder(with_language(exact(4))).finish()[0].score, 0.7 * -1.7, 1e-12);
}

TEST(CtcDecoder, TakesEveryFloatingType) {
  const auto frames = random_frames(40, 6, 3, 3);
  for (const int64_t beam : {1, 5}) {
    CtcDecoderOptions options;
    options.beam = beam;
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
      const auto rounded = frames.to(type);
      const auto expected = decode(rounded.to(torch::kDouble), options);
      expect_equal(decode(rounded, options), expected, 0);
      expect_equal(decode(rounded.t().contiguous().t(), options), expected, 0);  // its rows lie apart
    }
  }
}

TEST(CtcDecoder, TheThresholdSkipsUnlikelyTokens) {
  auto scores = torch::full({4, 3}, -8.0, torch::kDouble);
  scores.select(1, 0).fill_(-1e-3);
  scores[2][1] = -4;
  auto options = exact();
  EXPECT_GT(decode(scores, options).size(), 10U);
  options.token_threshold = 5;
  const auto found = decode(scores, options);
  ASSERT_EQ(found.size(), 2U);  // none, and the one of frame 2
  EXPECT_TRUE(found[0].tokens.empty());
  EXPECT_EQ(labels_of(found[1].tokens), Labels{1});
  EXPECT_NEAR(found[1].score, std::log(std::exp(-4 - 3e-3) + std::exp(-4 - 8 - 2e-3)), 1e-10);
}

// What lists share must not need a stack as deep as they are long.
TEST(CtcDecoder, HoldsLongUtterances) {
  auto scores = torch::full({20, 3}, -9.0);
  for (int64_t t = 0; t < 20; ++t) scores[t][1 + t % 2] = 0;
  const auto frames = scores.log_softmax(1).repeat({15000, 1});
  CtcDecoderOptions options;
  options.beam = 2;
  EXPECT_EQ(decode(frames, options)[0].tokens.size(), 300000U);
}

TEST(CtcDecoder, RefusesBadFrames) {
  CtcDecoderOptions options;
  options.blank = 3;
  options.beam = 4;
  CtcDecoder decoder(options);
  const auto frames = random_frames(20, 4, 1);
  decoder.push(frames.narrow(0, 0, 10));
  const auto push = [&](const at::Tensor& scores) { return error_of([&] { decoder.push(scores); }); };
  EXPECT_THAT(error_of([&] { CtcDecoder(options).push(frames.narrow(1, 0, 3)); }),
              HasSubstr("CtcDecoder: blank = 3 must be one of the classes, got log-probabilities of 3"));
  EXPECT_THAT(push(random_frames(2, 5, 1)), HasSubstr("this utterance began with 4 classes, got log-prob"));
  EXPECT_THAT(push(frames.unsqueeze(0)), HasSubstr("must be (frames, classes), got [1, 20, 4]"));
  EXPECT_THAT(push(torch::zeros({2, 4}, torch::kLong)),
              HasSubstr("must be floating-point numbers, got Long"));
  for (const double bad : {kAll, -kAll, std::nan("")}) {
    auto scores = frames.clone();
    scores[7][2] = bad;
    EXPECT_THAT(push(scores), HasSubstr("log-probabilities must be finite, got"));
    EXPECT_THAT(push(scores), HasSubstr("for class 2 in frame 7"));
  }
  EXPECT_THAT(push(frames + 8), HasSubstr("log-probabilities must be at most 0, got"));
  decoder.push(frames.narrow(0, 10, 10));  // as if there had been no errors
  expect_equal(decoder.finish(), decode(frames, options), 0);
}

TEST(CtcDecoder, RefusesBadOptions) {
  const auto error = [](const std::function<void(CtcDecoderOptions&)>& change) {
    auto options = with_language(exact(4));
    change(options);
    return error_of([&] { CtcDecoder decoder(options); });
  };
  EXPECT_EQ(error([](auto&) {}), "");
  EXPECT_THAT(error([](auto& o) { o.blank = -1; }), HasSubstr("blank must be at least 0, got -1"));
  EXPECT_THAT(error([](auto& o) { o.beam = 0; }), HasSubstr("beam must be at least 1, got 0"));
  EXPECT_THAT(error([](auto& o) { o.best = 5; }), HasSubstr("best must be from 1 to beam = 4, got 5"));
  EXPECT_THAT(error([](auto& o) { o.token_threshold = std::nan(""); }), HasSubstr("token_threshold must be"));
  EXPECT_THAT(error([](auto& o) { o.language_weight = kAll; }), HasSubstr("must be finite numbers, got inf"));
  EXPECT_THAT(error([](auto& o) { o.beam = o.best = 1; }), HasSubstr("need a beam of at least 2, got 1"));
  EXPECT_THAT(error([](auto& o) { o.words[1] = 4; }),
              HasSubstr("word of token 1 must be from 0 to 3, got 4"));
  EXPECT_THAT(error([](auto& o) { o.words[1] = -1; }), HasSubstr("a word that the language model does not"));
  auto options = with_language(exact(4));
  options.words.pop_back();
  EXPECT_THAT(
      error_of([&] { CtcDecoder(options).push(random_frames(2, 4, 1)); }),
      HasSubstr("words must give each class its word, got 3 words, and log-probabilities of 4 classes"));
}

}  // namespace
}  // namespace quatrain::models
