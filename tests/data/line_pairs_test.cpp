#include <set>

#include "quatrain/data/dataset.h"
#include "quatrain/data/line_pair_source.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<LinePair> read_all(LinePairReader& reader) {
  std::vector<LinePair> all;
  for (LinePair pair; reader.next(pair);) all.push_back(pair);
  return all;
}

class PairsTest : public DataTest {
 protected:
  LinePairSource source(const std::string& reader = "parallel") const {
    LinePairSource source;
    source.reader = reader;
    source.folder = folder_;
    return source;
  }
  std::vector<LinePair> read(const LinePairSource& source, const std::string& split = "train") const {
    return read_all(*open_line_pairs(source)->open(split));
  }
  /// The error's text without the folder's name.
  std::string error(const LinePairSource& source, const std::string& split = "train") const {
    std::string text = error_of([&] { read(source, split); });
    for (size_t at; (at = text.find(folder_.string())) != std::string::npos;)
      text.replace(at, folder_.string().size(), "DIR");
    return text;
  }
  void write_both(std::string_view source, std::string_view target) const {
    write("train.de", source);
    write("train.en", target);
  }
};

TEST_F(PairsTest, ReadersAreListedAndKnownByName) {
  std::set<std::string> names;
  for (const auto& reader : line_pair_readers()) {
    names.insert(reader.name);
    if (!reader.needs_folder) continue;
    LinePairSource from = source(reader.name);
    from.folder.clear();
    EXPECT_THAT(error(from), HasSubstr("none was given")) << reader.name;
    from.folder = folder_ / "none";
    EXPECT_THAT(error(from), HasSubstr("there is no folder DIR/none")) << reader.name;
    from.folder = write("file", "x");
    EXPECT_THAT(error(from), HasSubstr("is a file; the ")) << reader.name;
    EXPECT_THAT(error(source(reader.name)), HasSubstr("no file begins with train. in DIR")) << reader.name;
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"math", "reverse", "parallel", "tsv", "multi30k", "enja", "shakespeare"}));
  EXPECT_EQ(error(source("wmt")),
            "data: the reader of pairs must be one of math, reverse, parallel, tsv, multi30k, enja, "
            "shakespeare, got \"wmt\"");
  EXPECT_EQ(parse_text_form("bpe"), TextForm::bpe);
  EXPECT_EQ(error_of([] { parse_text_form("plain"); }),
            "text: must be one of raw, tokenised, bpe; got 'plain'");
}

// Whoever scores a test set need not have what was trained on.
TEST_F(PairsTest, TheOneSetThatIsScoredIsEnough) {
  write("test.de", "eins\n");
  write("test.en", "one\n");
  EXPECT_THAT(error(source()), HasSubstr("no file begins with train. in DIR"));
  auto only = source();
  only.only = "test";
  EXPECT_EQ(read(only, "test"), (std::vector<LinePair>{{"eins", "one"}}));
  EXPECT_FALSE(open_line_pairs(only)->has("train"));
  EXPECT_EQ(error(only, "train"), "data: the parallel format found no train set in DIR, only test");
  auto dev = only;
  dev.only = "dev";
  EXPECT_EQ(error(dev),
            "data: no file begins with dev. or valid. or val. in DIR; the parallel format needs dev.SOURCE "
            "and dev.TARGET in one folder");
  dev.only = "tset";
  EXPECT_EQ(error(dev), "data: the sets of pairs are train, dev and test, got \"tset\"");
  // Where train is there it says which two of several endings are meant.
  write("test.fr", "un\n");
  EXPECT_THAT(error(only),
              HasSubstr("needs test.SOURCE and test.TARGET in DIR; the endings there are de, en, fr"));
  write_both("ein Hund\n", "a dog\n");
  EXPECT_EQ(read(only, "test"), (std::vector<LinePair>{{"eins", "one"}}));
  // Where both are named, train may be of other languages, and is not asked for.
  only.source = "fr", only.target = "en";
  EXPECT_EQ(read(only, "test"), (std::vector<LinePair>{{"un", "one"}}));
  only.source = "cs";
  EXPECT_EQ(
      error(only),
      "data: the parallel format needs DIR/test.cs or test.cs.gz, but the endings there are de, en, fr");

  auto columns = source("tsv");
  columns.only = "test";
  write("test.tsv", "eins\tone\n");
  EXPECT_EQ(read(columns, "test"), (std::vector<LinePair>{{"eins", "one"}}));
  // Pairs of train are taken out of this test set.
  auto unseen = source("shakespeare");
  unseen.only = "test";
  EXPECT_THAT(error(unseen), HasSubstr("the shakespeare format needs DIR/train.modern"));
}

TEST_F(PairsTest, ParallelFilesAreReadLineByLine) {
  write_both(
      "\xEF\xBB\xBF"
      "ein Hund\r\nzwei Hunde\n",
      "a dog\ntwo dogs");
  write("valid.de", "drei\n");
  write("valid.en", "three\n");
  const auto corpus = open_line_pairs(source());
  EXPECT_TRUE(corpus->has("train") && corpus->has("dev") && !corpus->has("test"));
  EXPECT_EQ(corpus->text(), TextForm::raw);
  EXPECT_THAT(corpus->groups(), IsEmpty());
  EXPECT_THAT(corpus->files("dev"), ElementsAre(folder_ / "valid.de", folder_ / "valid.en"));
  for (int twice = 0; twice < 2; ++twice) {
    const auto reader = corpus->open("train");
    LinePair pair;
    ASSERT_TRUE(reader->next(pair));
    EXPECT_EQ(pair, (LinePair{"ein Hund", "a dog"}));
    ASSERT_TRUE(reader->next(pair));
    EXPECT_EQ(pair, (LinePair{"zwei Hunde", "two dogs"}));
    EXPECT_EQ(reader->place(), (folder_ / "train.de:2").string());
    EXPECT_FALSE(reader->next(pair));
    EXPECT_FALSE(reader->next(pair));
  }
  EXPECT_EQ(read(source(), "dev"), (std::vector<LinePair>{{"drei", "three"}}));
  EXPECT_EQ(error(source(), "test"), "data: the parallel format found no test set in DIR, only dev, train");
  auto other = source();
  other.source = "en";
  other.text = TextForm::bpe;
  EXPECT_EQ(open_line_pairs(other)->text(), TextForm::bpe);
  EXPECT_EQ(read(other, "dev"), (std::vector<LinePair>{{"three", "drei"}}));
}

TEST_F(PairsTest, TwoDevSetsAreRefused) {
  write_both("eins\n", "one\n");
  for (const char* name : {"dev.de", "dev.en", "valid.de.gz", "valid.en"}) write(name, "x\n");
  EXPECT_EQ(error(source()),
            "data: there are both DIR/dev.de and valid.de.gz; remove the one that is not meant");
  for (const char* name : {"train.tsv", "dev.tsv", "val.tsv"}) write(name, "x\ty\n");
  EXPECT_EQ(error(source("tsv")),
            "data: there are both DIR/dev.tsv and val.tsv; remove the one that is not meant");
}

TEST_F(PairsTest, EndingsMustBeNamedWhereTheyAreMany) {
  write("train.de", "eins\n");
  EXPECT_EQ(error(source()),
            "data: the parallel format needs train.SOURCE and train.TARGET in DIR, but the only ending there "
            "is de");
  write_both("eins\n", "one\n");
  write("train.fr.gz", "un\n");
  EXPECT_THAT(error(source()), HasSubstr("the endings there are de, en, fr, so say which is the source's and "
                                         "which the target's (task.source, task.target)"));
  auto from = source();
  from.source = "fr", from.target = "en";
  EXPECT_EQ(read(from), (std::vector<LinePair>{{"un", "one"}}));
  from.target = "cs";
  EXPECT_EQ(
      error(from),
      "data: the parallel format needs DIR/train.cs or train.cs.gz, but the endings there are de, en, fr");
  std::filesystem::remove(folder_ / "train.fr.gz");
  EXPECT_EQ(error(from),
            "data: the parallel format needs DIR/train.fr or train.fr.gz, but the endings there are de, en: "
            "name them in "
            "task.source and task.target");
  write("train.fr.gz", "un\n");
  from.target = "fr";
  EXPECT_THAT(error(from), HasSubstr("source and target must be different files, but both end in \"fr\""));
  write("train.fr", "un\n");
  from.target = "en";
  EXPECT_THAT(error(from), HasSubstr("there are both DIR/train.fr and train.fr.gz"));
  write("dev.de", "x\n");
  from.source = "de";
  EXPECT_EQ(error(from), "data: DIR/dev.de has no partner DIR/dev.en");
}

TEST_F(PairsTest, FilesMayBeCompressedWhateverTheirNames) {
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "line " + std::to_string(i) + '\n';
  const std::string bytes = compressed("train.de.gz", many);
  write("train.en", bytes);
  const auto pairs = read(source());
  ASSERT_EQ(pairs.size(), 20000u);
  EXPECT_EQ(pairs[19999], (LinePair{"line 19999", "line 19999"}));
  std::filesystem::remove(folder_ / "train.en");
  compressed("train.en.gz", many);
  EXPECT_EQ(read(source()), pairs);
  std::filesystem::remove(folder_ / "train.en.gz");
  write("train.en", bytes);

  write("train.de.gz", many);  // not compressed, whatever its name says
  EXPECT_EQ(read(source()).size(), 20000u);

  write("train.en", bytes.substr(0, bytes.size() - 100));
  EXPECT_THAT(error(source()),
              HasSubstr("data: DIR/train.en is a compressed file that is cut off after line"));

  // Members stand one behind the other, and nothing else.
  write("train.en", bytes + bytes), write("train.de.gz", many + many);
  EXPECT_EQ(read(source()).size(), 40000u);
  write("train.en", bytes + bytes + std::string(100000, '\0'));  // as tapes have it
  EXPECT_EQ(read(source()).size(), 40000u);
  for (const std::string& second : {"\x1E" + bytes.substr(1), std::string(512, '\0') + bytes,
                                    std::string("\x1F"), std::string("behind")}) {
    write("train.en", bytes + second);
    EXPECT_THAT(error(source()), HasSubstr("data: DIR/train.en is a compressed file that is "));
  }
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 0x10;
  write("train.en", damaged);
  EXPECT_THAT(error(source()), HasSubstr("DIR/train.en is a compressed file that is damaged"));
  damaged = bytes;
  damaged[damaged.size() - 6] ^= 0x10;  // of the checksum
  write("train.en", damaged);
  EXPECT_THAT(error(source()), HasSubstr("DIR/train.en is a compressed file that is damaged"));
}

TEST_F(PairsTest, EveryReaderOfLinesTakesCompressedFiles) {
  compressed("train.tsv", "good\ta film\nbad\tno film\n");
  write("dev.tsv", "good\tx\n");
  write("test.tsv", "bad\tx\n");
  Source texts;
  texts.folder = folder_;
  EXPECT_EQ(load(texts).train.size(), 2u);
}

TEST_F(PairsTest, DifferentNumbersOfLinesAreAnError) {
  for (const bool skip : {false, true}) {
    auto from = source();
    from.skip_bad = skip;
    write_both("a\nb\nc\nd\n", "a\nb\n");
    EXPECT_EQ(
        error(from),
        "data: DIR/train.de has 4 lines, but DIR/train.en has 2; line after line of the one must belong "
        "to the other's");
    write_both("a\n", "a\n\n");
    EXPECT_THAT(error(from), HasSubstr("DIR/train.de has 1 lines, but DIR/train.en has 2"));
  }
  write_both("a\n", "");
  EXPECT_EQ(error(source()), "data: DIR/train.en is empty");
}

TEST_F(PairsTest, BadPairsAreNamedOrCounted) {
  const std::string lines =
      "eins\n"
      " \n"
      "zw\xFFi\n" +
      std::string("dr\0i\n", 5) + "vier\nf\xC3\xBCnf\n";
  write_both(lines, "one\ntwo\nthree\nfour\n\t\nfive\n");
  EXPECT_EQ(error(source()), "DIR/train.de:2: the source must not be empty; skip_bad leaves such pairs out");
  write_both("a\nb\n", "a\n\n");
  EXPECT_EQ(error(source()), "DIR/train.en:2: the target must not be empty; skip_bad leaves such pairs out");
  // A no-break space, and one of East Asian width: most pieces make nothing of them.
  write_both("a\n\xC2\xA0 \n", "a\nb\n");
  EXPECT_THAT(error(source()), HasSubstr("DIR/train.de:2: the source must have a word, got"));
  write_both("a\nb\n", "a\n\xE3\x80\x80\n");
  EXPECT_THAT(error(source()), HasSubstr("DIR/train.en:2: the target must have a word, got"));
  write_both("a\nz\xFF\n", "a\nb\n");
  EXPECT_THAT(error(source()), HasSubstr("DIR/train.de:2: the text must be UTF-8, but byte 2 of the line"));

  write_both(lines, "one\ntwo\nthree\nfour\n\t\nfive\n");
  auto from = source();
  from.skip_bad = true;
  const auto corpus = open_line_pairs(from);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(read_all(*corpus->open("train")),
              (std::vector<LinePair>{{"eins", "one"}, {"f\xC3\xBCnf", "five"}}));
    EXPECT_EQ(corpus->bad().count(), 4);
    ASSERT_EQ(corpus->bad().reasons.size(), 4u);
    EXPECT_EQ(corpus->bad().reasons[0].reason, "the source is empty");
    EXPECT_EQ(corpus->bad().reasons[1].reason, "a line is not UTF-8");
    EXPECT_EQ(corpus->bad().reasons[2].reason, "a line has NUL bytes");
    EXPECT_EQ(corpus->bad().reasons[3].reason, "the target is empty");
    EXPECT_EQ(corpus->bad().reasons[3].first, (folder_ / "train.en:5").string());
    EXPECT_EQ(corpus->bad().reasons[3].set, "train");
  }
}

TEST_F(PairsTest, ALineOfAnyLengthTakesBoundedMemory) {
  std::string words;
  for (int i = 0; i < 100000; ++i) words += "word ";
  const std::string most(1 << 20, 'x'), long_line = std::string(3 << 20, 'x');
  write_both("a\n" + long_line + "\r\n" + words + "\n" + most + "\r\n", "a\nb\nc\nd\n");
  EXPECT_EQ(
      error(source()),
      "DIR/train.de:2: a line must have at most 1 MiB (1,048,576 bytes); skip_bad leaves such pairs out");
  auto from = source();
  from.skip_bad = true;
  const auto corpus = open_line_pairs(from);
  const auto pairs = read_all(*corpus->open("train"));
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[1].source, words);
  EXPECT_EQ(pairs[2].source, most);
  ASSERT_EQ(corpus->bad().reasons.size(), 1u);
  EXPECT_EQ(corpus->bad().reasons[0].reason, "a line has more than 1 MiB");
  EXPECT_EQ(corpus->bad().reasons[0].first, (folder_ / "train.de:2").string());
}

TEST(TextForm, PiecesOfBpeBecomeWords) {
  const std::string cut = "go@@ od da@@ y@@ s a@@b @@ x@@";
  EXPECT_EQ(whole_words(cut, TextForm::bpe), "good days a@@b x");
  EXPECT_EQ(whole_words("x @@", TextForm::bpe), "x ");
  EXPECT_EQ(whole_words("", TextForm::bpe), "");
  EXPECT_EQ(whole_words(cut, TextForm::tokenised), cut);
}

TEST_F(PairsTest, TsvHasTwoColumns) {
  write("train.tsv", "x\ty\n");
  EXPECT_EQ(error(source("multi30k")),
            "data: the multi30k format needs DIR/train.de or train.de.gz, but the endings there are tsv: "
            "--set task.data=tsv --set task.source= --set task.target= reads it");
  EXPECT_THAT(error(source()), HasSubstr("the only ending there is tsv: --set task.data=tsv"));
  std::filesystem::remove(folder_ / "train.tsv");
  write("train.txt", "a\tb\n");
  EXPECT_EQ(error(source("tsv")),
            "data: the tsv format needs DIR/train.tsv or train.tsv.gz, but there is neither");
  write("train.tsv", "ein Hund\ta dog\nzwei\t\xC2\xA0\n");
  EXPECT_THAT(error(source("tsv")), HasSubstr("DIR/train.tsv:2: the target must have a word, got"));
  write("train.tsv", "ein Hund\ta dog\nzwei\ttwo\n");
  compressed("val.tsv.gz", "drei\tthree\n");
  EXPECT_EQ(read(source("tsv")), (std::vector<LinePair>{{"ein Hund", "a dog"}, {"zwei", "two"}}));
  EXPECT_EQ(read(source("tsv"), "dev"), (std::vector<LinePair>{{"drei", "three"}}));
  std::filesystem::remove(folder_ / "train.tsv");
  compressed("train.tsv.gz", "vier\tfour\n");
  EXPECT_EQ(read(source("tsv")), (std::vector<LinePair>{{"vier", "four"}}));
  std::filesystem::remove(folder_ / "train.tsv.gz");
  write("train.tsv", "eins\tone\nzwei\ndrei\tthree\t3\n\tfour\n");
  EXPECT_EQ(error(source("tsv")),
            "DIR/train.tsv:2: a line must have 2 columns (source, target) separated by one tab, got 1 in "
            "\"zwei\"; skip_bad leaves such pairs out");
  auto from = source("tsv");
  from.skip_bad = true;
  const auto corpus = open_line_pairs(from);
  EXPECT_EQ(read_all(*corpus->open("train")).size(), 1u);
  ASSERT_EQ(corpus->bad().reasons.size(), 2u);
  EXPECT_EQ(corpus->bad().reasons[0].count, 2);
  EXPECT_EQ(corpus->bad().reasons[1].reason, "the source is empty");
  from.source = "de";
  EXPECT_THAT(
      error(from),
      HasSubstr("a tsv file has both sides, so source and target, the endings of two files, must be empty, "
                "got \"de\" (--set task.source= --set task.target=)"));
}

TEST_F(PairsTest, KnownSetsAreFoundByName) {
  for (const char* stem : {"train", "val", "test_2016_flickr"})
    for (const char* ending : {"de", "en", "fr"})
      write(std::string("mt/multi30k/") + stem + "." + ending, std::string(stem) + " " + ending + "\n");
  EXPECT_EQ(read(source("multi30k"), "test"),
            (std::vector<LinePair>{{"test_2016_flickr de", "test_2016_flickr en"}}));
  auto french = source("multi30k");
  french.source = "en", french.target = "fr";
  EXPECT_EQ(read(french, "dev"), (std::vector<LinePair>{{"val en", "val fr"}}));
  EXPECT_EQ(open_line_pairs(french)->text(), TextForm::raw);
  for (const char* split : {"train", "dev", "test"})
    for (const char* ending : {"en", "ja"})
      write(std::string("mt/mt/enja/") + split + "." + ending, std::string(split) + " " + ending + "\n");
  EXPECT_EQ(read(source("enja"), "test"), (std::vector<LinePair>{{"test en", "test ja"}}));
  EXPECT_EQ(open_line_pairs(source("enja"))->text(), TextForm::tokenised);
}

// Whoever names a folder of their own beside a recipe of that set has files with the usual names.
TEST_F(PairsTest, Multi30ksReaderTakesTheUsualNamesToo) {
  for (const char* stem : {"train", "dev", "test"})
    for (const char* ending : {"de", "en"})
      write(std::string(stem) + "." + ending, std::string(stem) + " " + ending + "\n");
  EXPECT_EQ(read(source("multi30k"), "dev"), (std::vector<LinePair>{{"dev de", "dev en"}}));
  EXPECT_EQ(read(source("multi30k"), "test"), (std::vector<LinePair>{{"test de", "test en"}}));
  for (const char* ending : {"de", "en"}) write(std::string("test_2016_flickr.") + ending, "x\n");
  EXPECT_EQ(error(source("multi30k")),
            "data: there are both DIR/test_2016_flickr.de and test.de; remove the one that is not meant");
}

TEST_F(PairsTest, SetsWithOtherNamesAreListed) {
  write_both("eins\n", "one\n");
  EXPECT_THAT(open_line_pairs(source())->unread(), IsEmpty());
  for (const char* name : {"tst2013.de", "tst2013.en.gz", "tst2012.de", "tst2012.en", "val.de", "val.en",
                           "news.de", "read.me", ".de", ".en"})
    write(name, "x\n");
  EXPECT_THAT(open_line_pairs(source("multi30k"))->unread(), ElementsAre("tst2012", "tst2013"));
  for (const char* name : {"train.tsv", "dev.tsv", "more.tsv"}) write(name, "x\ty\n");
  EXPECT_THAT(open_line_pairs(source("tsv"))->unread(), ElementsAre("more"));
}

TEST_F(PairsTest, ShakespearesTestPairsThatAreInTrainAreLeftOut) {
  const auto both = [&](const std::string& split, const std::string& modern, const std::string& original) {
    write(split + ".modern", modern);
    write(split + ".original", original);
  };
  both("train", "yes .\nno .\nyou go .\n", "yea .\nnay .\nthou goest .\n");
  both("dev", "yes .\n", "yea .\n");
  both("test", "no .\nyes .\nno .\nyes .\n", "nay .\nay .\nnay .\nyes .\n");
  const auto corpus = open_line_pairs(source("shakespeare"));
  EXPECT_EQ(read_all(*corpus->open("test")), (std::vector<LinePair>{{"yes .", "ay ."}, {"yes .", "yes ."}}));
  ASSERT_EQ(corpus->bad().reasons.size(), 1u);
  EXPECT_EQ(corpus->bad().reasons[0].reason, "the pair is in train too");
  EXPECT_EQ(corpus->bad().reasons[0].set, "test");
  EXPECT_EQ(corpus->bad().reasons[0].count, 2);
  EXPECT_EQ(read_all(*corpus->open("dev")).size(), 1u);
}

TEST_F(PairsTest, GeneratedSetsAreThoseOfTheirLanguages) {
  LinePairSource from = source("math");
  from.folder.clear();
  from.math.train = 50, from.math.dev = 10, from.math.test = 20, from.math.seed = 3;
  const auto whole = generate_math(from.math);
  const auto corpus = open_line_pairs(from);
  EXPECT_EQ(corpus->groups(), whole.groups);
  EXPECT_EQ(corpus->text(), TextForm::tokenised);
  EXPECT_THAT(corpus->files("train"), IsEmpty());
  EXPECT_EQ(read_all(*corpus->open("train")), whole.train);
  EXPECT_EQ(read_all(*corpus->open("dev")), whole.dev);
  EXPECT_EQ(read_all(*corpus->open("test")), whole.test);
  EXPECT_THAT(error(from, "valid"), HasSubstr("the sets of 'math' are train, dev and test, got \"valid\""));

  from.reader = "reverse";
  from.reverse.train = 50, from.reverse.dev = 10, from.reverse.test = 20;
  const auto backwards = generate_reverse(from.reverse);
  EXPECT_EQ(read(from), backwards.train);
  EXPECT_EQ(read(from, "test"), backwards.test);
  EXPECT_THAT(open_line_pairs(from)->groups(), IsEmpty());
  from.math.train = 0;  // another reader's
  EXPECT_EQ(read(from), backwards.train);
  from.reverse.train = 0;
  EXPECT_THROW(open_line_pairs(from), std::exception);
}

TEST_F(PairsTest, AMillionGeneratedLinesAreMadeOneByOne) {
  LinePairSource from;
  from.math.train = int64_t{1} << 40;
  const auto reader = open_line_pairs(from)->open("train");
  LinePair pair;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader->next(pair));
  EXPECT_EQ(pair, math_line(from.math, 2));
  EXPECT_EQ(reader->place(), "math.train:3");
}

}  // namespace
}  // namespace quatrain::data
