#include "quatrain/data/pieces.h"

#include <cstdlib>

#include "anonymous_memory.h"
#include "data/random.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PiecesTest : public DataTest {
 protected:
  static Pieces train(std::vector<std::string> lines, const PieceOptions& options) {
    size_t at = 0;
    return Pieces::train(
        [&](std::string& line) {
          if (at == lines.size()) return false;
          line = lines[at++];
          return true;
        },
        options);
  }
  static PieceOptions of(PieceKind kind, int64_t size = 0) {
    PieceOptions options;
    options.kind = kind;
    options.size = size;
    return options;
  }
  static std::vector<std::string> all(const Pieces& pieces) {
    std::vector<std::string> list;
    for (int64_t id = 0; id < pieces.size(); ++id) list.push_back(pieces.piece(id));
    return list;
  }
  static std::vector<std::string> cut(const Pieces& pieces, std::string_view line) {
    std::vector<std::string> list;
    for (const int32_t id : pieces.encode(line)) list.push_back(pieces.piece(id));
    return list;
  }
  static std::string back(const Pieces& pieces, std::string_view line) {
    const auto ids = pieces.encode(line);
    return pieces.decode({ids.begin(), ids.end()});
  }
  /// Sentences of a small language, enough for a few hundred pieces.
  static std::vector<std::string> sentences(int count, uint64_t seed = 0) {
    const std::vector<std::string> stems{"haus",   "baum",   "garten", "schule",
                                         "freund", "wasser", "apfel",  "licht"},
        prefixes{"", "vor", "nach", "unter", "haupt"}, suffixes{"", "e", "er", "chen", "los", "lich"};
    Random random(seed);
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      std::string line;
      for (uint64_t word = 0; word < 4 + random.below(8); ++word)
        line += (word > 0 ? " " : "") + random.pick(prefixes) + random.pick(stems) + random.pick(suffixes);
      lines.push_back(line + ".");
    }
    return lines;
  }
  static std::vector<PieceOptions> every_kind() {
    return {of(PieceKind::characters), of(PieceKind::words), of(PieceKind::basic_english),
            of(PieceKind::unigram, 120), of(PieceKind::bpe, 120)};
  }
};

TEST_F(PiecesTest, CharactersAreCodePoints) {
  const auto pieces = train({"x=1,y=-2", "xx \xC3\xBC"}, of(PieceKind::characters));
  EXPECT_THAT(all(pieces), ElementsAre("<pad>", "<unk>", "<s>", "</s>", "x", "=", " ", ",", "-", "1", "2",
                                       "y", "\xC3\xBC"));
  EXPECT_THAT(pieces.encode("y \xC3\xBC?"), ElementsAre(11, 6, 12, Pieces::kUnknown));
  EXPECT_EQ(pieces.decode({Pieces::kBegin, 11, 6, 12, Pieces::kUnknown, Pieces::kEnd, Pieces::kPad}),
            "y \xC3\xBC<unk>");
  EXPECT_THAT(pieces.encode("\xFFx"), ElementsAre(Pieces::kUnknown, 4));
  EXPECT_THAT(pieces.encode(""), IsEmpty());
}

TEST_F(PiecesTest, WordsStandBetweenSpaces) {
  const std::vector<std::string> lines{" the  dog saw the\tcat ", "the <unk> dog", "<pad> </s>"};
  const auto pieces = train(lines, of(PieceKind::words));
  EXPECT_THAT(all(pieces), ElementsAre("<pad>", "<unk>", "<s>", "</s>", "the", "dog", "cat", "saw"));
  EXPECT_THAT(pieces.encode("the fox <s> saw </s>"), ElementsAre(4, 1, 1, 7, 1));
  EXPECT_EQ(back(pieces, " the  big dog"), "the <unk> dog");
  EXPECT_EQ(pieces.id("dog"), 5);
  EXPECT_EQ(pieces.id("fox"), Pieces::kUnknown);
  EXPECT_EQ(pieces.id("</s>"), Pieces::kEnd);
  auto options = of(PieceKind::words);
  options.min_count = 2;
  EXPECT_EQ(train(lines, options).size(), 6);
  options.min_count = 1;
  options.size = 5;
  EXPECT_THAT(all(train(lines, options)), ElementsAre("<pad>", "<unk>", "<s>", "</s>", "the"));
}

// What torchtext 0.18 answers to get_tokenizer("basic_english").
TEST_F(PiecesTest, BasicEnglishIsTorchtexts) {
  const std::string line =
      " It's \"q\"uoted; A.B: (see) x,y!? <br />end <BR />END\xC2\xA0\xC3\x89t\xC3\xA9 = @-@ $5 a\"b ";
  const auto pieces = train({line}, of(PieceKind::basic_english));
  EXPECT_THAT(cut(pieces, line),
              ElementsAre("it", "'", "s", "quoted", "a", ".", "b", "(", "see", ")", "x", ",", "y", "!", "?",
                          "end", "end", "\xC3\xA9t\xC3\xA9", "=", "@-@", "$5", "ab"));
  EXPECT_EQ(pieces.cut(line), cut(pieces, line));
  EXPECT_THAT(pieces.cut("Lost, word"), ElementsAre("lost", ",", "word"));
  EXPECT_THAT(pieces.encode(" \" ; "), IsEmpty());
}

// WikiText writes its unknown words so.
TEST_F(PiecesTest, SentencePieceLearnsWordsThatAreWrittenAsMarks) {
  std::vector<std::string> lines = sentences(300);
  for (std::string& line : lines) line += " <unk> </s>";
  for (const PieceKind kind : {PieceKind::unigram, PieceKind::bpe}) {
    const auto pieces = train(lines, of(kind, 120));
    for (const int32_t id : pieces.encode("baum <unk> </s>")) EXPECT_GT(id, 3);
    EXPECT_LT(pieces.encode("<unk>").size(), 5);  // as a word that is often seen
    EXPECT_EQ(back(pieces, "baum <unk> </s>"), "baum <unk> </s>");
    EXPECT_EQ(pieces.piece(Pieces::kUnknown), "<unk>");
  }
}

TEST_F(PiecesTest, SentencePieceLearnsAsManyPiecesAsAskedFor) {
  for (const PieceKind kind : {PieceKind::unigram, PieceKind::bpe}) {
    const auto pieces = train(sentences(300), of(kind, 120));
    EXPECT_EQ(pieces.size(), 120);
    EXPECT_EQ(pieces.piece(Pieces::kPad), "<pad>");
    EXPECT_EQ(pieces.piece(Pieces::kUnknown), "<unk>");
    EXPECT_EQ(pieces.piece(Pieces::kBegin), "<s>");
    EXPECT_EQ(pieces.piece(Pieces::kEnd), "</s>");
    const std::string line = "vorgartenchen nachbaum.";
    EXPECT_LT(pieces.encode(line).size(), line.size() / 2);
    EXPECT_EQ(back(pieces, line), line);
    EXPECT_EQ(back(pieces, "  vorgartenchen   nachbaum. "), line);
    EXPECT_EQ(pieces.decode({Pieces::kBegin, Pieces::kEnd, Pieces::kPad}), "");
    EXPECT_EQ(back(pieces, "baum Q baum"), "baum <unk> baum");
    for (const int32_t id : pieces.encode("<pad></s><s>")) EXPECT_TRUE(id == Pieces::kUnknown || id > 3);
    EXPECT_THAT(pieces.encode("  "), IsEmpty());
  }
}

TEST_F(PiecesTest, SentencePieceIsTheSameEachTimeAndFollowsItsOptions) {
  const auto lines = sentences(400);
  for (const PieceKind kind : {PieceKind::unigram, PieceKind::bpe}) {
    const auto options = of(kind, 100);
    EXPECT_EQ(train(lines, options), train(lines, options));
    auto fewer = options;
    fewer.sample = 40;
    EXPECT_EQ(train(lines, fewer), train(lines, fewer));
    EXPECT_FALSE(train(lines, fewer) == train(lines, options));
    auto other = fewer;
    other.seed = 1;
    EXPECT_FALSE(train(lines, fewer) == train(lines, other));
  }
  auto options = of(PieceKind::unigram, 400);
  options.byte_fallback = true;
  EXPECT_EQ(back(train(lines, options), "baum \xE6\xA8\xB9"), "baum \xE6\xA8\xB9");
  // A piece may be any byte, but a line stays a line.
  const Pieces bytes = train(lines, options);
  for (const char* name : {"<0x0A>", "<0x0D>", "<0x09>", "<0x00>"})
    EXPECT_EQ(bytes.decode({bytes.id("<0x61>"), bytes.id(name), bytes.id("<0x62>")}), "a b") << name;
  options = of(PieceKind::unigram, 100);
  options.normalization = "nmt_nfkc_cf";
  EXPECT_EQ(back(train(lines, options), "BAUM"), "baum");
  options.normalization = "identity";
  EXPECT_EQ(back(train(lines, options), "BAUM"), "<unk>");
}

TEST_F(PiecesTest, EveryKindTravelsThroughAFile) {
  const auto lines = sentences(300);
  for (const auto& options : every_kind()) {
    const auto pieces = train(lines, options);
    const auto file = folder_ / "pieces";
    pieces.save(file);
    const auto back = Pieces::load(file);
    EXPECT_EQ(back, pieces);
    EXPECT_EQ(back.kind(), options.kind);
    EXPECT_EQ(all(back), all(pieces));
    EXPECT_EQ(back.encode(lines[3]), pieces.encode(lines[3]));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
    const auto other = train(sentences(300, 1), options);
    EXPECT_EQ(other == pieces, options.kind == PieceKind::characters && all(other) == all(pieces));
  }
}

TEST_F(PiecesTest, OddCharactersTravelToo) {
  const auto pieces = train({"a\r\t\xEF\xBB\xBF\xE2\x80\xA8 b"}, of(PieceKind::characters));
  pieces.save(folder_ / "pieces");
  EXPECT_EQ(Pieces::load(folder_ / "pieces"), pieces);
  EXPECT_EQ(pieces.size(), 11);
}

TEST_F(PiecesTest, FilesThatAreNotOursAreRefused) {
  train({"the dog"}, of(PieceKind::words)).save(folder_ / "pieces");
  std::ifstream stream(folder_ / "pieces", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto error = [&](std::string_view content) {
    const auto file = write("other", content);
    return error_of([&] { Pieces::load(file); });
  };
  EXPECT_THAT(error(text.substr(0, text.size() - 1)),
              HasSubstr("other is damaged: its first line does not fit"));
  std::string changed = text;
  changed[changed.size() - 2] = 'x';
  EXPECT_THAT(error(changed), HasSubstr("is damaged"));
  EXPECT_THAT(
      error("<pad>\n<unk>\n"),
      HasSubstr("must begin with \"quatrain pieces 1\" and a kind (characters, words, basic_english,"));
  EXPECT_THAT(error(""), HasSubstr("is it a file of pieces?"));
  EXPECT_THAT(error("quatrain pieces 1 words 0 00000000\n"), HasSubstr("has no pieces"));
  EXPECT_THAT(error("quatrain pieces 1 words 4 337a7954\na\na\n"), HasSubstr("is already in line 2"));
  EXPECT_THAT(error("quatrain pieces 1 bpe 0 00000000\n"), HasSubstr("holds no"));
  EXPECT_THAT(error_of([&] { Pieces::load(folder_ / "none"); }), HasSubstr("there is no such file"));
  EXPECT_THAT(error_of([&] { Pieces::load(folder_); }), HasSubstr("it is a folder"));
}

TEST_F(PiecesTest, RefusesWhatCannotBe) {
  const auto error = [](const PieceOptions& options, int count = 50) {
    return error_of([&] { train(sentences(count), options); });
  };
  EXPECT_THAT(error(of(PieceKind::unigram, 100000)), HasSubstr("pieces: size must be at most "));
  EXPECT_THAT(error(of(PieceKind::bpe, 100000)), HasSubstr("pieces: size must be at most "));
  EXPECT_THAT(error(of(PieceKind::bpe, 10)), HasSubstr("pieces: size must be at least "));
  EXPECT_THAT(error(of(PieceKind::unigram, 10)), HasSubstr("pieces: size must be at least "));
  EXPECT_THAT(error(of(PieceKind::unigram, 0)),
              HasSubstr("size must be from 5 to 10000000 for unigram, got 0"));
  EXPECT_THAT(error(of(PieceKind::unigram, 100), 0), HasSubstr("there must be a line to learn from"));
  EXPECT_THAT(error(of(PieceKind::words, 4)), HasSubstr("size must be at least 5"));
  EXPECT_THAT(error(of(PieceKind::words), 0), HasSubstr("have no tokens (words) that occur 1 times or more"));
  auto options = of(PieceKind::unigram, 100);
  options.normalization = "nfd";
  EXPECT_THAT(error(options), HasSubstr("normalization must be one of nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, "
                                        "identity, got \"nfd\""));
  options = of(PieceKind::unigram, 100);
  options.coverage = 0.5;
  EXPECT_THAT(error(options), HasSubstr("coverage must be from 0.98 to 1, got 0.5"));
  options = of(PieceKind::unigram, 100);
  options.sample = 0;
  EXPECT_THAT(error(options), HasSubstr("sample must be at least 1 line"));
  options.sample = 1, options.sample_bytes = 0;
  EXPECT_THAT(error(options), HasSubstr("sample_bytes must be at least 1, got 0"));
  EXPECT_EQ(error_of([] { parse_piece_kind("word"); }),
            "pieces: must be one of characters, words, basic_english, unigram, bpe; got 'word'");
  const auto pieces = train({"a"}, of(PieceKind::words));
  EXPECT_EQ(error_of([&] { pieces.piece(5); }), "Pieces::piece: id must be from 0 to 4, got 5");
  EXPECT_EQ(error_of([&] { pieces.decode({4, -1}); }), "Pieces::decode: ids must be from 0 to 4, got -1");
}

// Of a corpus of any size, whose lines may be of any length.
TEST_F(PiecesTest, SentencePieceLearnsFromSoMuchText) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what is freed stays in memory for a while";
#endif
  std::string words;
  for (const auto& line : sentences(200)) words += line + " ";
  PieceOptions options = of(PieceKind::bpe, 60);
  options.sample_bytes = 1 << 17;
  test::give_back_free_memory();
  const int64_t before = test::anonymous_memory();
  int64_t after = 0, lines = 0;
  Pieces::train(
      [&](std::string& line) {
        line = words;
        if (lines++ < 2000) return true;
        after = test::anonymous_memory();
        return false;
      },
      options);
  EXPECT_GT(2000 * words.size(), 16U << 20);
  EXPECT_LT(after - before, 1 << 20);
}

// Whoever waits for long work is told what is done; short work says nothing.
TEST_F(PiecesTest, LongWorkIsTold) {
  const auto told_of = [&](int count, PieceKind kind) {
    const auto lines = sentences(count);
    size_t at = 0;
    std::vector<std::string> told;
    Pieces::train(
        [&](std::string& line) {
          if (at == lines.size()) return false;
          line = lines[at++];
          return true;
        },
        of(kind, kind == PieceKind::words ? 0 : 60), [&](const std::string& text) { told.push_back(text); });
    return told;
  };
  EXPECT_THAT(told_of(500, PieceKind::bpe), IsEmpty());
  EXPECT_THAT(told_of(20000, PieceKind::words), IsEmpty());
  EXPECT_THAT(told_of(20000, PieceKind::bpe),
              ElementsAre("vocabulary: learning 60 pieces from 20,000 lines"));
}

}  // namespace
}  // namespace quatrain::data
