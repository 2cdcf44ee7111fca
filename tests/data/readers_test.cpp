#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "quatrain/data/dataset.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

class ReadersTest : public DataTest {
 protected:
  Splits read(const std::string& reader) const {
    Source source;
    source.reader = reader;
    source.folder = folder_;
    return load(source);
  }
  /// The error's text without the folder's name.
  std::string error(const std::string& reader) const {
    std::string text = error_of([&] { read(reader); });
    for (size_t at; (at = text.find(folder_.string())) != std::string::npos;) {
      text.replace(at, folder_.string().size(), "DIR");
    }
    return text;
  }
  void write_sst(const std::string& sub, const std::string& stem = "stsa.binary") const {
    write(sub + stem + ".train", "1 a stirring , funny film\n0 no\r\n1 crème brûlée\n");
    write(sub + stem + ".dev", "0 one long string of cliches .\n");
    write(sub + stem + ".test", "1 yes\n");
  }
  void write_sva(const std::string& text, const std::string& gold) const {
    write("subj_agr_filtered.text", text);
    write("subj_agr_filtered.gold", gold);
  }
};

TEST_F(ReadersTest, AreListedAndKnownByName) {
  std::set<std::string> names;
  for (const auto& reader : readers()) names.insert(reader.name);
  EXPECT_EQ(names, (std::set<std::string>{"sst", "sst5", "imdb", "sva", "tsv", "agreement"}));
  EXPECT_EQ(error("sts"),
            "data: the reader must be one of sst, sst5, imdb, sva, tsv, agreement, got \"sts\"");
  for (const auto& reader : readers()) {
    if (!reader.needs_folder) continue;
    Source source;
    source.reader = reader.name;
    EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("none was given")) << reader.name;
    source.folder = folder_ / "none";
    EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("there is no folder " + source.folder.string()));
    source.folder = write("file", "x");
    EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("is a file; the "));
  }
}

TEST_F(ReadersTest, TheGeneratedTaskNeedsNoFolder) {
  Source source;
  source.reader = "agreement";
  source.agreement.train = 10;
  source.agreement.dev = source.agreement.test = 5;
  source.tokenizer = Tokenizer::lowercase;
  const auto splits = load(source);
  EXPECT_EQ(splits.train.size(), 10u);
  EXPECT_EQ(splits.tokenizer, Tokenizer::lowercase);
}

TEST_F(ReadersTest, OneFileIsCutByShares) {
  std::string lines = "label\ttext\n";
  for (int i = 0; i < 200; ++i)
    lines += (i % 2 ? "ham\t" : "spam\t") + std::string("text ") + std::to_string(i % 100) + "\n";
  Source source;
  source.reader = "tsv";
  source.folder = write("all.tsv", lines);
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("or a split of this file, such as 80/10/10"));
  source.shares = Shares::parse("70/20/10");
  const auto splits = load(source), again = load(source);
  EXPECT_NEAR(static_cast<double>(splits.train.size()), 140, 20);
  EXPECT_NEAR(static_cast<double>(splits.dev.size()), 40, 20);
  EXPECT_NEAR(static_cast<double>(splits.test.size()), 20, 14);
  std::set<std::string> trained;
  for (const auto& example : splits.train) trained.insert(example.text);
  for (const auto& example : splits.test)
    EXPECT_FALSE(trained.contains(example.text));  // each text is there twice
  for (size_t i = 0; i < splits.test.size(); ++i) EXPECT_EQ(splits.test[i].text, again.test[i].text);

  source.folder = write("few.tsv", "a\tone\nb\ttwo\nb\ttwo\n");
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("few.tsv has 2 different texts in 3 examples, too "
                                                         "few for this split: by their hashes none is in "));
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("; add texts, or put train.tsv"));
  lines.clear();
  for (int i = 0; i < 200; ++i) lines += "text " + std::to_string(i) + (i % 2 ? "\tham\n" : "\tspam\n");
  source.folder = write("swapped.tsv", lines);
  EXPECT_THAT(error_of([&] { load(source); }), testing::AllOf(HasSubstr("2 different texts in 200 examples"),
                                                              HasSubstr("are the columns swapped")));
  source.folder = folder_;
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("a split is of one file"));
  source.reader = "sst";
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("only 'tsv' data are split"));
  EXPECT_NEAR(Shares::parse("8/1/1").train, 0.8, 1e-12);
  for (const char* wrong :
       {"", "80/20", "80/10/10/", "80/10/0", "80/-10/10", "a/b/c", "80 10 10", "1e9/1/1", "nan/1/1"})
    EXPECT_THROW(Shares::parse(wrong), std::invalid_argument) << wrong;
}

// Else a text that was trained on would be one to test with as soon as the file has another line.
TEST_F(ReadersTest, ATextStaysInItsSetWhenTheFileChanges) {
  const auto sets_of = [&](const std::vector<int>& numbers) {
    std::string lines;
    for (const int i : numbers)
      lines += std::string(i % 2 ? "ham" : "spam") + "\ttext " + std::to_string(i) + (i % 3 ? " \n" : "\n");
    Source source;
    source.folder = write("all.tsv", lines);
    source.shares = Shares::parse("80/10/10");
    const auto splits = load(source);
    std::map<std::string, std::string> sets;
    for (const auto& [name, set] :
         {std::pair{"train", &splits.train}, {"dev", &splits.dev}, {"test", &splits.test}})
      for (const auto& example : *set) sets[example.text] = name;
    return sets;
  };
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto before = sets_of(numbers);
  EXPECT_EQ(before.size(), 1000u);
  std::map<std::string, int> sizes;
  for (const auto& [text, set] : before) ++sizes[set];
  EXPECT_NEAR(sizes["dev"], 100, 30);
  EXPECT_NEAR(sizes["test"], 100, 30);
  std::reverse(numbers.begin(), numbers.end());
  EXPECT_EQ(sets_of(numbers), before);
  numbers.resize(700);
  numbers.insert(numbers.begin(), {1000, 1001, 1002});
  const auto after = sets_of(numbers);
  EXPECT_EQ(after.size(), 703u);
  for (const auto& [text, set] : after) {
    const auto old = before.find(text);
    EXPECT_EQ(set, old == before.end() ? set : old->second) << text;
  }
  // Runs of other versions have the same sets.
  std::vector<std::string> first;
  for (int i = 0; i < 40; ++i)
    if (const std::string text = "text " + std::to_string(i); before.at(text) == "test")
      first.push_back(text);
  EXPECT_THAT(first, testing::ElementsAre("text 4", "text 6", "text 8", "text 23", "text 28", "text 34"));
}

TEST_F(ReadersTest, SstIsFoundWhereverTheArchivePutsIt) {
  for (const std::string sub : {"sst/sst/", "sst/", ""}) {
    EXPECT_THAT(error("sst"), HasSubstr("there is no stsa.binary.train in DIR, DIR/sst, DIR/sst/sst"));
    write_sst(sub);
    const auto splits = read("sst");
    ASSERT_EQ(splits.train.size(), 3u);
    EXPECT_EQ(splits.train[0].text, "a stirring , funny film");
    EXPECT_EQ(splits.train[0].label, 1);
    EXPECT_EQ(splits.train[0].group, -1);
    EXPECT_EQ(splits.train[1].text, "no");  // without the carriage return
    EXPECT_EQ(splits.dev.size(), 1u);
    EXPECT_EQ(splits.test.size(), 1u);
    EXPECT_EQ(splits.labels, (std::vector<std::string>{"negative", "positive"}));
    EXPECT_EQ(splits.tokenizer, Tokenizer::whitespace);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
}

TEST_F(ReadersTest, SstHasFiveClassesToo) {
  write_sst("", "stsa.fine");
  write("stsa.fine.dev", "4 good\n");
  const auto splits = read("sst5");
  EXPECT_EQ(splits.labels.size(), 5u);
  EXPECT_EQ(splits.dev[0].label, 4);
}

TEST_F(ReadersTest, SstSaysWhatIsWrong) {
  write_sst("");
  write("stsa.binary.dev", "0 fine\n2 bad\n");
  EXPECT_EQ(error("sst"),
            "DIR/stsa.binary.dev:2: a line must begin with a label from 0 to 1 and a space, got \"2 bad\"");
  for (const auto* line : {"x y\n", "\n", " 1 a\n", "1a b\n"}) {
    write("stsa.binary.dev", line);
    EXPECT_THAT(error("sst"), HasSubstr("dev:1: a line must begin with a label")) << line;
  }
  for (const auto* line : {"1\n", "1 \n", "1   \n"}) {
    write("stsa.binary.dev", line);
    EXPECT_THAT(error("sst"), HasSubstr("dev:1: a text must follow the label")) << line;
  }
  write("stsa.binary.dev", "");
  EXPECT_EQ(error("sst"), "data: DIR/stsa.binary.dev is empty");
  std::filesystem::remove(folder_ / "stsa.binary.dev");
  EXPECT_THAT(error("sst"), HasSubstr("the folder DIR contains stsa.binary.train but no stsa.binary.dev"));
}

TEST_F(ReadersTest, FilesMustBeUtf8Text) {
  write_sst("");
  const std::string_view bad[] = {"1 caf\xE9\n",          "1 \xC0\x80\n", "1 \xED\xA0\x80\n",
                                  "1 \xF5\x80\x80\x80\n", "1 \xE2\x82\n", "1 \x80\n"};
  for (const auto text : bad) {
    write("stsa.binary.test", "0 fine\n" + std::string(text));
    EXPECT_THAT(error("sst"), HasSubstr("stsa.binary.test:2: the text must be UTF-8, but byte ")) << text;
  }
  write("stsa.binary.test", std::string_view("1 a\0b\n", 6));
  EXPECT_THAT(error("sst"),
              HasSubstr("stsa.binary.test:1: the text must not contain NUL bytes, found one at byte 4"));
  write("stsa.binary.test",
        "\xEF\xBB\xBF"
        "1 \xE2\x82\xAC \xF0\x9F\x98\x80 no line end");
  EXPECT_EQ(read("sst").test[0].text, "\xE2\x82\xAC \xF0\x9F\x98\x80 no line end");
}

TEST_F(ReadersTest, ImdbTakesDevFromTrainByText) {
  std::string train;
  for (int i = 0; i < 200; ++i) {
    train +=
        std::to_string(i) + "\t" + std::to_string(i % 2) + "\tReview " + std::to_string(i / 2) + "<br />!\n";
  }
  write("imdb/train.tsv", train);
  write("imdb/test.tsv", "0_1\t0\tBad.\n0_2\t1\tGood.\n");
  const auto splits = read("imdb");
  EXPECT_EQ(splits.train.size(), 180u);
  EXPECT_EQ(splits.dev.size(), 20u);
  EXPECT_EQ(splits.test.size(), 2u);
  EXPECT_EQ(splits.test[1].label, 1);
  EXPECT_EQ(splits.tokenizer, Tokenizer::simple);
  std::set<std::string> in_train;
  for (const auto& example : splits.train) in_train.insert(example.text);
  for (const auto& example : splits.dev) EXPECT_FALSE(in_train.contains(example.text)) << example.text;
  EXPECT_EQ(read("imdb").dev[0].text, splits.dev[0].text);
  EXPECT_NE(splits.dev[0].text, "Review 0<br />!");  // not simply the first
}

TEST_F(ReadersTest, ImdbSaysWhatIsWrong) {
  write("test.tsv", "a\t0\tx\n");
  write("train.tsv", "a\t0\tfine\nb\t1\n");
  EXPECT_EQ(
      error("imdb"),
      "DIR/train.tsv:2: a line must have 3 columns (id, label, text) separated by tabs, got 2 in \"b\t1\"");
  write("train.tsv", "a\tpos\tfine\n");
  EXPECT_EQ(error("imdb"), "DIR/train.tsv:1: the label must be 0 (negative) or 1 (positive), got \"pos\"");
  write("train.tsv", "a\t1\t <br />\n");
  EXPECT_THAT(error("imdb"), HasSubstr("the text must have at least one word"));
}

TEST_F(ReadersTest, SvaGivesTheWordsBeforeTheVerbAndItsNumber) {
  write_sva(
      "the keys to the box are here . <eos>\nhe tries it . <eos>\nfor fun , Is it ? <eos>\nthe game has it . "
      "<eos>\nthey lie . <eos>\n",
      "5\tare\tis\t1\n1\ttries\ttry\t0\n3\tIs\tAre\t0\n2\thas\thave\t0\n1\tlie\tlie\t0\n");
  const auto splits = read("sva");
  EXPECT_EQ(splits.group_name, "attractors");
  EXPECT_EQ(splits.labels, (std::vector<std::string>{"singular", "plural"}));
  std::set<std::tuple<std::string, int64_t, int64_t>> all;
  for (const auto* part : {&splits.train, &splits.dev, &splits.test}) {
    for (const auto& example : *part) all.emplace(example.text, example.label, example.group);
  }
  // "lie" tells no number and is left out.
  EXPECT_EQ(all, (std::set<std::tuple<std::string, int64_t, int64_t>>{
                     {"the keys to the box", 1, 1}, {"he", 0, 0}, {"for fun ,", 0, 0}, {"the game", 0, 0}}));
}

TEST_F(ReadersTest, SvaSplitsWithoutCommonPrefixes) {
  std::string text, gold;
  for (int i = 0; i < 1000; ++i) {
    text += "dog number" + std::to_string(i / 4) + " runs " + std::to_string(i) + "\n";
    gold += "2\truns\trun\t0\n";
  }
  write_sva(text, gold);
  const auto splits = read("sva");
  EXPECT_EQ(splits.train.size(), 800u);
  EXPECT_EQ(splits.dev.size(), 100u);
  EXPECT_EQ(splits.test.size(), 100u);
  std::set<std::string> seen[3];
  const std::vector<Example>* parts[] = {&splits.train, &splits.dev, &splits.test};
  for (int part = 0; part < 3; ++part) {
    for (const auto& example : *parts[part]) seen[part].insert(example.text);
  }
  std::set<std::string> together = seen[0];
  together.insert(seen[1].begin(), seen[1].end());
  together.insert(seen[2].begin(), seen[2].end());
  EXPECT_EQ(together.size(), seen[0].size() + seen[1].size() + seen[2].size());
}

TEST_F(ReadersTest, SvaSaysWhatIsWrong) {
  const std::string text = "the dog runs .\n";
  const std::pair<std::string, std::string> cases[] = {
      {"2\truns\trun\n",
       "gold:1: a line must have 4 columns (position of the verb, right form, wrong form, attractors) "
       "separated by tabs, got 3"},
      {"x\truns\trun\t0\n",
       "gold:1: the verb's position, counted from 0, must be from 1 to 3 in this sentence, got \"x\""},
      {"0\tthe\trun\t0\n", "the verb's position, counted from 0, must be from 1 to 3"},
      {"4\truns\trun\t0\n", "the verb's position, counted from 0, must be from 1 to 3"},
      {"1\truns\trun\t0\n",
       "word 1 of the sentence (counted from 0) must be \"runs\", got \"dog\"; do the two files belong "
       "together?"},
      {"2\truns\trun\t-1\n", "the number of attractors must be a whole number, got \"-1\""},
      {"2\truns\trun\t0\n2\truns\trun\t0\n",
       "gold:2: there is no sentence for this line, because subj_agr_filtered.text has only 1 lines"}};
  for (const auto& [gold, message] : cases) {
    write_sva(text, gold);
    EXPECT_THAT(error("sva"), HasSubstr(message));
  }
  write_sva(text + text, "2\truns\trun\t0\n");
  EXPECT_THAT(error("sva"),
              HasSubstr("has 2 lines and subj_agr_filtered.gold has 1; each line must have its counterpart"));
}

TEST_F(ReadersTest, TsvTakesAnyLabels) {
  write("train.tsv", "label\ttext\nspam\tBuy now!\nham\tSee you.\n\nspam\tFree\n");
  write("dev.tsv", "ham\tHi\n");
  write("test.tsv", "spam\tWin\n");
  const auto splits = read("tsv");
  EXPECT_EQ(splits.labels, (std::vector<std::string>{"ham", "spam"}));
  ASSERT_EQ(splits.train.size(), 3u);
  EXPECT_EQ(splits.train[0].label, 1);
  EXPECT_EQ(splits.train[0].text, "Buy now!");
  EXPECT_EQ(splits.dev[0].label, 0);
  EXPECT_EQ(splits.tokenizer, Tokenizer::simple);
}

TEST_F(ReadersTest, AHeaderOfTsvIsNoClassAndLabelsAreTrimmed) {
  write("dev.tsv", "good\tfine\n");
  write("test.tsv", "good\tfine\n");
  for (const char* header :
       {"label\ttext", "Labels\tsentence", " CLASS \tx", "category\t", "Target\ty", "gold_label\tz"}) {
    write("train.tsv", std::string(header) + "\ngood \tfine\n bad\t dull \ngood\tfair\n");
    const auto splits = read("tsv");
    EXPECT_EQ(splits.labels, (std::vector<std::string>{"bad", "good"})) << header;
    ASSERT_EQ(splits.train.size(), 3u);
    EXPECT_EQ(splits.train[1].text, "dull");
  }
  // Elsewhere it is a label, as another word is in the first line.
  write("train.tsv", "kind\ttext\nlabel\tfine\ngood\tfair\n");
  EXPECT_EQ(read("tsv").labels, (std::vector<std::string>{"good", "kind", "label"}));
}

TEST_F(ReadersTest, OneSetOfTsvIsReadAlone) {
  write("test.tsv", "spam\tWin\nham\tHi\n");
  Source source;
  source.folder = folder_;
  source.only = "test";
  EXPECT_EQ(load(source).labels, (std::vector<std::string>{"ham", "spam"}));
  source.labels = {"spam", "eggs", "ham"};
  const auto splits = load(source);
  EXPECT_EQ(splits.labels, source.labels);
  EXPECT_TRUE(splits.train.empty() && splits.dev.empty());
  ASSERT_EQ(splits.test.size(), 2u);
  EXPECT_EQ(splits.test[0].label, 0);
  EXPECT_EQ(splits.test[1].label, 2);
  EXPECT_EQ(splits.tokenizer, Tokenizer::simple);
  source.labels = {"ham", "eggs"};
  EXPECT_THAT(error_of([&] { load(source); }),
              HasSubstr("test.tsv:1: the label must be one of those of the model (ham, eggs), got "
                        "\"spam\""));
  // What is not asked for is not read.
  write("train.tsv", "no label\n");
  source.labels.clear();
  EXPECT_EQ(load(source).test.size(), 2u);
  for (const char* name : {"dev.tsv", "valid.tsv"}) write(name, "ham\tHi\n");
  EXPECT_EQ(load(source).test.size(), 2u);
  source.only = "dev";
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("there are both"));
  std::filesystem::remove(folder_ / "dev.tsv");
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("there is no dev.tsv in"));
  source.only = "all";
  EXPECT_THAT(error_of([&] { load(source); }), HasSubstr("are train, dev and test, got \"all\""));
}

TEST_F(ReadersTest, TsvSaysWhatIsWrong) {
  write("train.tsv", "a\tx\nb\ty\n");
  write("dev.tsv", "a\tx\n");
  write("test.tsv", "label\ttext\na\tx\nc\tz\n");
  EXPECT_EQ(error("tsv"),
            "DIR/test.tsv:3: the label must be one of those of the training set (a, b), got \"c\"");
  write("test.tsv", "a x\n");
  EXPECT_EQ(
      error("tsv"),
      "DIR/test.tsv:1: a line must have 2 columns (label, text) separated by one tab, got 1 in \"a x\"");
  write("test.tsv", "a\tx\ty\n");
  EXPECT_THAT(error("tsv"), HasSubstr("got 3 in"));
  write("test.tsv", "a\t  \n");
  EXPECT_THAT(error("tsv"), HasSubstr("test.tsv:1: the text must not be empty"));
  write("test.tsv", "\tx\n");
  EXPECT_THAT(error("tsv"), HasSubstr("test.tsv:1: the label must not be empty"));
  write("test.tsv", "label\ttext\n\n");
  EXPECT_THAT(error("tsv"), HasSubstr("DIR/test.tsv contains no example"));
  write("train.tsv", "a\tx\na\ty\n");
  EXPECT_THAT(error("tsv"), HasSubstr("must have at least 2 different labels, got only \"a\""));
  write("valid.tsv", "a\tx\n");
  EXPECT_EQ(error("tsv"), "data: there are both DIR/dev.tsv and valid.tsv; remove the one that is not meant");
}

}  // namespace
}  // namespace quatrain::data
