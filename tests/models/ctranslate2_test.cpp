#include "quatrain/models/ctranslate2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "ops/reference.h"
#include "temporary_folder.h"

namespace quatrain::models {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

// tests/python/test_ctranslate2.py runs CTranslate2 itself on what is written, where it is installed.
class CTranslate2 : public test::FolderTest {};

struct WrittenModel {
  uint32_t version = 0, revision = 0;
  std::string specification;
  std::map<std::string, at::Tensor> variables;
  std::map<std::string, std::string> aliases;
};

std::string whole_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

WrittenModel read_written(const fs::path& path) {
  const std::string bytes = whole_file(path);
  size_t at = 0;
  const auto number = [&]<class Number>(Number value) {
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  const auto text = [&] {
    const size_t size = number(uint16_t{0});
    const std::string value = bytes.substr(at, size - 1);
    EXPECT_EQ(bytes[at + size - 1], '\0');
    at += size;
    return value;
  };
  WrittenModel model;
  model.version = number(uint32_t{0});
  model.specification = text();
  model.revision = number(uint32_t{0});
  for (uint32_t count = number(uint32_t{0}); count > 0; --count) {
    const std::string name = text();
    std::vector<int64_t> sizes(number(uint8_t{0}));
    for (auto& size : sizes) size = number(uint32_t{0});
    constexpr std::array kTypes{torch::kFloat, torch::kChar, torch::kShort};
    const at::Tensor value = torch::empty(sizes, kTypes.at(number(uint8_t{0})));
    EXPECT_EQ(number(uint32_t{0}), value.nbytes()) << name;
    std::memcpy(value.data_ptr(), bytes.data() + at, value.nbytes());
    at += value.nbytes();
    model.variables[name] = value;
  }
  for (uint32_t count = number(uint32_t{0}); count > 0; --count) {
    const std::string alias = text();
    model.aliases[alias] = text();
  }
  EXPECT_EQ(at, bytes.size());
  return model;
}

Seq2SeqOptions small_options(const std::string& algebra = "quaternion") {
  return Seq2SeqOptions(12, 12)
      .width(16)
      .heads(2)
      .feed_forward(32)
      .encoder_layers(1)
      .decoder_layers(1)
      .algebra(algebra)
      .attention(nn::AttentionKind::real);
}

std::vector<std::string> some_pieces(int count = 12) {
  std::vector<std::string> pieces{"<pad>", "<unk>", "<s>", "</s>"};
  for (int i = 4; i < count; ++i) pieces.push_back("\"w" + std::to_string(i));
  return pieces;
}

TEST_F(CTranslate2, writes_what_it_reads) {
  const Seq2Seq model(small_options("real").norm(nn::NormStyle::pre).max_length(3000));
  write_ctranslate2(folder_ / "model", model, some_pieces(), some_pieces());
  const auto written = read_written(folder_ / "model" / "model.bin");
  EXPECT_EQ(written.version, 6u);
  EXPECT_EQ(written.specification, "TransformerSpec");
  EXPECT_EQ(written.revision, 7u);
  EXPECT_EQ(written.variables.at("encoder/pre_norm").item<int>(), 1);
  EXPECT_EQ(written.variables.at("decoder/num_heads").item<int>(), 2);
  EXPECT_EQ(written.variables.at("decoder/num_heads").scalar_type(), torch::kShort);
  EXPECT_EQ(written.variables.at("decoder/position_encodings/encodings").size(0), 3000);
  EXPECT_TRUE(written.variables.contains("decoder/layer_norm/gamma"));
  EXPECT_EQ(written.aliases.at("decoder/projection/weight"), "decoder/embeddings/weight");
  EXPECT_FALSE(written.aliases.contains("encoder/embeddings_0/weight"));
  EXPECT_THAT(whole_file(folder_ / "model" / "shared_vocabulary.json"), HasSubstr("\"\\\"w4\""));
  EXPECT_THAT(whole_file(folder_ / "model" / "config.json"), HasSubstr("\"layer_norm_epsilon\": 1e-05"));
  EXPECT_FALSE(fs::exists(folder_ / "model.part"));

  const Seq2Seq other(small_options("real").share_embeddings(true).output(OutputLayer::real));
  auto target = some_pieces();
  target.back() = "other";
  write_ctranslate2(folder_ / "other/", other, some_pieces(), target);
  const auto two = read_written(folder_ / "other" / "model.bin");
  EXPECT_EQ(two.aliases.at("encoder/embeddings_0/weight"), "decoder/embeddings/weight");
  EXPECT_EQ(two.variables.at("decoder/projection/bias").size(0), 12);
  EXPECT_EQ(two.variables.at("encoder/position_encodings/encodings").size(0), 2048);
  EXPECT_FALSE(two.variables.contains("decoder/layer_norm/gamma"));
  EXPECT_THAT(whole_file(folder_ / "other" / "target_vocabulary.json"), HasSubstr("\"other\""));
  EXPECT_FALSE(fs::exists(folder_ / "other" / "shared_vocabulary.json"));
}

TEST_F(CTranslate2, leaves_out_what_fills_a_vocabulary) {
  auto options = small_options().output(OutputLayer::algebra).embedding_in_algebra(true);
  Seq2Seq model(options.source_vocabulary(11).target_vocabulary(10));
  write_ctranslate2(folder_ / "model", model, some_pieces(11), some_pieces(10));
  const auto written = read_written(folder_ / "model" / "model.bin");
  EXPECT_EQ(written.variables.at("encoder/embeddings_0/weight").size(0), 11);
  EXPECT_EQ(written.variables.at("decoder/embeddings/weight").size(0), 10);
  EXPECT_EQ(written.variables.at("decoder/projection/bias").size(0), 10);
  EXPECT_TRUE(torch::equal(written.variables.at("decoder/projection/weight"),
                           model->output->matrix().narrow(0, 0, 10)));
}

// A plain split of the written Q, K and V gives our heads, whatever components they are cut inside, and the
// written output map takes them so.
TEST_F(CTranslate2, heads_lie_together) {
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  int number = 0;
  for (const char* algebra : {"quaternion", "phm(2)"})
    for (const auto split : {nn::HeadSplit::inside, nn::HeadSplit::printed})
      for (const bool packed : {false, true}) {
        Seq2Seq model(small_options(algebra).split(split).packed(packed));
        const fs::path folder = folder_ / std::to_string(number++);
        write_ctranslate2(folder, model, some_pieces(), some_pieces());
        const auto written = read_written(folder / "model.bin");
        auto& attention = model->encoder->layers[0]->as<nn::TransformerEncoderLayerImpl>()->attention;
        const at::Tensor x = torch::randn({1, 3, 16});
        const auto [Q, K, V] = attention->project(x);  // (1, 3, n, heads, m)
        const std::string name = "encoder/layer_0/self_attention/linear_";
        const auto parts =
            torch::linear(x, written.variables.at(name + "0/weight"), written.variables.at(name + "0/bias"))
                .chunk(3, -1);
        for (const auto& [ours, theirs] : {std::pair{Q, parts[0]}, {K, parts[1]}, {V, parts[2]}})
          EXPECT_LT(test::relative_error(theirs, ours.transpose(2, 3).reshape({1, 3, 16})), 1e-5)
              << algebra << " " << nn::name(split);
        const at::Tensor mixed = torch::randn_like(Q), together = mixed.transpose(2, 3).reshape({1, 3, 16});
        EXPECT_LT(test::relative_error(torch::linear(together, written.variables.at(name + "1/weight"),
                                                     written.variables.at(name + "1/bias")),
                                       attention->output->forward(mixed.reshape({1, 3, 16}))),
                  1e-5)
            << algebra << " " << nn::name(split);
      }
}

TEST_F(CTranslate2, refuses_what_it_does_not_have) {
  const auto expect = [&](const Seq2SeqOptions& options, const std::string& sentence) {
    const Seq2Seq model(options);
    EXPECT_THAT([&] { write_ctranslate2(folder_ / "model", model, some_pieces(), some_pieces()); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(sentence)));
    EXPECT_TRUE(fs::is_empty(folder_));
  };
  expect(small_options().attention(nn::AttentionKind::automatic),
         "has real attention, got attention = componentwise over quaternion");
  expect(small_options().norm(nn::NormStyle::phydi), "norm = post and norm = pre, got norm = phydi");
  expect(small_options().printed(true), "got norm = post with printed");
  expect(small_options().norm_per_component(true), "got norm_per_component");
  expect(small_options().activation("mish"), "no activation mish");

  const Seq2Seq model(small_options());
  const auto expect_pieces = [&](const std::vector<std::string>& pieces, const std::string& sentence) {
    EXPECT_THAT([&] { write_ctranslate2(folder_ / "model", model, some_pieces(), pieces); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(sentence)));
  };
  expect_pieces(some_pieces(11), "the target must have a piece for each of the model's 12 tokens, got 11");
  auto pieces = some_pieces();
  std::swap(pieces[2], pieces[3]);
  expect_pieces(pieces, "piece 2 of the target must be <s>, got \"</s>\"");
  pieces = some_pieces();
  pieces[7] = pieces[5];
  expect_pieces(pieces, "must differ, but \"\"w5\" is token 5 and token 7");
  pieces[7] = "\xFF";
  expect_pieces(pieces, "piece 7 of the target must be UTF-8");
}

TEST_F(CTranslate2, replaces_nothing) {
  const Seq2Seq model(small_options());
  fs::create_directories(folder_ / "model");  // empty: nothing is lost
  write_ctranslate2(folder_ / "model", model, some_pieces(), some_pieces());
  const std::string before = whole_file(folder_ / "model" / "model.bin");
  EXPECT_THAT([&] { write_ctranslate2(folder_ / "model", model, some_pieces(), some_pieces()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("exists already")));
  EXPECT_EQ(whole_file(folder_ / "model" / "model.bin"), before);
  EXPECT_FALSE(fs::exists(folder_ / "model.part"));
}

}  // namespace
}  // namespace quatrain::models
