#include "quatrain/data/text_source.h"

#include "support.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextSourceTest : public DataTest {
 protected:
  TextSource source(const std::string& reader = "text") const { return {reader, folder_}; }
  static std::vector<std::string> lines(LineReader& reader) {
    std::vector<std::string> all;
    for (std::string line; reader.next(line);) all.push_back(line);
    return all;
  }
  static Pieces words_of(LineReader& reader) {
    PieceOptions options;
    options.kind = PieceKind::words;
    return Pieces::train([&](std::string& line) { return reader.next(line); }, options);
  }
};

TEST_F(TextSourceTest, TextsAreReadLineByLine) {
  write("train.txt", " \n = a b = \r\n\nb c");
  write("valid.txt", "dev\n");
  const auto corpus = open_text(source());
  EXPECT_TRUE(corpus->has("train") && corpus->has("dev") && !corpus->has("test"));
  EXPECT_EQ(corpus->text(), TextForm::raw);
  EXPECT_THAT(corpus->files("dev"), ElementsAre(folder_ / "valid.txt"));
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_THAT(lines(*corpus->open("train")), ElementsAre(" ", " = a b = ", "", "b c"));
  EXPECT_THAT(lines(*corpus->open("dev")), ElementsAre("dev"));
  EXPECT_THAT(error_of([&] { corpus->open("test"); }), HasSubstr("there is no test text in "));
}

TEST_F(TextSourceTest, FilesMayBeCompressed) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 0; i < 20000; ++i) text += expected.emplace_back("line " + std::to_string(i)) + '\n';
  compressed("train.txt.gz", text);
  compressed("val.txt.gz", "a b\n");
  write("test.txt.gz", "plain\n");  // not compressed, whatever its name says
  const auto corpus = open_text(source());
  EXPECT_THAT(corpus->files("dev"), ElementsAre(folder_ / "val.txt.gz"));
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(lines(*corpus->open("train")), expected);
  EXPECT_THAT(lines(*corpus->open("dev")), ElementsAre("a b"));
  EXPECT_THAT(lines(*corpus->open("test")), ElementsAre("plain"));
  const auto pieces = words_of(*corpus->open("train"));
  EXPECT_EQ(encode_text(*corpus->open("train"), pieces, true)[0].size(), 3 * expected.size());
}

TEST_F(TextSourceTest, TheOneSetThatIsScoredIsEnough) {
  write("test.txt", "x\n");
  TextSource only = source();
  only.only = "test";
  const auto corpus = open_text(only);
  EXPECT_FALSE(corpus->has("train"));
  EXPECT_THAT(lines(*corpus->open("test")), ElementsAre("x"));
  EXPECT_THAT(error_of([&] { open_text(source()); }), HasSubstr("no file begins with train. in "));
  only.only = "dev";
  EXPECT_THAT(error_of([&] { open_text(only); }),
              HasSubstr("no file begins with dev. or valid. or val. in "));
  only.only = "all";
  EXPECT_EQ(error_of([&] { open_text(only); }),
            "data: the sets of a text are train, dev and test, got \"all\"");
}

TEST_F(TextSourceTest, TwoDevSetsAreRefused) {
  for (const char* name : {"train.txt", "valid.txt", "val.txt.gz"}) write(name, "x\n");
  EXPECT_EQ(error_of([&] { open_text(source()); }), "data: there are both " +
                                                        (folder_ / "valid.txt").string() +
                                                        " and val.txt.gz; remove the one that is not meant");
}

TEST_F(TextSourceTest, KnownSetsAreFoundByName) {
  write("wikitext2/train.txt", "x\n");
  EXPECT_EQ(open_text(source("wikitext2"))->text(), TextForm::tokenised);
  EXPECT_THAT(error_of([&] { open_text(source("ptb")); }),
              HasSubstr("the reader of text must be one of text, wikitext2, got \"ptb\""));
  EXPECT_THAT(error_of([&] { open_text(source()); }), HasSubstr("no file begins with train. in "));
  for (const auto& reader : text_readers())
    EXPECT_THAT(error_of([&] { open_text({reader.name, {}}); }), HasSubstr("none was given"));
  write("train.csv", "x\n");
  EXPECT_THAT(error_of([&] { open_text(source()); }), HasSubstr("but there is neither"));
}

TEST_F(TextSourceTest, BadLinesAreErrors) {
  write("train.txt", "good\nb\xFF\n");
  const auto reader = open_text(source())->open("train");
  std::string line;
  ASSERT_TRUE(reader->next(line));
  EXPECT_THAT(error_of([&] { reader->next(line); }),
              HasSubstr("train.txt:2: the text must be UTF-8, but byte 2"));
}

TEST_F(TextSourceTest, BadLinesAreLeftOutAndCountedIfAsked) {
  const std::string word(kLongestLine + 1, 'w');
  write("train.txt", "good\nb\xFF\nfine\n" + word + "\nc\xFF\nlast\n");
  TextSource skipping = source();
  skipping.skip_bad = true;
  const auto corpus = open_text(skipping);
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_THAT(lines(*corpus->open("train")), ElementsAre("good", "fine", "last"));
  ASSERT_EQ(corpus->bad().reasons.size(), 2U);
  EXPECT_EQ(corpus->bad().reasons[0].count, 2);
  EXPECT_EQ(corpus->bad().reasons[0].first, (folder_ / "train.txt:2").string());
  EXPECT_EQ(corpus->bad().reasons[1].reason, "a word has more than half a MiB");
}

// A text of a single line is as long as the text.
TEST_F(TextSourceTest, LongLinesAreReadInParts) {
  std::string line;
  for (int64_t word = 0; line.size() < 3 * kLongestLine; ++word) line += "w" + std::to_string(word) + " ";
  write("train.txt", "a b\n" + line + "end\r\nc\n");
  const auto corpus = open_text(source());
  const auto reader = corpus->open("train");
  std::string whole;
  std::vector<std::string> places;
  int64_t parts = 0;
  for (std::string part; reader->next(part);) {
    ASSERT_LE(part.size(), kLongestLine);
    places.push_back(reader->place());
    EXPECT_TRUE(!reader->goes_on() || part.back() == ' ');
    parts += reader->goes_on();
    whole += part + (reader->goes_on() ? "" : "|");
  }
  EXPECT_EQ(whole, "a b|" + line + "end|c|");
  EXPECT_GE(parts, 3);
  EXPECT_EQ(places[1], places[2]);
  EXPECT_EQ(places.back(), (folder_ / "train.txt:3").string());

  const auto pieces = words_of(*corpus->open("train"));
  int64_t ends = 0;
  encode_text(*corpus->open("train"), pieces, true, &ends);
  EXPECT_EQ(ends, 3);

  // Whose last part has nothing but white space.
  const std::string half(kLongestLine / 2 + (1 << 17), 'w');
  write("dev.txt", "a " + half + " \r\nb\n");
  encode_text(*open_text(source())->open("dev"), pieces, true, &ends);
  EXPECT_EQ(ends, 2);
}

TEST_F(TextSourceTest, ATextBecomesOneSequence) {
  write("train.txt", " \n a b \n\nb c\n");
  const auto corpus = open_text(source());
  const auto pieces = words_of(*corpus->open("train"));
  const auto marked = encode_text(*corpus->open("train"), pieces, true);
  ASSERT_EQ(marked.size(), 1);
  EXPECT_THAT(marked[0], ElementsAre(5, 4, Pieces::kEnd, 4, 6, Pieces::kEnd));
  EXPECT_THAT(encode_text(*corpus->open("train"), pieces, false)[0], ElementsAre(5, 4, 4, 6));
  write("dev.txt", "\n \n");
  EXPECT_THAT(error_of([&] { encode_text(*open_text(source())->open("dev"), pieces, true); }),
              HasSubstr("at least one piece, but up to " + (folder_ / "dev.txt:2").string()));
}

}  // namespace
}  // namespace quatrain::data
