#include "quatrain/models/frame_viterbi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace quatrain::models {
namespace {

using testing::HasSubstr;
using Labels = std::vector<int64_t>;

constexpr int64_t kClasses = 4;

at::Tensor random_posteriors(int64_t frames, int64_t seed) {
  torch::manual_seed(seed);
  return (2 * torch::randn({frames, kClasses}, torch::kDouble)).log_softmax(1);
}

FrameTransitions counted() {
  FrameTransitions transitions(kClasses, 0.25);
  transitions.add(Labels{0, 0, 0, 1, 1, 2, 2, 2, 0});
  transitions.add(Labels{0, 3, 3, 3, 3, 1, 0});
  transitions.add(Labels{2});
  transitions.add({});
  return transitions;
}

/// The best of all sequences of labels.
Recognition best_of_all(const at::Tensor& posteriors, const FrameTransitions& transitions,
                        const ViterbiOptions& options, bool ended) {
  const auto rows = posteriors.accessor<double, 2>();
  const auto follow = transitions.log_probabilities(), start = transitions.starts(), end = transitions.ends(),
             prior = transitions.priors();
  const auto follows = follow.accessor<double, 2>();
  const auto starts = start.accessor<double, 1>(), ends = end.accessor<double, 1>(),
             priors = prior.accessor<double, 1>();
  Recognition best{{}, -std::numeric_limits<double>::infinity()};
  Labels labels(static_cast<size_t>(posteriors.size(0)), 0);
  for (bool done = false; !done;) {
    double score = options.transition_scale * (starts[labels.front()] + (ended ? ends[labels.back()] : 0));
    for (size_t t = 0; t < labels.size(); ++t) {
      score += rows[static_cast<int64_t>(t)][labels[t]] - options.prior_scale * priors[labels[t]];
      if (t == 0) continue;
      score += options.transition_scale * follows[labels[t - 1]][labels[t]];
      if (labels[t] != labels[t - 1]) score += options.insertion;
    }
    if (score > best.score) {
      best = {{}, score};
      for (size_t t = 0; t < labels.size(); ++t) {
        const auto frame = static_cast<int64_t>(t);
        if (t == 0 || labels[t] != labels[t - 1]) best.tokens.push_back({labels[t], frame, frame, 0});
        best.tokens.back().end = frame + 1;
        best.tokens.back().confidence += std::exp(rows[frame][labels[t]]);
      }
      for (auto& token : best.tokens) token.confidence /= static_cast<double>(token.end - token.begin);
    }
    done = true;
    for (auto& label : labels) {
      if (++label < kClasses) {
        done = false;
        break;
      }
      label = 0;
    }
  }
  return best;
}

void expect_same(const Recognition& found, const Recognition& expected, double tolerance) {
  EXPECT_NEAR(found.score, expected.score, tolerance);
  ASSERT_EQ(found.tokens.size(), expected.tokens.size());
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    const auto &a = found.tokens[i], &b = expected.tokens[i];
    EXPECT_EQ(a.token, b.token);
    EXPECT_EQ(a.begin, b.begin);
    EXPECT_EQ(a.end, b.end);
    EXPECT_NEAR(a.confidence, b.confidence, tolerance);
  }
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The best of the paths through all pairs of labels.
Recognition best_of_pairs(const at::Tensor& posteriors, const FrameTransitions& transitions,
                          const ViterbiOptions& options) {
  const int64_t classes = transitions.classes(), frames = posteriors.size(0);
  const auto change = options.insertion * (1 - torch::eye(classes, torch::kDouble));
  const auto follow = transitions.log_probabilities() * options.transition_scale + change;
  const auto priors = (transitions.priors() * options.prior_scale).masked_fill(~transitions.seen(), kNever);
  const auto local = posteriors - priors;
  at::Tensor best = transitions.starts() * options.transition_scale + local[0];
  std::vector<at::Tensor> from;
  for (int64_t t = 1; t < frames; ++t) {
    const auto [most, where] = (best.unsqueeze(1) + follow).max(0);
    from.push_back(where);
    best = most + local[t];
  }
  best = best + transitions.ends() * options.transition_scale;
  Labels labels{best.argmax().item<int64_t>()};
  for (auto where = from.rbegin(); where != from.rend(); ++where)
    labels.push_back((*where)[labels.back()].item<int64_t>());
  std::ranges::reverse(labels);
  Recognition found{{}, best.max().item<double>()};
  for (int64_t t = 0; t < frames; ++t) {
    const int64_t label = labels[static_cast<size_t>(t)];
    if (t == 0 || label != found.tokens.back().token) found.tokens.push_back({label, t, t, 0});
    found.tokens.back().end = t + 1;
    found.tokens.back().confidence += std::exp(posteriors[t][label].item<double>());
  }
  for (auto& token : found.tokens) token.confidence /= static_cast<double>(token.end - token.begin);
  return found;
}

TEST(FrameViterbi, OfManyClassesIsThatOfAllPairs) {
  constexpr int64_t kMany = 200, kFrames = 60;
  for (int64_t seed = 0; seed < 6; ++seed) {
    torch::manual_seed(seed);
    FrameTransitions transitions(kMany, 0.01);
    for (int64_t i = 0; i < 40; ++i) {
      const auto labels = torch::randint(kMany, {8}, torch::kLong).repeat_interleave(5);
      transitions.add(Labels(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()));
    }
    const auto posteriors = (static_cast<double>(seed) * torch::randn({kFrames, kMany}, torch::kDouble))
                                .log_softmax(1);  // of seed 0 all classes are alike
    for (const double scale : {1.0, 0.3, -0.5}) {
      const ViterbiOptions options{.prior_scale = 0.7, .transition_scale = scale, .insertion = -0.5};
      const auto found = viterbi(posteriors, transitions, options);
      const auto expected = best_of_pairs(posteriors, transitions, options);
      if (seed > 0)
        expect_same(found, expected, 1e-9);
      else
        EXPECT_NEAR(found.score, expected.score, 1e-9);
    }
  }
}

TEST(FrameTransitions, CountsAndSmooths) {
  const auto transitions = counted();
  EXPECT_EQ(transitions.frames(), 17);
  const auto follows = transitions.log_probabilities().exp(), ends = transitions.ends().exp();
  // Behind 0: 0 twice, 1 once, 3 once, the end twice, and a quarter for each of five.
  EXPECT_NEAR(follows[0][0].item<double>(), 2.25 / 7.25, 1e-12);
  EXPECT_NEAR(follows[0][1].item<double>(), 1.25 / 7.25, 1e-12);
  EXPECT_NEAR(follows[0][2].item<double>(), 0.25 / 7.25, 1e-12);
  EXPECT_NEAR(ends[0].item<double>(), 2.25 / 7.25, 1e-12);
  EXPECT_NEAR(ends[2].item<double>(), 1.25 / 5.25, 1e-12);
  EXPECT_NEAR(transitions.starts()[0].exp().item<double>(), 2.25 / 4, 1e-12);
  EXPECT_NEAR(transitions.priors()[3].exp().item<double>(), 4.25 / 18, 1e-12);
  EXPECT_TRUE(torch::allclose(follows.sum(1) + ends, torch::ones(kClasses, torch::kDouble)));
  EXPECT_TRUE(transitions.log_probabilities().isfinite().all().item<bool>());
  const FrameTransitions none(3);
  EXPECT_TRUE(torch::allclose(none.priors().exp(), torch::full({3}, 1.0 / 3, torch::kDouble)));
  EXPECT_TRUE(torch::allclose(none.ends().exp(), torch::full({3}, 0.25, torch::kDouble)));
}

TEST(FrameTransitions, AreKept) {
  const auto first = counted();
  FrameTransitions second(kClasses, 0.25);
  second.load(first.state());
  EXPECT_TRUE(second.log_probabilities().equal(first.log_probabilities()));
  second.add(Labels{1, 1});  // and goes on
  EXPECT_EQ(second.frames(), 19);
  EXPECT_EQ(first.frames(), 17);
}

TEST(FrameTransitions, RefusesWhatIsNoCount) {
  EXPECT_THAT(message_of([] { FrameTransitions none(0); }), HasSubstr("classes must be at least 1, got 0"));
  EXPECT_THAT(message_of([] { FrameTransitions none(2, 0); }), HasSubstr("must be a finite number above 0"));
  auto transitions = counted();
  EXPECT_THAT(message_of([&] {
                transitions.add(Labels{0, 1, 4});
              }),
              HasSubstr("labels must be from 0 to 3, got 4 in frame 2"));
  EXPECT_THAT(message_of([&] { transitions.add(Labels{-1}); }), HasSubstr("got -1 in frame 0"));
  EXPECT_EQ(transitions.frames(), 17);
  const auto error = [&](const char* name, const at::Tensor& tensor) {
    auto state = counted().state();
    state.erase(name);
    if (tensor.defined()) state[name] = tensor;
    return message_of([&] { transitions.load(state); });
  };
  EXPECT_THAT(error("ends", {}), HasSubstr("there is no tensor 'ends'"));
  EXPECT_THAT(error("ends", torch::zeros({4})), HasSubstr("'ends' must be Long of [4], got Float of [4]"));
  EXPECT_THAT(error("starts", torch::zeros({3}, torch::kLong)), HasSubstr("'starts' must be Long of [4]"));
  EXPECT_THAT(error("starts", torch::tensor({2, 0, 2, -1})), HasSubstr("'starts' must be counts, got -1"));
  EXPECT_THAT(error("starts", torch::tensor({2, 0, 2, 0})),
              HasSubstr("label 2 comes in 5 frames by what is before it, and in 4 by what is behind"));
  EXPECT_EQ(transitions.frames(), 17);
}

TEST(FrameViterbi, EqualsTheBestOfAllSequences) {
  const auto transitions = counted();
  size_t segments = 0;
  for (int64_t seed = 0; seed < 10; ++seed)
    for (const auto& options : {ViterbiOptions{}, ViterbiOptions{0, 0, 0}, ViterbiOptions{0.5, 1.5, -1},
                                ViterbiOptions{-0.2, 0.3, 2}}) {
      const auto posteriors = random_posteriors(6, seed);
      const auto found = viterbi(posteriors, transitions, options);
      expect_same(found, best_of_all(posteriors, transitions, options, true), 1e-10);
      segments += found.tokens.size();
      FrameViterbi search(transitions, options);
      search.push(posteriors);
      expect_same(search.result(), best_of_all(posteriors, transitions, options, false), 1e-10);
    }
  EXPECT_GT(segments, 80U);
  EXPECT_LT(segments, 220U);
}

TEST(FrameViterbi, PiecesGiveTheSame) {
  const auto transitions = counted();
  const auto posteriors = random_posteriors(200, 1);
  FrameViterbi search(transitions);
  for (int64_t utterance = 0; utterance < 2; ++utterance) {
    int64_t begin = 0;
    for (const int64_t size : {1, 0, 9, 90, 100}) {
      search.push(posteriors.narrow(0, begin, size));
      begin += size;
      search.result();
    }
    expect_same(search.finish(), viterbi(posteriors, transitions), 0);
  }
  EXPECT_TRUE(search.finish().tokens.empty());
  EXPECT_EQ(search.finish().score, 0);
  expect_same(viterbi(posteriors.to(torch::kBFloat16), transitions),
              viterbi(posteriors.to(torch::kBFloat16).to(torch::kDouble), transitions), 0);
  expect_same(viterbi(posteriors.t().contiguous().t(), transitions), viterbi(posteriors, transitions), 0);
}

TEST(FrameViterbi, FillsTheUtterance) {
  const auto found = viterbi(random_posteriors(300, 2), counted());
  ASSERT_GT(found.tokens.size(), 10U);
  EXPECT_EQ(found.tokens.front().begin, 0);
  EXPECT_EQ(found.tokens.back().end, 300);
  for (size_t i = 1; i < found.tokens.size(); ++i) {
    EXPECT_EQ(found.tokens[i].begin, found.tokens[i - 1].end);
    EXPECT_NE(found.tokens[i].token, found.tokens[i - 1].token);
  }
}

TEST(FrameViterbi, PriorsAreSubtracted) {
  const auto transitions = counted();
  const auto posteriors = random_posteriors(5, 3);
  const auto scaled = scaled_likelihoods(posteriors, transitions, 0.5);
  EXPECT_TRUE(torch::allclose(scaled, posteriors - 0.5 * transitions.priors()));
  EXPECT_EQ(scaled_likelihoods(posteriors.to(torch::kFloat), transitions).scalar_type(), torch::kFloat);
  // With equal posteriors the rarest label is the likeliest.
  const auto equal = torch::full({3, kClasses}, std::log(0.25));
  ViterbiOptions options;
  options.transition_scale = 0;
  const auto found = viterbi(equal, transitions, options);
  ASSERT_EQ(found.tokens.size(), 1U);
  EXPECT_EQ(found.tokens[0].token, transitions.priors().argmin().item<int64_t>());
  EXPECT_NEAR(found.tokens[0].confidence, 0.25, 1e-6);
  EXPECT_THAT(message_of([&] {
                scaled_likelihoods(torch::zeros({2, 3}), transitions);
              }),
              HasSubstr("floating-point numbers (..., 4), got Float of [2, 3]"));
}

TEST(FrameViterbi, WhatWasNeverSeenIsNoAnswer) {
  FrameTransitions transitions(kClasses);
  transitions.add(Labels{0, 0, 1, 1, 1, 0});  // neither 2 nor 3
  EXPECT_TRUE(transitions.seen().equal(torch::tensor({true, true, false, false})));
  // Rare, so that its prior would make it the likeliest.
  const auto frames = torch::tensor({0.5, 0.3, 0.15, 0.05}).log().expand({7, kClasses});
  for (const double prior_scale : {0.0, 1.0, 10.0})
    for (const auto& token : viterbi(frames, transitions, {.prior_scale = prior_scale}).tokens)
      EXPECT_LT(token.token, 2);
  for (const auto type : {torch::kFloat, torch::kHalf}) {
    const auto scaled = scaled_likelihoods(frames.to(type), transitions);
    EXPECT_TRUE((scaled.narrow(1, 2, 2) == kUnseenLikelihood).all().item<bool>());
    EXPECT_GT(scaled.narrow(1, 0, 2).min().item<double>(), -10);
  }
  EXPECT_TRUE(FrameTransitions(kClasses).seen().all().item<bool>());
}

TEST(FrameViterbi, RefusesBadFramesAndOptions) {
  const auto transitions = counted();
  EXPECT_THAT(message_of([&] {
                viterbi(torch::zeros({2, 3}), transitions);
              }),
              HasSubstr("FrameViterbi: the transitions are those of 4 classes, got log-probabilities of 3"));
  auto posteriors = random_posteriors(5, 3);
  posteriors[4][1] = std::nan("");
  EXPECT_THAT(message_of([&] { viterbi(posteriors, transitions); }),
              HasSubstr("must be finite, got nan for class 1 in frame 4"));
  ViterbiOptions options;
  options.insertion = std::nan("");
  EXPECT_THAT(message_of([&] { FrameViterbi search(transitions, options); }),
              HasSubstr("insertion must be a finite number, got nan"));
}

}  // namespace
}  // namespace quatrain::models
