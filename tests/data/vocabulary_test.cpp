#include "quatrain/data/vocabulary.h"

#include "quatrain/data/tokenizer.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Tokenizer, SplitsAtWhiteSpace) {
  EXPECT_THAT(split(" The  cat\t's here.\r", Tokenizer::whitespace),
              ElementsAre("The", "cat", "'s", "here."));
  EXPECT_THAT(split("The Café ÀB", Tokenizer::lowercase), ElementsAre("the", "café", "Àb"));
  EXPECT_THAT(split(" \t ", Tokenizer::whitespace), ElementsAre());
}

TEST(Tokenizer, WhatCannotBeSeenIsNoWord) {
  for (const auto tokenizer : kTokenizers) {
    EXPECT_EQ(word_problem(" \t ", tokenizer), "must not be empty") << name(tokenizer);
    // A no-break space, one of East Asian width, a byte order mark, control characters.
    for (const char* text : {"\xC2\xA0", "\xE3\x80\x80", " \xEF\xBB\xBF", "\x01 \x7F\xC2\x85"})
      EXPECT_THAT(word_problem(text, tokenizer), testing::StartsWith("must have a word, got \""))
          << name(tokenizer);
    for (const char* text : {".", "a", "\xC2\xA0z", "\xC3\xA9", "\xE4\xB8\xAD", "\xFF"})
      EXPECT_EQ(word_problem(text, tokenizer), "") << name(tokenizer) << " " << text;
  }
  EXPECT_EQ(word_problem("<br/> <BR>", Tokenizer::simple), "must have a word, got \"<br/> <BR>\"");
  EXPECT_EQ(word_problem("<br/>", Tokenizer::whitespace), "");
}

TEST(Tokenizer, SimpleSplitsRawText) {
  EXPECT_THAT(split("It's GOOD!<br /><br />Don't 'miss' it...", Tokenizer::simple),
              ElementsAre("it's", "good", "!", "don't", "'", "miss", "'", "it", ".", ".", "."));
  EXPECT_THAT(split("a<BR>b<br/>c < d <b", Tokenizer::simple),
              ElementsAre("a", "b", "c", "<", "d", "<", "b"));
  EXPECT_THAT(split("crème-brûlée 3.5", Tokenizer::simple),
              ElementsAre("crème", "-", "brûlée", "3", ".", "5"));
}

TEST(Tokenizer, HasNamesBothWays) {
  for (const auto tokenizer : kTokenizers) EXPECT_EQ(parse_tokenizer(name(tokenizer)), tokenizer);
  EXPECT_EQ(error_of([] { parse_tokenizer("bpe"); }),
            "tokenizer: must be one of whitespace, lowercase, simple, got \"bpe\"");
}

TEST(Majority, CountsOverallAndByGroup) {
  const auto result = majority({{"", 1, 0}, {"", 1, 0}, {"", 0, 0}, {"", 0, 2}, {"", 1, -1}});
  EXPECT_EQ(result.overall.label, 1);
  EXPECT_DOUBLE_EQ(result.overall.share(), 0.6);
  ASSERT_EQ(result.by_group.size(), 2u);
  EXPECT_DOUBLE_EQ(result.by_group.at(0).share(), 2.0 / 3);
  EXPECT_EQ(result.by_group.at(2).label, 0);
  EXPECT_EQ(majority({}).overall.share(), 0);
}

using VocabularyTest = DataTest;

Vocabulary abc() {
  return Vocabulary::build({{"b z c z"}, {"B c z a <pad>"}}, Tokenizer::lowercase);
}

TEST_F(VocabularyTest, OrdersByFrequencyThenByWord) {
  const auto words = abc();
  ASSERT_EQ(words.size(), 6);
  EXPECT_EQ(words.word(0), "<pad>");
  EXPECT_EQ(words.word(1), "<unk>");
  EXPECT_EQ(words.word(2), "z");
  EXPECT_EQ(words.word(3), "b");
  EXPECT_EQ(words.word(4), "c");
  EXPECT_EQ(words.word(5), "a");
  EXPECT_EQ(words.id("c"), 4);
  EXPECT_EQ(words.id("C"), Vocabulary::kUnknown);
}

TEST_F(VocabularyTest, CutsByCountAndBySize) {
  const std::vector<Example> texts{{"b a c a"}, {"b c a d"}};
  EXPECT_EQ(Vocabulary::build(texts, Tokenizer::whitespace, {.min_count = 2}).size(), 5);
  const auto three = Vocabulary::build(texts, Tokenizer::whitespace, {.max_size = 3});
  EXPECT_EQ(three.size(), 3);
  EXPECT_EQ(three.word(2), "a");
  EXPECT_THAT(error_of([&] { Vocabulary::build(texts, Tokenizer::whitespace, {.min_count = 4}); }),
              HasSubstr("lower min_count"));
  EXPECT_THAT(error_of([&] { Vocabulary::build(texts, Tokenizer::whitespace, {.max_size = 2}); }),
              HasSubstr("max_size must be at least 3"));
}

TEST_F(VocabularyTest, EncodesAnyText) {
  EXPECT_THAT(abc().encode({"z", "x", "a"}), ElementsAre(2, 1, 5));
  EXPECT_THAT(abc().encode({}), ElementsAre(Vocabulary::kUnknown));
  EXPECT_THAT(abc().encode({"<pad>"}), ElementsAre(Vocabulary::kUnknown));
}

TEST_F(VocabularyTest, TravelsThroughAFile) {
  const auto file = folder_ / "vocabulary.txt";
  abc().save(file);
  const auto back = Vocabulary::load(file);
  ASSERT_EQ(back.size(), abc().size());
  for (int64_t i = 0; i < back.size(); ++i) EXPECT_EQ(back.word(i), abc().word(i));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);  // nothing is left beside it
}

TEST_F(VocabularyTest, NamesFileAndLineOfWhatIsWrong) {
  const auto error = [&](std::string_view text) {
    const auto file = write("v.txt", text);
    return error_of([&] { Vocabulary::load(file); }).substr(file.parent_path().string().size() + 1);
  };
  EXPECT_EQ(error("<pad>\n<unk>\na\nb\na\n"), "v.txt:5: a word must occur once, \"a\" is already in line 3");
  EXPECT_EQ(error("<pad>\n<unk>\n\n"),
            "v.txt:3: a word must not be empty, got \"\"; a vocabulary has one word on each line");
  EXPECT_THAT(error("<pad>\n<unk>\na b\n"),
              HasSubstr("v.txt:3: a word must not contain white space, got \"a b\""));
  EXPECT_EQ(error("the\nof\n"), "v.txt:1: must be <pad>, got \"the\"; is this a saved vocabulary?");
  EXPECT_THAT(error("<pad>\n"), HasSubstr("v.txt:1: a vocabulary begins with <pad> and <unk>"));
  EXPECT_THAT(error_of([&] { Vocabulary::load(folder_ / "none"); }), HasSubstr("there is no such file"));
  EXPECT_THAT(error_of([&] { abc().save(folder_ / "none" / "v.txt"); }), HasSubstr("cannot create"));
  EXPECT_THAT(error_of([] { abc().word(6); }), HasSubstr("from 0 to 5, got 6"));
}

}  // namespace
}  // namespace quatrain::data
