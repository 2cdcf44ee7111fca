// Language models word by word: decoding with state, sampling, scoring in windows.

#include "quatrain/models/language_model.h"

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "anonymous_memory.h"
#include "ops/reference.h"
#include "quatrain/models/generate.h"
#include "quatrain/models/language_model_decoder.h"
#include "quatrain/models/score_text.h"
#include "quatrain/nn/parameters.h"
#include "threads.h"

namespace quatrain::models {
namespace {

using test::relative_error;

constexpr int64_t kTokens = 40;

LanguageModelOptions narrow(const std::string& algebra = "quaternion") {
  return LanguageModelOptions(kTokens).width(32).heads(2).feed_forward(64).layers(2).algebra(algebra);
}

// In eval mode, with scores that differ much.
LanguageModel ready(const LanguageModelOptions& options, c10::ScalarType type = torch::kDouble) {
  LanguageModel model(options);
  const torch::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters())
    if (item.key().ends_with("alpha")) item->fill_(0.5);
  for (auto& weight : model->inputs->embedding->parameters()) weight.mul_(3);
  model->eval();
  model->to(type);
  return model;
}

// Hypotheses are chosen, repeated and dropped between the steps.
TEST(LanguageModelDecoder, StepsGiveWhatTheWholeGives) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  for (const auto& [type, tolerance] : {std::pair{torch::kDouble, 1e-12}, {torch::kFloat, 1e-5}})
    for (const char* algebra : {"real", "quaternion", "phm(4)"})
      for (const nn::NormStyle norm : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi})
        for (const bool printed : {false, true}) {
          if (printed && norm == nn::NormStyle::pre) continue;
          for (const bool packed : {false, true}) {
            SCOPED_TRACE(std::string(algebra) + " " + nn::name(norm) + " " + c10::toString(type));
            LanguageModel model = ready(narrow(algebra).norm(norm).printed(printed).packed(packed), type);
            LanguageModelDecoder decoder(model, 6, 5);
            at::Tensor parents = torch::arange(3), so_far;
            for (int64_t step = 0; step < 5; ++step) {
              const at::Tensor tokens = torch::randint(kTokens, {parents.size(0)}, torch::kLong);
              so_far = step == 0 ? tokens.unsqueeze(1)
                                 : torch::cat({so_far.index_select(0, parents), tokens.unsqueeze(1)}, 1);
              // A step that fails changes nothing.
              EXPECT_THROW(decoder.step(tokens + kTokens, parents), c10::Error);
              if (step > 0) {
                EXPECT_THROW(decoder.step(tokens, parents + 100), c10::Error);
              }
              EXPECT_LT(relative_error(decoder.step(tokens, parents), model(so_far).select(1, step)),
                        tolerance);
              EXPECT_EQ(decoder.length(), step + 1);
              parents = torch::randint(parents.size(0), {step == 0 ? 6 : step == 3 ? 2 : 5}, torch::kLong);
            }
            const at::Tensor two = torch::zeros({2}, torch::kLong), seven = torch::zeros({7}, torch::kLong);
            EXPECT_THROW(decoder.step(two, two), c10::Error) << "it is full";
            decoder.clear();
            for (auto& weight : model->parameters())
              weight.mul_(1.1);  // as an optimizer may, between two texts
            const at::Tensor six = torch::arange(6), others = six.flip(0);
            const at::Tensor text = torch::stack({six, others}, 1), whole = model(text);
            EXPECT_LT(relative_error(decoder.step(six, six), whole.select(1, 0)), tolerance);
            EXPECT_LT(relative_error(decoder.step(others, six), whole.select(1, 1)), tolerance);
            EXPECT_EQ(decoder.length(), 2);
            EXPECT_THROW(LanguageModelDecoder(model, 6, 5).step(seven, seven), c10::Error);
          }
        }
  EXPECT_THROW(LanguageModelDecoder(LanguageModel(narrow()), 1, 1), c10::Error) << "it trains";
  EXPECT_THROW(LanguageModelDecoder(ready(narrow()), 0, 1), c10::Error);
}

TEST(LanguageModel, AVocabularyInAnAlgebraIsFilledUp) {
  torch::manual_seed(4);
  const auto rows = [](OutputLayer output, bool in_algebra, const char* algebra) {
    const auto options =
        LanguageModelOptions(41).algebra(algebra).output(output).embedding_in_algebra(in_algebra);
    return std::pair(options.embedded(41), options.scored(41));
  };
  EXPECT_EQ(rows(OutputLayer::tied, false, "quaternion"), std::pair(41L, 41L));
  EXPECT_EQ(rows(OutputLayer::tied, true, "quaternion"), std::pair(44L, 44L));
  EXPECT_EQ(rows(OutputLayer::real, true, "quaternion"), std::pair(44L, 41L));
  EXPECT_EQ(rows(OutputLayer::algebra, false, "phm(8)"), std::pair(41L, 48L));
  EXPECT_EQ(rows(OutputLayer::algebra, true, "real"), std::pair(41L, 41L));
  for (const OutputLayer output : {OutputLayer::tied, OutputLayer::real, OutputLayer::algebra}) {
    auto options = narrow().output(output).embedding_in_algebra(true);
    LanguageModel model(options.vocabulary_size(41));
    const at::Tensor tokens = torch::randint(41, {2, 5}, torch::kLong), scores = model(tokens);
    EXPECT_EQ(scores.sizes(), (std::vector<int64_t>{2, 5, 41}));
    model->eval();
    const at::Tensor row = torch::arange(2);
    EXPECT_EQ(LanguageModelDecoder(model, 2, 1).step(row, row).sizes(), (std::vector<int64_t>{2, 41}));
  }
}

TEST(Sample, TemperatureZeroTakesTheBest) {
  EXPECT_EQ(sample({1, 3, 2, 3}, {.temperature = 0}, 0.99), 1);
  EXPECT_EQ(sample({1, 3, 2}, {.top_k = 1}, 0.99), 1);
  EXPECT_EQ(sample({1, 3, 2}, {.top_p = 1e-9}, 0.99), 1);
}

TEST(Sample, ScoresThatAreNoneGiveNone) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sample({1, std::nan("")}, {}, 0.5), -1);
  EXPECT_EQ(sample({1, inf}, {}, 0.5), -1);
  EXPECT_EQ(sample({-inf, -inf}, {}, 0.5), -1);
  EXPECT_EQ(sample({}, {}, 0.5), -1);
  for (const SamplingOptions& wrong : {SamplingOptions{.temperature = -1},
                                       {.temperature = inf - inf},
                                       {.top_k = -1},
                                       {.top_p = 0},
                                       {.top_p = 1.5}})
    EXPECT_THROW(sample({1, 2}, wrong, 0.5), std::invalid_argument);
  for (const double draw : {0.0, 0.5, 0.999999}) EXPECT_EQ(sample({-inf, 1, -inf}, {}, draw), 1);
}

// Shares of many even draws against the formula.
TEST(Sample, DrawsByProbability) {
  const std::vector<double> scores{0.3, -1, 2, 1.1, 2};
  const auto shares = [&](const SamplingOptions& options) {
    constexpr int kDraws = 100000;
    std::vector<double> all(scores.size());
    for (int i = 0; i < kDraws; ++i)
      all[static_cast<size_t>(sample(scores, options, (i + 0.5) / kDraws))] += 1.0 / kDraws;
    return all;
  };
  const auto expected = [&](double temperature, const std::vector<size_t>& kept) {
    std::vector<double> all(scores.size());
    double sum = 0;
    for (const size_t i : kept) sum += all[i] = std::exp(scores[i] / temperature);
    for (double& share : all) share /= sum;
    return testing::Pointwise(testing::DoubleNear(2e-5), all);
  };
  EXPECT_THAT(shares({}), expected(1, {0, 1, 2, 3, 4}));
  EXPECT_THAT(shares({.temperature = 0.5}), expected(0.5, {0, 1, 2, 3, 4}));
  EXPECT_THAT(shares({.temperature = 2, .top_k = 3}), expected(2, {2, 3, 4}));
  EXPECT_THAT(shares({.top_k = 9}), expected(1, {0, 1, 2, 3, 4}));
  // The two best have .39 each.
  EXPECT_THAT(shares({.top_p = 0.3}), expected(1, {2}));
  EXPECT_THAT(shares({.top_p = 0.5}), expected(1, {2, 4}));
  EXPECT_THAT(shares({.top_p = 0.8}), expected(1, {2, 3, 4}));
  // What top_k leaves is the whole for top_p.
  EXPECT_THAT(shares({.top_k = 2, .top_p = 0.6}), expected(1, {2, 4}));
}

// Of many tokens, most of which are never put in order.
TEST(Sample, ChoosesAsIfAllWereSorted) {
  torch::manual_seed(4);
  for (const double spread : {0.01, 1.0, 5.0}) {
    const at::Tensor drawn =
        (torch::randn({1000}, torch::kDouble) * spread * 8).round() / 8;  // some are equal
    std::vector<double> scores(drawn.const_data_ptr<double>(), drawn.const_data_ptr<double>() + 1000);
    scores[17] = -std::numeric_limits<double>::infinity();
    std::vector<int64_t> order(1000);
    std::iota(order.begin(), order.end(), 0);
    const auto score = [&](int64_t token) { return scores[static_cast<size_t>(token)]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
    for (const SamplingOptions& options : {SamplingOptions{},
                                           {.top_k = 300},
                                           {.top_p = 0.5},
                                           {.top_p = 0.999},
                                           {.top_k = 100, .top_p = 0.9}}) {
      std::vector<double> sums;
      const size_t kept = options.top_k > 0 ? static_cast<size_t>(options.top_k) : order.size();
      for (size_t i = 0; i < kept; ++i)
        sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp(score(order[i]) - score(order[0])));
      const double limit = options.top_p * sums.back();
      while (sums.size() > 1 && sums[sums.size() - 2] >= limit) sums.pop_back();
      for (int i = 0; i < 500; ++i) {
        const double draw = (i + 0.5) / 500;
        const auto place = std::upper_bound(sums.begin(), sums.end(), draw * sums.back()) - sums.begin();
        EXPECT_EQ(sample(scores, options, draw), order[static_cast<size_t>(place)])
            << spread << " " << options.top_k << " " << options.top_p << " " << draw;
      }
      EXPECT_NE(sample(scores, options, std::nextafter(1.0, 0.0)), 17);
    }
  }
}

std::vector<int64_t> prompt(int64_t length, int64_t first) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < length; ++i) tokens.push_back(4 + (first + 7 * i * i) % (kTokens - 4));
  return tokens;
}

// As generate() says, with the whole text read again for each token.
std::vector<int64_t> continued_plainly(LanguageModel& model, std::vector<int64_t> text, uint64_t seed,
                                       const GenerationOptions& o) {
  if (static_cast<int64_t>(text.size()) > o.context) text.erase(text.begin(), text.end() - o.context);
  std::mt19937_64 random(seed);
  std::vector<int64_t> answer;
  size_t start = 0;
  while (static_cast<int64_t>(answer.size()) < o.tokens) {
    if (static_cast<int64_t>(text.size() - start) > o.context)
      start = text.size() - static_cast<size_t>(std::max<int64_t>(o.context / 2, 1));
    const std::vector<int64_t> seen(text.begin() + static_cast<int64_t>(start), text.end());
    at::Tensor scores = model(torch::tensor(seen, torch::kLong).unsqueeze(0))[0][-1].to(torch::kDouble);
    for (const int64_t token : o.never) scores[token] = -std::numeric_limits<double>::infinity();
    scores = scores.contiguous();
    const double* row = scores.const_data_ptr<double>();
    const int64_t token =
        sample({row, row + scores.numel()}, o.sampling, static_cast<double>(random() >> 11) * 0x1p-53);
    if (token == o.end) break;
    answer.push_back(token);
    text.push_back(token);
  }
  return answer;
}

TEST(Generate, IsAPlainLoop) {
  torch::manual_seed(5);
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"real", "phm(4)"}) {
    LanguageModel model = ready(narrow(algebra));
    std::vector<std::vector<int64_t>> prompts;
    std::vector<uint64_t> seeds;
    for (const int64_t length : {1, 8, 9, 20}) {
      prompts.push_back(prompt(length, length));
      seeds.push_back(static_cast<uint64_t>(length * 11));
    }
    const auto check = [&](const SamplingOptions& sampling, int64_t context) {
      const GenerationOptions options{.sampling = sampling, .tokens = 20, .context = context};
      const auto found = generate(model, prompts, seeds, options);
      for (size_t i = 0; i < prompts.size(); ++i)
        EXPECT_EQ(found[i].tokens, continued_plainly(model, prompts[i], seeds[i], options)) << context;
    };
    for (const int64_t context : {1, 2, 9, 64}) check({}, context);
    check({.temperature = 0}, 9);
    check({.temperature = 2, .top_k = 30, .top_p = 0.9}, 9);
  }
}

// In float32, where sums in another order would differ: alone, among few, among many, by one thread or two.
TEST(Generate, AContinuationDependsOnItsPromptAndSeedAlone) {
  torch::manual_seed(6);
  LanguageModel model = ready(narrow().layers(3), torch::kFloat);
  std::vector<std::vector<int64_t>> prompts;
  std::vector<uint64_t> seeds;
  for (int64_t i = 0; i < 70; ++i) {
    prompts.push_back(prompt(1 + i % 13, i));
    seeds.push_back(static_cast<uint64_t>(i));
  }
  const GenerationOptions options{.sampling = {.temperature = 1.5}, .tokens = 25, .context = 10};
  const auto tokens_of = [](const std::vector<Continuation>& all) {
    std::vector<std::vector<int64_t>> tokens;
    for (const auto& one : all) tokens.push_back(one.tokens);
    return tokens;
  };
  const test::Threads two(2);
  const auto all = tokens_of(generate(model, prompts, seeds, options));
  EXPECT_GT(std::set(all.begin(), all.end()).size(), 60);
  for (const size_t i : {size_t{0}, size_t{33}, size_t{69}})
    EXPECT_EQ(generate(model, {prompts[i]}, {seeds[i]}, options)[0].tokens, all[i]);
  const test::Threads one(1);
  EXPECT_EQ(tokens_of(generate(model, prompts, seeds, options)), all);
}

TEST(Generate, EndsAndNeverChoosesWhatItMust) {
  torch::manual_seed(7);
  LanguageModel model = ready(narrow());
  GenerationOptions options{.sampling = {.temperature = 100}, .tokens = 300, .context = 10};
  for (int64_t token = 4; token < 30; ++token) options.never.push_back(token);
  bool ended = false;
  for (const auto& one : generate(model, {prompt(3, 1), prompt(4, 2), prompt(1, 3)}, {1, 2, 3}, options)) {
    EXPECT_LE(one.tokens.size(), 300);
    ended = ended || one.tokens.size() < 300;
    for (const int64_t token : one.tokens) EXPECT_TRUE(token == 1 || token >= 30) << token;
  }
  EXPECT_TRUE(ended);
  {
    const torch::NoGradGuard no_grad;
    model->inputs->embedding->parameters().front().fill_(std::nan(""));
  }
  const auto broken = generate(model, {prompt(3, 1)}, {1}, options);
  EXPECT_FALSE(broken[0].finite);
  EXPECT_TRUE(broken[0].tokens.empty());
  EXPECT_THROW(generate(model, {{}}, {1}, options), std::invalid_argument);
  EXPECT_THROW(generate(model, {{1}}, {}, options), std::invalid_argument);
  EXPECT_THROW(generate(model, {{1}}, {1}, {.context = 0}), std::invalid_argument);
  EXPECT_THROW(generate(model, {{1}}, {1}, {.sampling = {.top_p = 0}}), std::invalid_argument);
  model->train();
  EXPECT_THROW(generate(model, {{1}}, {1}, options), std::invalid_argument);
}

// Each token once, with what stands before it in the first window that reaches it.
double scored_plainly(LanguageModel& model, const std::vector<int32_t>& text, int64_t window,
                      int64_t stride) {
  double sum = 0;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t token = 1; token < size; ++token) {
    int64_t begin = 0;
    while (begin + window < token) begin += stride;
    std::vector<int64_t> seen;
    for (int64_t i = begin; i < token; ++i) seen.push_back(text[static_cast<size_t>(i)]);
    const at::Tensor scores = model(torch::tensor(seen).unsqueeze(0))[0][-1].log_softmax(0);
    sum += scores[text[static_cast<size_t>(token)]].item<double>();
  }
  return sum;
}

TEST(ScoreText, ATextsScoreDependsOnItAlone) {
  torch::manual_seed(9);
  LanguageModel model = ready(narrow().layers(3), torch::kFloat);
  std::vector<std::vector<int32_t>> texts;
  for (int64_t i = 0; i < 9; ++i) {
    const auto tokens = prompt(1 + 17 * i, i);
    texts.emplace_back(tokens.begin(), tokens.end());
  }
  const test::Threads two(2);
  const auto all = score_texts(model, texts, {8, 3});
  const test::Threads one(1);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto alone = score_texts(model, {texts[i]}, {8, 3})[0];
    EXPECT_EQ(alone.log_probability, all[i].log_probability) << i;
    EXPECT_EQ(alone.tokens, static_cast<int64_t>(texts[i].size()) - 1);
  }
}

TEST(ScoreText, IsAPlainLoop) {
  torch::manual_seed(8);
  const torch::NoGradGuard no_grad;
  for (const OutputLayer output : {OutputLayer::tied, OutputLayer::algebra}) {
    LanguageModel model = ready(narrow("phm(4)").output(output));
    for (const int64_t length : {2, 7, 8, 9, 50}) {
      std::vector<int32_t> text;
      for (int64_t i = 0; i < length; ++i) text.push_back(static_cast<int32_t>((3 + 5 * i * i) % kTokens));
      for (const auto& [window, stride] :
           {std::pair<int64_t, int64_t>{8, 0}, {8, 3}, {8, 1}, {1, 0}, {64, 5}}) {
        SCOPED_TRACE(std::to_string(length) + " " + std::to_string(window) + " " + std::to_string(stride));
        const TextScore found = score_text(model, text, {window, stride});
        EXPECT_EQ(found.tokens, length - 1);
        EXPECT_NEAR(found.log_probability, scored_plainly(model, text, window, stride > 0 ? stride : window),
                    1e-9);
      }
    }
  }
  LanguageModel model = ready(narrow());
  EXPECT_EQ(score_text(model, std::vector<int32_t>{5}).tokens, 0);
  EXPECT_EQ(score_text(model, {}).log_probability, 0);
  EXPECT_THROW(score_text(model, {}, {4, 5}), std::invalid_argument);
  EXPECT_THROW(score_text(model, {}, {0, 0}), std::invalid_argument);
  model->train();
  EXPECT_THROW(score_text(model, {}), std::invalid_argument);
}

// With a stride of 1 there are as many as tokens, of which a text may have more than fit into memory.
TEST(ScoreText, ItsWindowsAreNotKept) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what is freed stays in memory for a while";
#endif
  struct Stop {};
  const LanguageModel model = ready(narrow());
  score_text(model, std::vector<int32_t>(100), {8, 1});
  const std::vector<int32_t> text(1 << 21);
  test::give_back_free_memory();
  const int64_t before = test::anonymous_memory();
  int64_t after = 0;
  const auto stop = [&] {
    after = test::anonymous_memory();
    throw Stop{};
  };
  EXPECT_THROW(score_text(model, text, {8, 1}, stop), Stop);
  EXPECT_LT(after - before, 16 << 20);
}

}  // namespace
}  // namespace quatrain::models
