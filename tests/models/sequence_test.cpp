#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/memory/step_memory.h"
#include "ops/reference.h"
#include "quatrain/models/language_model.h"
#include "quatrain/models/seq2seq.h"
#include "quatrain/models/seq2seq_decoder.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/parameters.h"

namespace quatrain {
namespace {

using models::LanguageModel;
using models::LanguageModelOptions;
using models::OutputLayer;
using models::Positions;
using models::Seq2Seq;
using models::Seq2SeqOptions;
using test::relative_error;

Seq2SeqOptions small(const std::string& algebra = "quaternion") {
  return Seq2SeqOptions(40, 48)
      .width(32)
      .heads(2)
      .feed_forward(64)
      .encoder_layers(2)
      .decoder_layers(2)
      .algebra(algebra);
}

at::Tensor words(int64_t batch, int64_t length, int64_t vocabulary = 40) {
  return torch::randint(vocabulary, {batch, length}, torch::kLong);
}

/// Weights of the layers' maps, as the papers count.
int64_t weights_of(const Seq2SeqOptions& options) {
  const Seq2Seq model(options);
  return nn::parameter_report(*model->encoder).weights + nn::parameter_report(*model->decoder).weights;
}

// QNLP table 3, PHM table 2: 6 + 6 layers of width 512, feed-forward 2,048.
TEST(Seq2Seq, CountsAreThePapers) {
  const auto base = [](const std::string& algebra) { return Seq2SeqOptions(4, 4).algebra(algebra); };
  EXPECT_EQ(weights_of(base("real")), 44040192);
  EXPECT_EQ(weights_of(base("quaternion").scope(nn::Scope::partial)), 29884416);
  EXPECT_EQ(weights_of(base("quaternion")), 11010048);
  EXPECT_EQ(weights_of(base("phm(2)")), 22020864);
  EXPECT_EQ(weights_of(base("phm(4)")), 11016192);
  const Seq2SeqOptions eight = Seq2SeqOptions(8, 8).algebra("phm(8)"),
                       sixteen = Seq2SeqOptions(16, 16).algebra("phm(16)");
  EXPECT_EQ(weights_of(eight), 5554176);
  // 96 maps, each with a structure of 16 * 16 * 16 numbers.
  EXPECT_EQ(weights_of(sixteen), 44040192 / 16 + 96 * 4096);
  // Four times as many where the width is doubled, and not twice as many, as table 2 has them with a dagger.
  const auto doubled = [](Seq2SeqOptions of) { return of.width(1024).heads(16).feed_forward(4096); };
  EXPECT_EQ(weights_of(doubled(eight)), 4 * 5505024 + 49152);
  EXPECT_EQ(weights_of(doubled(base("phm(4)"))), 4 * 11010048 + 96 * 64);
}

// QNLP table 4: 2 + 2 layers of width 128, feed-forward 512.
TEST(Seq2Seq, TinyCountsAreThePapers) {
  const auto tiny = [](const std::string& algebra) {
    return Seq2SeqOptions(4, 4)
        .width(128)
        .heads(4)
        .feed_forward(512)
        .encoder_layers(2)
        .decoder_layers(2)
        .algebra(algebra);
  };
  EXPECT_EQ(weights_of(tiny("real")), 917504);
  EXPECT_EQ(weights_of(tiny("quaternion").scope(nn::Scope::partial)), 622592);
  EXPECT_EQ(weights_of(tiny("quaternion")), 229376);
}

TEST(LanguageModel, CountsArePhydis) {
  const auto total = [](nn::NormStyle norm) {
    const LanguageModel model(LanguageModelOptions(28780)
                                  .algebra("phm(4)")
                                  .norm(norm)
                                  .packed(true)
                                  .embedding_in_algebra(true)
                                  .output(OutputLayer::algebra));
    return nn::parameter_report(*model).total;
  };
  EXPECT_EQ(total(nn::NormStyle::post), 2284012);
  EXPECT_EQ(total(nn::NormStyle::phydi), 2277880);
}

TEST(Seq2Seq, GivesAScoreForEachTokenOfTheTarget) {
  torch::manual_seed(0);
  for (const char* algebra : {"real", "quaternion", "phm(4)", "wkp(2)"})
    for (const OutputLayer output : {OutputLayer::tied, OutputLayer::real, OutputLayer::algebra})
      for (const bool in_algebra : {false, true})
        for (const Positions positions : {Positions::sinusoidal, Positions::learned}) {
          Seq2Seq model(small(algebra).output(output).embedding_in_algebra(in_algebra).positions(positions));
          const at::Tensor y = model(words(3, 7), words(3, 5));
          EXPECT_EQ(y.sizes(), (std::vector<int64_t>{3, 5, 48}));
          y.square().sum().backward();
          for (const auto& item : model->named_parameters()) {
            if (item.key().ends_with("key.bias")) continue;
            EXPECT_GT(item->grad().abs().sum().item<double>(), 0) << algebra << " " << item.key();
          }
        }
}

TEST(Seq2Seq, VocabulariesInAnAlgebraAreFilledUp) {
  torch::manual_seed(0);
  for (const OutputLayer output : {OutputLayer::tied, OutputLayer::real, OutputLayer::algebra})
    for (const bool in_algebra : {false, true})
      for (const bool shared : {false, true}) {
        Seq2Seq model(Seq2SeqOptions(41, 41)
                          .width(32)
                          .heads(2)
                          .feed_forward(64)
                          .encoder_layers(1)
                          .decoder_layers(1)
                          .algebra("quaternion")
                          .output(output)
                          .embedding_in_algebra(in_algebra)
                          .share_embeddings(shared));
        EXPECT_EQ(model(words(3, 7, 41), words(3, 5, 41)).sizes(), (std::vector<int64_t>{3, 5, 41}));
      }
}

// A real model has no more rows than tokens, its twin fills them up.
TEST(Seq2Seq, FilledVocabulariesAreConvertedTo) {
  torch::manual_seed(7);
  for (const OutputLayer output : {OutputLayer::tied, OutputLayer::real, OutputLayer::algebra})
    for (const bool in_algebra : {false, true}) {
      const auto options = [&](const char* algebra) {
        return Seq2SeqOptions(41, 30)
            .width(32)
            .heads(2)
            .feed_forward(64)
            .encoder_layers(1)
            .decoder_layers(1)
            .algebra(algebra)
            .attention(nn::AttentionKind::real)
            .output(output)
            .embedding_in_algebra(in_algebra);
      };
      Seq2Seq real(options("real")), twin(options("quaternion"));
      nn::fill_nearest(*real, *twin);
      EXPECT_EQ(twin->source->embedding->matrix().size(0), in_algebra ? 44 : 41);
      EXPECT_EQ(twin(words(2, 7, 41), words(2, 5, 30)).sizes(), (std::vector<int64_t>{2, 5, 30}));
      const at::Tensor rows = twin->target->embedding->matrix().narrow(0, 0, 30);
      EXPECT_EQ(torch::equal(rows, real->target->embedding->matrix()), !in_algebra);
    }
}

TEST(Seq2Seq, PaddingDoesNotMatter) {
  torch::manual_seed(1);
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    Seq2Seq model(small(algebra));
    model->eval();
    const at::Tensor source = words(2, 6), target = words(2, 4), expected = model(source, target);
    const at::Tensor longer = torch::cat({source, words(2, 3)}, 1);
    const at::Tensor padding = (torch::arange(9) >= 6).expand({2, 9});
    EXPECT_LT(relative_error(model(longer, target, padding), expected), 1e-5) << algebra;
    EXPECT_LT(relative_error(model(source, torch::cat({target, words(2, 2)}, 1)).narrow(1, 0, 4), expected),
              1e-5)
        << algebra << ": a place sees none that follows";
  }
}

// Word by word, with hypotheses that are chosen, repeated and dropped, as all words of a target at once.
TEST(Seq2SeqDecoder, StepsGiveWhatTheWholeGives) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  const auto steps = [](const std::string& algebra, nn::NormStyle norm, bool packed, bool printed,
                        torch::ScalarType type) {
    Seq2Seq model(small(algebra).norm(norm).packed(packed).printed(printed));
    if (norm == nn::NormStyle::phydi)
      for (const auto& item : model->named_parameters())
        if (item.key().ends_with("alpha")) item->fill_(0.5);
    model->eval();
    model->to(type);
    const at::Tensor source = words(3, 7);
    const at::Tensor padding = torch::arange(7) >= torch::tensor({7, 4, 1}).unsqueeze(1);
    models::Seq2SeqDecoder decoder(model, source, padding, 6, 5);
    at::Tensor parents = torch::tensor({0, 1, 2}), sentences = parents, so_far;
    for (int64_t step = 0; step < 5; ++step) {
      const at::Tensor tokens = torch::randint(48, {parents.size(0)}, torch::kLong);
      if (step > 0) sentences = sentences.index_select(0, parents);
      so_far = step == 0 ? tokens.unsqueeze(1)
                         : torch::cat({so_far.index_select(0, parents), tokens.unsqueeze(1)}, 1);
      const at::Tensor expected =
          model(source.index_select(0, sentences), so_far, padding.index_select(0, sentences))
              .select(1, step);
      // A step that fails changes nothing.
      EXPECT_THROW(decoder.step(tokens + 1000, parents), c10::Error);
      EXPECT_THROW(decoder.step(tokens, parents + 100), c10::Error);
      EXPECT_LT(relative_error(decoder.step(tokens, parents), expected),
                type == torch::kDouble ? 1e-12 : 1e-5)
          << step;
      parents = torch::randint(parents.size(0), {step == 0 ? 6 : step == 3 ? 2 : 5}, torch::kLong);
    }
    EXPECT_THROW(decoder.step(torch::zeros({2}, torch::kLong), torch::zeros({2}, torch::kLong)), c10::Error);
  };
  for (const auto type : {torch::kDouble, torch::kFloat})
    for (const char* algebra : {"real", "quaternion", "phm(4)"})
      for (const nn::NormStyle norm : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi})
        for (const auto& [packed, printed] : {std::pair{false, false}, {true, false}, {false, true}}) {
          if (printed && norm == nn::NormStyle::pre) continue;
          SCOPED_TRACE(std::string(algebra) + " " + nn::name(norm) + (printed ? " printed " : " ") +
                       c10::toString(type));
          steps(algebra, norm, packed, printed, type);
        }
}

TEST(Seq2SeqDecoder, ParentsMayLieAnywhere) {
  torch::manual_seed(4);
  Seq2Seq model(small());
  model->eval();
  const at::Tensor source = words(6, 5), tokens = words(3, 1, 48).squeeze(1), next = torch::tensor({2, 0, 1});
  const auto scores = [&](const at::Tensor& sentences) {
    models::Seq2SeqDecoder decoder(model, source, {}, 6, 4);
    decoder.step(tokens, sentences);
    return decoder.step(tokens, next);
  };
  EXPECT_TRUE(torch::equal(scores(torch::arange(6).slice(0, 0, 6, 2)), scores(torch::tensor({0, 2, 4}))));
  EXPECT_TRUE(torch::equal(scores(torch::tensor({3}).expand({3})), scores(torch::tensor({3, 3, 3}))));
  EXPECT_TRUE(torch::equal(scores(torch::tensor({1, 0, 5}, torch::kInt)), scores(torch::tensor({1, 0, 5}))));
}

TEST(Seq2SeqDecoder, RefusesASourceWithoutWords) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    Seq2Seq model(small());
    model->eval();
    model->to(type);
    const at::Tensor padding = torch::tensor({{false, false}, {true, true}});
    EXPECT_THROW(models::Seq2SeqDecoder(model, words(2, 2), padding, 2, 3), c10::Error) << type;
  }
}

TEST(Seq2SeqDecoder, StepsAfterTheThirdTakeNoMemory) {
  for (const std::string algebra : {"real", "quaternion", "phm(4)"}) {
    Seq2Seq model(small(algebra));
    model->eval();
    models::Seq2SeqDecoder decoder(model, words(2, 5), {}, 6, 40);
    const at::Tensor first = torch::tensor({0, 0, 1, 1, 1, 0}), next = torch::tensor({1, 0, 2, 5, 5, 3});
    const ops::StepMemory memory;
    const ops::StepMemory::Guard guard(memory);
    for (int i = 0; i < 3; ++i) decoder.step(words(6, 1, 48).squeeze(1), i == 0 ? first : next);
    const int64_t blocks = memory.blocks();
    EXPECT_GT(blocks, 0);
    for (int i = 3; i < 40; ++i) decoder.step(words(6, 1, 48).squeeze(1), next);
    EXPECT_EQ(memory.blocks(), blocks) << algebra;
  }
}

TEST(Seq2Seq, SharedEmbeddingsAreOne) {
  const auto options = Seq2SeqOptions(40, 40).width(32).heads(2).encoder_layers(1).decoder_layers(1);
  const auto count = [&](bool shared, OutputLayer output) {
    auto asked = options;
    return nn::parameter_report(*Seq2Seq(asked.share_embeddings(shared).output(output))).embeddings;
  };
  EXPECT_EQ(count(true, OutputLayer::tied), 40 * 32);
  EXPECT_EQ(count(false, OutputLayer::tied), 2 * 40 * 32);
  Seq2Seq model(Seq2SeqOptions(options).share_embeddings(true));
  const auto copy = std::dynamic_pointer_cast<models::Seq2SeqImpl>(model->clone());
  model->eval();
  copy->eval();
  const at::Tensor source = words(2, 6), target = words(2, 4);
  EXPECT_TRUE(torch::equal(model(source, target), copy->forward(source, target)));
}

TEST(Seq2Seq, RefusesBadArguments) {
  EXPECT_THROW(Seq2Seq(small().share_embeddings(true)), std::invalid_argument);
  EXPECT_THROW(Seq2Seq(Seq2SeqOptions(0, 4)), std::invalid_argument);
  Seq2Seq model(small().positions(Positions::learned).max_length(4));
  EXPECT_THROW(model(words(1, 5), words(1, 2)), c10::Error);
}

TEST(LanguageModel, APlaceSeesNoneThatFollows) {
  torch::manual_seed(2);
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::NormStyle norm : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi}) {
      LanguageModel model(
          LanguageModelOptions(40).width(32).heads(2).feed_forward(64).layers(2).algebra(algebra).norm(norm));
      model->eval();
      const at::Tensor tokens = words(2, 6), other = torch::cat({tokens.narrow(1, 0, 4), words(2, 2)}, 1);
      EXPECT_LT(relative_error(model(other).narrow(1, 0, 4), model(tokens).narrow(1, 0, 4)), 1e-6);
      EXPECT_LT(relative_error(model(tokens.narrow(1, 0, 4)), model(tokens).narrow(1, 0, 4)), 1e-5);
    }
}

}  // namespace
}  // namespace quatrain
