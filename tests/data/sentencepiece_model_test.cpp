// Models of SentencePiece that others have trained.

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "data/random.h"
#include "quatrain/data/pieces.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Arguments = std::unordered_map<std::string, std::string>;

class Lines final : public sentencepiece::SentenceIterator {
 public:
  Lines() {
    const std::vector<std::string> stems{"haus",   "baum",   "garten", "schule",
                                         "freund", "wasser", "apfel",  "licht"},
        prefixes{"", "vor", "nach", "unter", "haupt"}, suffixes{"", "e", "er", "chen", "los", "lich"};
    Random random(0);
    for (int i = 0; i < 300; ++i) {
      std::string& line = lines_.emplace_back();
      for (uint64_t word = 0; word < 3 + random.below(6); ++word)
        line += random.pick(prefixes) + random.pick(stems) + random.pick(suffixes) + " ";
    }
  }
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_;
  size_t at_ = 0;
};

class SentencePieceModelTest : public DataTest {
 protected:
  // The content of a model of that kind, as spm_train writes it.
  static std::string trained(const std::string& kind, const Arguments& more = {}) {
    Arguments all{{"model_type", kind}, {"vocab_size", "100"}, {"minloglevel", "2"}};
    if (kind == "word" || kind == "char") all["hard_vocab_limit"] = "false";
    for (const auto& [name, value] : more) all[name] = value;
    Lines lines;
    std::string content;
    const auto status = sentencepiece::SentencePieceTrainer::Train(all, &lines, &content);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return content;
  }
  Pieces load(const std::string& content) const {
    return Pieces::load_sentencepiece(write("spm.model", content));
  }
  std::string error(const std::string& content) const {
    return error_of([&] { load(content); });
  }
};

// Marks wherever they are, and other kinds of pieces that a model may have.
TEST_F(SentencePieceModelTest, CutsLinesAsBeforeWithOurMarks) {
  const std::vector<Arguments> ways{
      {},  // <unk>, <s>, </s>
      {{"pad_id", "3"}, {"unk_id", "2"}, {"bos_id", "1"}, {"eos_id", "0"}},
      {{"bos_id", "-1"}, {"eos_id", "0"}, {"unk_id", "1"}, {"unk_piece", "[UNK]"}, {"eos_piece", "[SEP]"}},
      {{"vocab_size", "400"},
       {"byte_fallback", "true"},
       {"hard_vocab_limit", "false"},
       {"user_defined_symbols", "<mask>,@baum"},
       {"control_symbols", "<2en>"},
       {"normalization_rule_name", "nmt_nfkc_cf"}},
  };
  for (const std::string kind : {"unigram", "bpe"})
    for (const Arguments& way : ways) {
      if (kind == "bpe" && way.contains("hard_vocab_limit")) continue;  // it has too few pieces
      const std::string content = trained(kind, way);
      sentencepiece::SentencePieceProcessor original;
      ASSERT_TRUE(original.LoadFromSerializedProto(content).ok());
      const Pieces pieces = load(content);
      EXPECT_EQ(name(pieces.kind()), kind);
      for (int64_t id = 0; id < 4; ++id)
        EXPECT_EQ(pieces.piece(id), (std::vector{"<pad>", "<unk>", "<s>", "</s>"})[static_cast<size_t>(id)]);

      std::vector<std::string> others, kept;
      const std::vector<int> marks{original.unk_id(), original.bos_id(), original.eos_id(),
                                   original.pad_id()};
      for (int id = 0; id < original.GetPieceSize(); ++id)
        if (std::ranges::find(marks, id) == marks.end()) others.push_back(original.IdToPiece(id));
      for (int64_t id = 4; id < pieces.size(); ++id) kept.push_back(pieces.piece(id));
      EXPECT_EQ(kept, others);

      for (const std::string line :
           {"baumhauschen  @baum licht", "\xEF\xAC\x81 HAUS <mask>", "Q <s> </s>", "\xE6\x9C\xA8 baum"}) {
        std::vector<std::string> cut, expected;
        std::vector<int> ids;
        for (const int32_t id : pieces.encode(line)) cut.push_back(pieces.piece(id));
        ASSERT_TRUE(original.Encode(line, &ids).ok());
        for (const int id : ids)
          expected.push_back(id == original.unk_id() ? "<unk>" : original.IdToPiece(id));
        EXPECT_EQ(cut, expected) << line;
      }
      const auto ids = pieces.encode("gartenlich baum");
      EXPECT_EQ(pieces.decode({ids.begin(), ids.end()}), "gartenlich baum");
      pieces.save(folder_ / "pieces");
      EXPECT_EQ(Pieces::load(folder_ / "pieces"), pieces);
    }
}

TEST_F(SentencePieceModelTest, OurOwnModelsStayWhatTheyAre) {
  PieceOptions options;
  options.size = 100;
  Lines lines;
  const Pieces learned = Pieces::train(
      [&](std::string& line) {
        if (lines.done()) return false;
        line = lines.value();
        lines.Next();
        return true;
      },
      options);
  learned.save(folder_ / "pieces");
  std::ifstream stream(folder_ / "pieces", std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  content.erase(0, content.find('\n') + 1);
  EXPECT_TRUE(load(content) == learned);
}

TEST_F(SentencePieceModelTest, WhatIsNoModelIsRefused) {
  const std::string whole = trained("unigram"),
                    no_model = "must be a whole model of SentencePiece, as spm_train writes it (NAME.model)";
  for (const std::string other : {"", "<unk>\t0\n<s>\t0\n", "\n\n\n", "quatrain pieces 1 words 0 00000000\n"})
    EXPECT_THAT(error(other), AllOf(HasSubstr("spm.model"), HasSubstr(no_model))) << other;
  for (size_t size = 1; size < whole.size(); size += 997)
    EXPECT_THAT(error(whole.substr(0, size)), HasSubstr(no_model)) << size;
  for (const std::string kind : {"word", "char"})
    EXPECT_THAT(error(trained(kind)), HasSubstr("must be a model of SentencePiece with model_type unigram or "
                                                "bpe, got one of " +
                                                kind));
  EXPECT_THAT(error_of([&] { Pieces::load_sentencepiece(folder_ / "none"); }),
              HasSubstr("there is no such file"));
}

// Whatever is wrong in a model: SentencePiece itself reads beyond the ends of tables that were changed.
TEST_F(SentencePieceModelTest, DamageIsNeverFollowed) {
  const std::string whole = trained("bpe");
  Random random(0);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    damaged[random.below(damaged.size())] ^= static_cast<char>(1 << random.below(8));
    try {
      const Pieces pieces = load(damaged);
      for (uint32_t first = 0xC2; first < 0xF0; ++first)
        for (const char* rest : {"\x80", "\xA1\x88", "\xBF\xBF", "\x9F\x81", "\xA0"})
          pieces.encode(std::string(1, static_cast<char>(first)) + rest);
    } catch (const c10::Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  std::string rules = whole;
  rules.replace(whole.find("nmt_nfkc") + 1000, 4, "\xFF\xFF\xFF\x7F");
  EXPECT_THAT(error(rules), HasSubstr("holds a model of SentencePiece that is damaged; copy it again"));
}

// SentencePiece takes the root of the rules' trie without a look at its label.
TEST_F(SentencePieceModelTest, RootOfTheRulesIsLookedAt) {
  std::string model = trained("bpe");
  size_t at = model.find("nmt_nfkc") + 8;
  ASSERT_EQ(model[at], '\x12');
  while (model[++at] & 0x80) continue;  // the length
  model[at + 4 + 4] ^= '\x80';          // behind the size of the units, the first one's last byte
  EXPECT_THAT(error(model), HasSubstr("is damaged; copy it again"));
}

TEST_F(SentencePieceModelTest, RulesOfTheWayBackAreLookedAtToo) {
  EXPECT_THAT(error(trained("unigram") + std::string("\x2A\x06\x12\x04\xFF\xFF\xFF\x7F")),
              HasSubstr("is damaged; copy it again"));
  // A number of a field that SentencePiece would read as the rules'.
  EXPECT_THAT(error(trained("unigram") + std::string("\x9A\x80\x80\x80\x10\x00", 6)),
              HasSubstr("must be a whole model of SentencePiece"));
}

TEST_F(SentencePieceModelTest, PiecesNamedAsMarksAreRefused) {
  EXPECT_THAT(
      error(trained("bpe", {{"user_defined_symbols", "<pad>"}})),
      HasSubstr("has the piece <pad> for text, which is the name of a mark; train the model without"));
}

}  // namespace
}  // namespace quatrain::data
