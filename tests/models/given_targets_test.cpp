// Targets that are given: their scores and alignments.

#include <gtest/gtest.h>

#include <cmath>

#include "models/translators.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using models::Seq2Seq;
using test::random_sources, test::Tokens, test::trained_like;

// The weights of a decoder layer's attention to the source, by plain loops over heads, places and components.
std::vector<std::vector<double>> plain_weights(Seq2Seq& model, const Tokens& source, const Tokens& target,
                                               size_t layer) {
  const torch::NoGradGuard no_grad;
  const at::Tensor memory = model->encode(torch::tensor(source).unsqueeze(0));
  at::Tensor x = model->target->forward(torch::tensor(target).unsqueeze(0));
  for (size_t i = 0; i < layer; ++i)
    x = model->decoder->layers[i]->as<nn::TransformerDecoderLayerImpl>()->forward(x, memory);
  auto& block = *model->decoder->layers[layer]->as<nn::TransformerDecoderLayerImpl>();
  const at::Tensor seen = block.norm1->forward(x + block.attention->self_attention(x, {}, {}, true));
  auto& attention = *block.cross_attention;
  // (length, n, heads, m)
  const at::Tensor Q = attention.project_query(seen)[0],
                   K = std::get<0>(attention.project_key_value(memory, memory))[0];
  const bool componentwise = attention.kind() == nn::AttentionKind::componentwise;
  const int64_t n = Q.size(1), heads = Q.size(2), maps = componentwise ? n : 1;
  const at::Tensor table = componentwise ? test::table_of(attention.options.algebra().name) : at::Tensor();
  const double scale = 1 / std::sqrt(static_cast<double>(attention.options.width() / heads));
  std::vector<std::vector<double>> mean(target.size(), std::vector<double>(source.size(), 0));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t map = 0; map < maps; ++map)
      for (size_t l = 0; l < target.size(); ++l) {
        std::vector<double> weights;
        double sum = 0;
        for (size_t s = 0; s < source.size(); ++s) {
          double score = 0;
          for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) {
              const double entry = componentwise ? table[i][map][j].item<double>() : i == j;
              const auto row = [&](const at::Tensor& t, size_t place, int64_t component) {
                return t[static_cast<int64_t>(place)][component][head];
              };
              if (entry != 0) score += entry * row(Q, l, i).dot(row(K, s, j)).item<double>();
            }
          weights.push_back(std::exp(score * scale));
          sum += weights.back();
        }
        for (size_t s = 0; s < source.size(); ++s)
          mean[l][s] += weights[s] / sum / static_cast<double>(heads * maps);
      }
  return mean;
}

std::vector<Tokens> random_targets(const std::vector<Tokens>& sources) {
  auto targets = random_sources(static_cast<int64_t>(sources.size()));
  std::reverse(targets.begin(), targets.end());
  for (Tokens& target : targets) target.pop_back();  // the end mark
  return targets;
}

TEST(AlignTargets, EqualsAPlainLoopInDoublePrecision) {
  torch::manual_seed(31);
  using Kind = nn::AttentionKind;
  for (const auto& [algebra, kind] : {std::pair{"real", Kind::real},
                                      {"quaternion", Kind::real},
                                      {"quaternion", Kind::componentwise},
                                      {"phm(4)", Kind::real}})
    for (const int64_t layer : {-1, 0, 1}) {
      SCOPED_TRACE(std::string(algebra) + " " + nn::name(kind) + " " + std::to_string(layer));
      Seq2Seq model = trained_like(test::Design{algebra, kind});
      model->to(torch::kDouble);
      auto sources = random_sources(6);
      sources.push_back({3});  // an end mark alone
      const auto targets = random_targets(sources);
      const auto found = models::align_targets(model, sources, targets, {}, layer);
      for (size_t i = 0; i < sources.size(); ++i) {
        Tokens begun{2};
        begun.insert(begun.end(), targets[i].begin(), targets[i].end());
        const auto expected = plain_weights(model, sources[i], begun, layer == 0 ? 0 : 1);
        const at::Tensor weights =
            model->cross_weights(torch::tensor(begun).unsqueeze(0),
                                 model->encode(torch::tensor(sources[i]).unsqueeze(0)), layer)[0];
        ASSERT_EQ(found[i].size(), targets[i].size());
        for (size_t j = 0; j < targets[i].size(); ++j) {
          int64_t best = 0;
          for (size_t s = 0; s < sources[i].size(); ++s) {
            EXPECT_NEAR(weights[static_cast<int64_t>(j)][static_cast<int64_t>(s)].item<double>(),
                        expected[j][s], 1e-12);
            if (s + 1 < sources[i].size() && expected[j][s] > expected[j][static_cast<size_t>(best)])
              best = static_cast<int64_t>(s);
          }
          EXPECT_EQ(found[i][j], best) << i << " " << j;
        }
      }
    }
}

TEST(AlignTargets, DoNotDependOnTheBatchAndAreMeansOverModels) {
  torch::manual_seed(32);
  const Seq2Seq a = trained_like("quaternion"), b = trained_like("real");
  const models::Ensemble both({a, b});
  const auto sources = random_sources(12), targets = random_targets(sources);
  const auto together = models::align_targets(both, sources, targets);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(models::align_targets(both, {sources[i]}, {targets[i]})[0], together[i]);
    const torch::NoGradGuard no_grad;
    Tokens begun{2};
    begun.insert(begun.end(), targets[i].begin(), targets[i].end());
    at::Tensor sum = torch::zeros({});
    for (Seq2Seq model : both.models)
      sum = sum + model->cross_weights(torch::tensor(begun).unsqueeze(0),
                                       model->encode(torch::tensor(sources[i]).unsqueeze(0)));
    const auto words = std::max<int64_t>(1, static_cast<int64_t>(sources[i].size()) - 1);
    for (size_t j = 0; j < targets[i].size(); ++j)
      EXPECT_EQ(together[i][j], sum[0][static_cast<int64_t>(j)].narrow(0, 0, words).argmax().item<int64_t>());
  }
  EXPECT_THROW(models::align_targets(a, sources, targets, {}, 2), std::invalid_argument);
  EXPECT_THROW(models::align_targets(a, sources, targets, {}, -3), std::invalid_argument);
  EXPECT_THROW(models::align_targets(a, sources, {}), std::invalid_argument);
}

// More places than are scored at once, in a batch whose shorter target is padded.
TEST(ScoreTargets, LongTargetsAreScoredInPortions) {
  torch::manual_seed(33);
  Seq2Seq model = trained_like("real");
  model->to(torch::kDouble);
  const auto sources = random_sources(2);
  std::vector<Tokens> targets(2);
  for (int64_t i = 0; i < 700; ++i) targets[0].push_back(4 + (i * i) % 20);
  targets[1] = {7, 9};
  const auto scores = models::score_targets(model, sources, targets);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < 2; ++i) {
    Tokens begun{2}, ended = targets[i];
    begun.insert(begun.end(), targets[i].begin(), targets[i].end());
    ended.push_back(3);
    const at::Tensor expected =
        model->forward(torch::tensor(sources[i]).unsqueeze(0), torch::tensor(begun).unsqueeze(0))[0]
            .log_softmax(1)
            .gather(1, torch::tensor(ended).unsqueeze(1))
            .squeeze(1);
    EXPECT_LT((torch::tensor(scores[i], torch::kDouble) - expected).abs().max().item<double>(), 1e-10);
  }
}

}  // namespace
}  // namespace quatrain
