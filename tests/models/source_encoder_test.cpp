// The encoder of a decoder beside the model's own, and decoders that go on with the plans of others.

#include "models/source_encoder.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "ops/linear/resolved.h"
#include "ops/reference.h"
#include "quatrain/models/seq2seq_decoder.h"

namespace quatrain {
namespace {

using models::Seq2Seq;
using models::Seq2SeqDecoder;
using models::Seq2SeqOptions;
using models::SourceEncoder;
using test::relative_error;

Seq2SeqOptions two_layers(const std::string& algebra) {
  return Seq2SeqOptions(40, 48)
      .width(32)
      .heads(2)
      .feed_forward(64)
      .encoder_layers(2)
      .decoder_layers(1)
      .algebra(algebra);
}

Seq2Seq in_eval(const Seq2SeqOptions& options) {
  torch::manual_seed(7);
  Seq2Seq model(options);
  const torch::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters())
    if (item.key().ends_with("alpha")) item->fill_(0.5);
  model->eval();
  return model;
}

/// Sources of so many words each.
struct Sources {
  at::Tensor lengths, tokens, padding;

  explicit Sources(const std::vector<int32_t>& words)
      : lengths(torch::tensor(words, torch::kInt)),
        tokens(torch::randint(40, {lengths.size(0), lengths.max().item<int32_t>()}, torch::kLong)),
        padding(torch::arange(tokens.size(1)) >= lengths.unsqueeze(1)) {}
};

/// Whether a processor multiplies the layers' maps on the engine. For real ones it may take ATen's products.
bool on_engine(Seq2Seq model, int64_t rows) {
  const auto& layer = *model->encoder->layers[0]->as<nn::TransformerEncoderLayerImpl>();
  const auto is = [&](const nn::Linear& map) {
    const auto operands = map->operands(false);
    return ops::ResolvedLinear::of(operands.S, map->bias, operands.product, map->options.way(), rows)
        .has_value();
  };
  return is(layer.feed_forward->linear1) && is(layer.attention->output);
}

void compare(Seq2Seq model, SourceEncoder& encoder, const Sources& sources) {
  for (const at::Tensor& padding : {sources.padding, at::Tensor()}) {
    const nn::Words words(padding);
    const at::Tensor lengths =
        padding.defined() ? sources.lengths
                          : torch::full_like(sources.lengths, static_cast<double>(sources.tokens.size(1)));
    const at::Tensor mine = words.places(encoder(sources.tokens, words, lengths)),
                     its = words.places(model->encode_words(sources.tokens, words));
    ASSERT_EQ(mine.sizes(), its.sizes());
    const at::Tensor some = (torch::arange(its.size(1)) < lengths.unsqueeze(1)).unsqueeze(2);
    EXPECT_LT(relative_error(mine * some, its * some), 2e-6) << sources.lengths;
    const at::Tensor rows = words.rows(sources.tokens);
    EXPECT_EQ(encoder.by_kernels(), sources.tokens.size(1) <= 64 &&
                                        model->parameters()[0].scalar_type() == at::kFloat &&
                                        on_engine(model, rows.numel()));
  }
}

TEST(SourceEncoder, GivesWhatTheModelsOwnGives) {
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::NormStyle norm : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi})
      for (const auto attention : {nn::AttentionKind::real, nn::AttentionKind::componentwise})
        for (const bool packed : {false, true}) {
          if (attention == nn::AttentionKind::componentwise && algebra == std::string("phm(4)")) continue;
          SCOPED_TRACE(std::string(algebra) + " " + nn::name(norm) + " " + nn::name(attention) +
                       (packed ? " packed" : ""));
          Seq2Seq model = in_eval(two_layers(algebra).norm(norm).attention(attention).packed(packed));
          SourceEncoder encoder(model);
          // Much padding and little: words without it, and the places themselves.
          for (const auto& lengths : {std::vector<int32_t>{7, 1, 3}, {8, 7, 8}, {1}, {64, 2}, {5, 5}})
            compare(model, encoder, Sources(lengths));
        }
}

TEST(SourceEncoder, KernelsServeShortSourcesInFloat) {
  const torch::NoGradGuard no_grad;
  Seq2Seq model = in_eval(two_layers("quaternion"));
  SourceEncoder encoder(model);
  const auto served = [&](int32_t words) {
    compare(model, encoder, Sources({words}));
    return encoder.by_kernels();
  };
  EXPECT_EQ(served(64), on_engine(model, 64));
  EXPECT_FALSE(served(65));
  EXPECT_EQ(served(3), on_engine(model, 3));
  model->to(torch::kDouble);
  EXPECT_FALSE(served(3));
}

TEST(Seq2SeqDecoder, RefusesPaddingAndPlansOfOthers) {
  const torch::NoGradGuard no_grad;
  Seq2Seq model = in_eval(two_layers("quaternion")), other = in_eval(two_layers("quaternion"));
  const at::Tensor source = torch::randint(40, {2, 8}, torch::kLong);
  for (const int64_t texts : {1, 3})
    EXPECT_THROW(Seq2SeqDecoder(model, source, torch::zeros({texts, 8}, torch::kBool), 2, 3), c10::Error);
  EXPECT_THROW(Seq2SeqDecoder(model, source.flatten(), {}, 2, 3), c10::Error);
  const Seq2SeqDecoder first(model, source, {}, 2, 3);
  EXPECT_NO_THROW(Seq2SeqDecoder(model, source, {}, 2, 3, first.plans()));
  EXPECT_THROW(Seq2SeqDecoder(other, source, {}, 2, 3, first.plans()), c10::Error);
  const nn::Words words;
  SourceEncoder encoder(model);
  EXPECT_THROW(encoder(source, words, torch::full({3}, 8, torch::kInt)), c10::Error);
}

// An answer does not depend on the batches before.
TEST(Seq2SeqDecoder, PlansOfAnotherChangeNoBit) {
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    Seq2Seq model = in_eval(two_layers(algebra));
    const auto scores = [&](const Sources& sources, std::shared_ptr<Seq2SeqDecoder::Plans>* plans) {
      const at::Tensor parents = torch::arange(sources.tokens.size(0));
      Seq2SeqDecoder decoder(model, sources.tokens, sources.padding, parents.size(0), 3,
                             plans ? *plans : nullptr);
      if (plans) *plans = decoder.plans();
      return torch::stack({decoder.step(parents % 48, parents), decoder.step((parents + 1) % 48, parents)});
    };
    std::shared_ptr<Seq2SeqDecoder::Plans> plans;
    for (int32_t round = 0; round < 2; ++round) {
      // More numbers of rows than plans keep, and more rows than they keep plans for.
      for (const int32_t count : {2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1100, 12, 2}) {
        Sources sources(std::vector<int32_t>(static_cast<size_t>(count), 3 + count % 20));
        EXPECT_TRUE(torch::equal(scores(sources, &plans), scores(sources, nullptr))) << algebra << count;
      }
      for (at::Tensor& weight : model->parameters()) weight.mul_(1.25);
      model->train();
      model->eval();
    }
  }
}

}  // namespace
}  // namespace quatrain
