#include "quatrain/data/text_pairs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "quatrain/data/text_pair_loader.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextPairsTest : public DataTest {
 protected:
  TextPairSplits read(const std::string& reader, bool skip_bad = false) const {
    TextPairSource source;
    source.reader = reader;
    source.folder = folder_;
    source.skip_bad = skip_bad;
    return load_text_pairs(source);
  }
  std::string error(const std::string& reader) const {
    return error_of([&] { read(reader); });
  }
  void write_tsv(const std::string& train) const {
    write("train.tsv", train);
    write("dev.tsv", "no\ta b\tc\n");
    write("test.tsv", "yes\ta b\ta\r\n");
  }
  void write_answers(const std::string& set, const std::string& a, const std::string& b,
                     const std::string& sim, const std::string& id) const {
    write(set + "/a.toks", a);
    write(set + "/b.toks", b);
    write(set + "/sim.txt", sim);
    write(set + "/id.txt", id);
  }
  // SNLI's 1,000 pairs of dev are taken from 1,100 images.
  void write_snli() const {
    std::string dev = "-\ta\tb\tx.jpg#1\tneutral\nneutral\tshared\tb\tt1.jpg#1\tneutral\n";
    for (int i = 0; i < 1100; ++i)
      dev +=
          "entailment\tpremise " + std::to_string(i) + "\tb\ti" + std::to_string(i) + ".jpg#0r1e\tneutral\n";
    write("snli_dev.tsv", dev);
    write("snli_test.tsv", "neutral\tp\tq\tt1.jpg#0\tneutral\n");
    write("snli_train_1024.tsv", "contradiction\tp\tq\tn.jpg#0\tneutral\n");
    write("cad/all_combined/train.tsv",
          "sentence1\tsentence2\tgold_label\none\ttwo\tneutral\nheld\tout\tneutral\n");
    write("cad/all_combined/dev.tsv", "sentence1\tsentence2\tgold_label\nheld\ttwo\tneutral\n");
  }
};

TEST_F(TextPairsTest, ATsvOfYourOwn) {
  write_tsv("yes\t A dog \tan animal\n\nno\ta dog\ta car\n");
  const auto splits = read("tsv");
  EXPECT_THAT(splits.labels, ElementsAre("no", "yes"));
  ASSERT_EQ(splits.train.size(), 2u);
  EXPECT_EQ(splits.train[0].first, "A dog");
  EXPECT_EQ(splits.train[0].second, "an animal");
  EXPECT_EQ(splits.train[0].label, 1);
  EXPECT_EQ(splits.test[0].second, "a");
  EXPECT_FALSE(splits.ranked);
  for (const char* header : {"label\ta\tb", "Class\ta\tb", " TARGET \ta\tb", "gold_label\t\t"}) {
    write_tsv(std::string(header) + "\nyes\ta dog\tan animal\nno\ta dog\ta car\n");
    EXPECT_THAT(read("tsv").labels, ElementsAre("no", "yes")) << header;
  }
  write_tsv("kind\ta\tb\nyes\ta dog\tan animal\nno\ta dog\ta car\n");
  EXPECT_THAT(read("tsv").labels, ElementsAre("kind", "no", "yes"));
}

TEST_F(TextPairsTest, OneSetOfATsvIsReadAlone) {
  write("test.tsv", "yes\ta b\ta\n");
  TextPairSource source;
  source.reader = "tsv", source.folder = folder_;
  source.only = "test";
  EXPECT_THAT(error_of([&] { load_text_pairs(source); }), HasSubstr("at least 2 different labels"));
  source.labels = {"perhaps", "yes", "no"};
  const auto splits = load_text_pairs(source);
  EXPECT_EQ(splits.labels, source.labels);
  ASSERT_EQ(splits.test.size(), 1u);
  EXPECT_EQ(splits.test[0].label, 1);
  EXPECT_TRUE(splits.train.empty() && splits.dev.empty());
  EXPECT_THAT(text_pair_files(source), ElementsAre(folder_ / "test.tsv"));
  source.labels = {"no", "perhaps"};
  EXPECT_THAT(error_of([&] { load_text_pairs(source); }),
              HasSubstr("test.tsv:1: the label must be one of no, perhaps, got \"yes\""));
  source.only = "dev";
  EXPECT_THAT(error_of([&] { load_text_pairs(source); }), HasSubstr("there is no dev.tsv in"));
}

TEST_F(TextPairsTest, TwoDevSetsAreRefused) {
  write_tsv("yes\ta\tb\nno\ta\tc\n");
  write("valid.tsv", "yes\ta\tb\n");
  EXPECT_EQ(error("tsv"), "data: there are both " + (folder_ / "dev.tsv").string() +
                              " and valid.tsv; remove the one that is not meant");
}

TEST_F(TextPairsTest, AFirstLineMayNameTheColumnsAndLabelsAreTrimmed) {
  write_tsv("label\tfirst\tsecond\nyes \ta\tb\n no\ta\tc\nyes\tlabel\td\n");
  const auto splits = read("tsv");
  EXPECT_THAT(splits.labels, ElementsAre("no", "yes"));
  EXPECT_EQ(splits.train.size(), 3u);
  EXPECT_EQ(splits.train[0].label, splits.train[2].label);
}

TEST_F(TextPairsTest, BadPairsAreOneSentenceOrCounted) {
  for (const auto& [line, message] : std::map<std::string, std::string>{
           {"yes\t\tb", "train.tsv:3: the first text must not be empty; skip_bad leaves such pairs out"},
           {"yes\ta\t ", "train.tsv:3: the second text must not be empty"},
           {"yes\t<br />\tb",
            "train.tsv:3: the first text must have a word, got \"<br />\"; skip_bad leaves such pairs out"},
           {"yes\ta\t\xC2\xA0", "train.tsv:3: the second text must have a word, got \"\\xC2\\xA0\""},
           {"yes\ta\t\x01 \x7F", "train.tsv:3: the second text must have a word, got \"\\x01 \\x7F\""},
           {"yes\ta", "train.tsv:3: a line must have 3 columns (label, first text, second text)"},
           {"yes\ta\t\xff", "train.tsv:3: "}}) {
    write_tsv("yes\ta\tb\nno\ta\tc\n" + line + "\n");
    EXPECT_THAT(error("tsv"), HasSubstr(message));
    const auto splits = read("tsv", true);
    EXPECT_EQ(splits.train.size(), 2u);
    ASSERT_EQ(splits.bad.reasons.size(), 1u);
    EXPECT_EQ(splits.bad.count(), 1);
    EXPECT_EQ(splits.bad.reasons[0].set, "train");
    EXPECT_THAT(splits.bad.reasons[0].first, HasSubstr("train.tsv:3"));
  }
  write_tsv("yes\ta\tb\nno\ta\tc\n");
  write("dev.tsv", "perhaps\ta\tb\n");
  EXPECT_THAT(error("tsv"), HasSubstr("dev.tsv:1: the label must be one of no, yes, got \"perhaps\""));
  EXPECT_THAT(error_of([&] { read("tsv", true); }), HasSubstr("gives no pair"));
  write_tsv("yes\ta\tb\n");
  EXPECT_THAT(error("tsv"), HasSubstr("must have at least 2 different labels, got only \"yes\""));
  write_tsv("yes\ta\tb\nno\ta\tc\nmaybe\ta\t\n");  // the label of a bad pair alone is none
  EXPECT_THAT(read("tsv", true).labels, ElementsAre("no", "yes"));
  write_tsv(std::string("y\0e\0", 4));
  EXPECT_THAT(error("tsv"), HasSubstr("train.tsv:1: the text must not contain NUL bytes"));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "label" + std::to_string(i) + "\ta\tb\n";
  write_tsv(many);
  EXPECT_THAT(error("tsv"),
              HasSubstr("the label must be one of label0, label1, label10, label11, label1..., got"));
  TextPairSource file;
  file.reader = "tsv";
  file.folder = folder_ / "train.tsv";
  EXPECT_THAT(error_of([&] { load_text_pairs(file); }),
              testing::EndsWith("needs the folder that contains train.tsv, dev.tsv, test.tsv"));
  EXPECT_THAT(error("nli"), HasSubstr("the reader must be one of entailment, snli"));
}

// <br> is a word where white space alone cuts texts.
TEST_F(TextPairsTest, WhatIsAWordIsUpToTheTokenizer) {
  TextPairSource source;
  source.reader = "tsv";
  source.folder = folder_;
  source.tokenizer = Tokenizer::whitespace;
  write_tsv("yes\t<br>\tb\nno\ta\tc\n");
  EXPECT_EQ(load_text_pairs(source).train.size(), 2u);
  write_tsv("yes\t\xE2\x80\x8B\tb\nno\ta\tc\n");  // a space without width
  EXPECT_THAT(error_of([&] { load_text_pairs(source); }),
              HasSubstr("train.tsv:1: the first text must have a word, got \"\\xE2\\x80\\x8B\""));
}

TEST_F(TextPairsTest, SnliSharesNoImageOrPremise) {
  write_snli();
  const auto splits = read("snli");
  EXPECT_EQ(splits.dev.size(), 1000u);
  EXPECT_EQ(splits.test.size(), 1u);
  ASSERT_EQ(splits.train.size(), 102u);  // 100 left, one of the 1,024, one counterfactual
  std::set<std::string> firsts;
  for (const auto* set : {&splits.train, &splits.dev})
    for (const auto& pair : *set) EXPECT_TRUE(firsts.insert(pair.first).second) << pair.first;
  EXPECT_FALSE(firsts.contains("held"));
  EXPECT_FALSE(firsts.contains("shared"));
  EXPECT_EQ(splits.train.back().first, "one");
  EXPECT_EQ(splits.bad.count(), 3);
  write("cad/all_combined/dev.tsv", "held\ttwo\tneutral\n");
  EXPECT_THAT(error("snli"), HasSubstr("dev.tsv:1: the first line must name the columns"));
}

TEST_F(TextPairsTest, SickLeavesTestPairsOutOfTrain) {
  const std::string header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment";
  write("SICK_train.txt", header + "\n1\tA b\tc\t3\tNEUTRAL\n2\tx\ty\t3\tENTAILMENT\n");
  write("SICK_trial.txt", header + "\n3\tA\tb\t3\tCONTRADICTION\n");
  write("SICK_test_annotated.txt", header + "\r\n4\tc\tA b\t3\tNEUTRAL\r\n");  // in the other order
  const auto splits = read("sick");
  ASSERT_EQ(splits.train.size(), 1u);
  EXPECT_EQ(splits.train[0].first, "x");
  EXPECT_EQ(splits.train[0].label, 0);
  EXPECT_EQ(splits.dev[0].label, 2);
  EXPECT_EQ(splits.bad.count(), 1);
  write("SICK_trial.txt", header + "\n3\tA\tb\t3\tcontradiction\n");
  EXPECT_THAT(error("sick"), HasSubstr("SICK_trial.txt:2: the label must be one of ENTAILMENT"));
}

TEST_F(TextPairsTest, AnswersAreGroupedByQuestion) {
  write_answers("train", "q ?\nq ?\nr\n", "a\nb\nc\n", "0\n1\n0.0\n", "Q1-D1-0\nQ1-D1-1\nQ2-D2-0\n");
  for (const char* set : {"dev", "test"}) write_answers(set, "q\n", "a\n", "1\n", "Q5-D5-0\n");
  const auto splits = read("wikiqa");
  EXPECT_TRUE(splits.ranked);
  ASSERT_EQ(splits.train.size(), 3u);
  EXPECT_EQ(splits.train[1].group, splits.train[0].group);
  EXPECT_NE(splits.train[2].group, splits.train[0].group);
  EXPECT_EQ(splits.train[1].label, 1);
  EXPECT_EQ(splits.train[1].document, "Q1-D1-1");
  EXPECT_EQ(splits.train[1].question, "Q1");

  write_answers("dev", "q\nr\n", "a\nb\n", "1\nnan\n", "Q5-D5-0\nQ5-D5-1\n");
  EXPECT_THAT(error("wikiqa"), HasSubstr("sim.txt:2: the relevance must be 0 or 1, got \"nan\""));
  EXPECT_EQ(read("wikiqa", true).bad.count(), 1);
  write_answers("dev", "q\nr\n", "a\n", "1\n0\n", "Q5-D5-0\nQ5-D5-1\n");
  EXPECT_THAT(error("wikiqa"),
              HasSubstr("different numbers of lines (a.toks 2, b.toks 1, sim.txt 2, id.txt 2)"));
  EXPECT_THAT(error_of([&] { read("wikiqa", true); }), HasSubstr("different numbers of lines"));
  write_answers("dev", "q\nr\n", "a\nb\n", "1\n0\n", "Q5-D5-0\nQ5-D5-0\n");
  EXPECT_THAT(error("wikiqa"), HasSubstr("id.txt:2: the name must be that of one answer alone"));
  write_answers("dev", "q\nr\n", "a\nb\n", "1\n0\n", "Q5-D5-0\nQ5-\tD\n");
  EXPECT_THAT(error("wikiqa"), HasSubstr("id.txt:2: the name must not have tabs"));
  for (const char* name : {"Q5_1", "-D5"}) {
    write_answers("dev", "q\nr\n", "a\nb\n", "1\n0\n", "Q5-D5-0\n" + std::string(name) + "\n");
    EXPECT_THAT(error("wikiqa"), HasSubstr("id.txt:2: the name must begin with the question's and a hyphen"));
    EXPECT_EQ(read("wikiqa", true).bad.count(), 1);
  }
  write_answers("dev", "q\n\n", "a\nb\n", "1\n0\n", "Q5-D5-0\nQ5-D5-1\n");
  EXPECT_THAT(error("wikiqa"), HasSubstr("a.toks:2: the question must not be empty"));
  write_answers("dev", "q\nr\n", "a\n\xC2\xA0\n", "1\n0\n", "Q5-D5-0\nQ5-D5-1\n");
  EXPECT_THAT(error("wikiqa"), HasSubstr("b.toks:2: the answer must have a word, got \"\\xC2\\xA0\""));
  EXPECT_EQ(read("wikiqa", true).bad.count(), 1);
}

TEST_F(TextPairsTest, TrecQaNamesItsQuestions) {
  for (const char* set : {"train", "clean-dev", "clean-test"})
    write_answers(set, "q\nq\nr\n", "a\nb\nc\n", "0\n1\n0\n", "32.1\n32.1\n32.2\n");
  const auto splits = read("trecqa");
  EXPECT_EQ(splits.test[0].group, splits.test[1].group);
  EXPECT_NE(splits.test[0].group, splits.test[2].group);
  EXPECT_EQ(splits.test[1].question, "32.1");
  EXPECT_EQ(splits.test[1].document, "000001");
  EXPECT_EQ(splits.test[2].document, "000000");
}

TEST_F(TextPairsTest, MsrpHasNoQuoting) {
  const std::string header = "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n";
  for (const char* set : {"train", "val", "test"})
    write("msr-para-" + std::string(set) + ".tsv",
          header + "1\t1\t2\tHe said \"no.\tNo\r\n0\t3\t4\ta\tb\"\r\n");
  const auto splits = read("msrp");
  ASSERT_EQ(splits.dev.size(), 2u);
  EXPECT_EQ(splits.dev[0].first, "He said \"no.");
  EXPECT_EQ(splits.dev[0].label, 1);
  EXPECT_EQ(splits.dev[1].second, "b\"");
}

TEST_F(TextPairsTest, TwitterIsSplitByWhatIsConnected) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::string first = "tweet " + std::to_string(i), second = "answer " + std::to_string(i / 2),
                      address = "\thttp://" + std::to_string(i / 2) + "\n";
    text += first + " \t" + second + "\t(0,6)" + address + "\n" + first + "\ttwo " + std::to_string(i) +
            "\t(6,6)\t" + address + first + "\tthree\t(3,6)" + address;
  }
  text += "tweet 0\tanswer 0\t(5,6)\thttp://0\n";  // another label than before
  write("Twitter_URL_Corpus_test.txt", text);
  const auto splits = read("twitter_url");
  EXPECT_EQ(splits.train.size() + splits.dev.size() + splits.test.size(), 119u);
  EXPECT_NEAR(static_cast<double>(splits.test.size()), 24, 4);
  EXPECT_NEAR(static_cast<double>(splits.dev.size()), 12, 4);
  std::map<int, std::set<const void*>> sets_of_address;
  for (const auto* set : {&splits.train, &splits.dev, &splits.test})
    for (const auto& pair : *set) sets_of_address[std::stoi(pair.first.substr(6)) / 2].insert(set);
  for (const auto& [address, sets] : sets_of_address) EXPECT_EQ(sets.size(), 1u) << address;
  EXPECT_EQ(splits.bad.count(), 62);  // 60 without a majority, 2 with two labels
  // What has another address but a sentence of the test set is not trained on.
  const std::string sentence = splits.test.front().second;
  write("Twitter_URL_Corpus_test.txt", text + "new\t" + sentence + "\t(0,6)\thttp://new\n");
  const auto shared = read("twitter_url");
  const auto has_sentence = [&](const std::vector<TextPair>& set) {
    return std::any_of(set.begin(), set.end(), [&](const auto& pair) { return pair.second == sentence; });
  };
  EXPECT_EQ(has_sentence(shared.train) + has_sentence(shared.dev) + has_sentence(shared.test), 1);
  EXPECT_EQ(shared.bad.count(), 63);
  write("Twitter_URL_Corpus_test.txt", text + "a\tb\t(7,6)\thttp://0\n");
  EXPECT_THAT(error("twitter_url"), HasSubstr("the votes must be from (0,6) to (6,6), got \"(7,6)\""));
  write("Twitter_URL_Corpus_test.txt", text + "a\t<br>\t(0,6)\thttp://0\n");
  EXPECT_THAT(error("twitter_url"), HasSubstr("the second text must have a word, got \"<br>\""));
  // The same two texts in the other order are the same pair: one with another label conflicts, one with the
  // same label stays.
  write("Twitter_URL_Corpus_test.txt",
        text + "answer 1\ttweet 2\t(5,6)\thttp://1\nanswer 2\ttweet 4\t(1,6)\thttp://2\n");
  const auto turned = read("twitter_url");
  EXPECT_EQ(turned.train.size() + turned.dev.size() + turned.test.size(), 119u);
  EXPECT_EQ(turned.bad.count(), 64);
}

// What a guesser can know who looks at single words of either text: the best label of each word.
double best_of_words(const TextPairSplits& splits, int64_t part) {
  std::map<std::string, std::map<int64_t, double>> counts;
  const auto words = [](const TextPair& pair) {
    std::vector<std::string> all;
    for (const auto& word : split(pair.first, Tokenizer::whitespace)) all.push_back("1" + word);
    for (const auto& word : split(pair.second, Tokenizer::whitespace)) all.push_back("2" + word);
    return all;
  };
  for (const auto& pair : splits.train)
    if (pair.group == part)
      for (const auto& word : words(pair)) ++counts[word][pair.label];
  double right = 0, all = 0;
  for (const auto& pair : splits.test) {
    if (pair.group != part) continue;
    std::map<int64_t, double> votes;
    for (const auto& word : words(pair)) {
      double sum = 1;
      for (const auto& [label, count] : counts[word]) sum += count;
      for (int64_t label = 0; label < 3; ++label) votes[label] += std::log((counts[word][label] + 1) / sum);
    }
    int64_t best = 0;
    for (const auto& [label, vote] : votes)
      if (vote > votes[best]) best = label;
    right += best == pair.label;
    ++all;
  }
  return right / all;
}

TEST(Entailment, WordsAloneDoNotTell) {
  EntailmentOptions options;
  options.train = 6000;
  const auto splits = generate_entailment(options);
  EXPECT_EQ(splits.test.size(), 2000u);
  EXPECT_LT(best_of_words(splits, 0), 0.45);  // a third is chance
  EXPECT_LT(best_of_words(splits, 1), 0.55);  // a half is chance
}

TEST(Entailment, PairsOfTheOrderPartComeInTwosOfEqualWords) {
  const auto splits = generate_entailment();
  for (const auto* set : {&splits.train, &splits.dev, &splits.test}) {
    std::map<std::string, std::multiset<int64_t>> labels;
    std::set<std::string> all;
    for (const auto& pair : *set) {
      EXPECT_TRUE(all.insert(pair.first + "\t" + pair.second).second);
      if (pair.group != 1) continue;
      auto words = split(pair.second, Tokenizer::whitespace);
      std::sort(words.begin(), words.end());
      std::string key = pair.first;
      for (const auto& word : words) key += "|" + word;
      labels[key].insert(pair.label);
    }
    EXPECT_EQ(2 * labels.size(), set->size() / 2);
    for (const auto& [words, of] : labels) EXPECT_EQ(of, (std::multiset<int64_t>{0, 1})) << words;
  }
}

TEST(Entailment, SizesOfTrainDoNotChangeTheTestSet) {
  EntailmentOptions small;
  small.train = 10;
  EXPECT_EQ(generate_entailment(small).test[5].first, generate_entailment().test[5].first);
  small.train = 100000000;
  small.dev = small.test = 1;
  small.order_share = 2;
  EXPECT_THAT(error_of([&] { generate_entailment(small); }), HasSubstr("order_share must be from 0 to 1"));
}

std::shared_ptr<const EncodedTextPairs> some_answers() {
  std::vector<TextPair> pairs;
  for (int64_t question = 0; question < 10; ++question)
    for (int64_t i = 0; i < 8; ++i)
      pairs.push_back({"what", i % 2 ? "this" : "that and more", i == 0 && question < 9, question, ""});
  const auto vocabulary = vocabulary_of(pairs, Tokenizer::whitespace);
  return std::make_shared<EncodedTextPairs>(encode(pairs, Tokenizer::whitespace, vocabulary, 2));
}

TEST(TextPairLoader, EachPairOnceWithItsWords) {
  const auto set = some_answers();
  TextPairLoader loader(set, {.batch_size = 7});
  EXPECT_EQ(loader.batches(), 12);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const auto batch = loader.batch(3, i);
    EXPECT_EQ(batch.first.size(0), batch.size());
    EXPECT_LE(batch.second.size(1), 2);  // cut off
    for (int64_t row = 0; row < batch.size(); ++row) {
      const int64_t place = batch.indices[static_cast<size_t>(row)];
      EXPECT_TRUE(seen.insert(place).second);
      EXPECT_EQ(batch.labels[row].item<int64_t>(), place % 8 == 0 && place < 72);
      EXPECT_EQ(batch.second[row][0].item<int64_t>(), set->second.ids[set->second.offsets[place]]);
    }
  }
  EXPECT_EQ(seen.size(), 80u);
}

TEST(TextPairLoader, NegativesAreOthersInEachEpoch) {
  TextPairLoaderOptions options{.batch_size = 4, .negatives = 3};
  TextPairLoader loader(some_answers(), options), again(some_answers(), options);
  const auto drawn = [](TextPairLoader& from, int64_t epoch) {
    std::multiset<int64_t> all;
    for (int64_t i = 0; i < from.batches(); ++i)
      for (const int64_t place : from.batch(epoch, i).indices) all.insert(place);
    return all;
  };
  const auto first = drawn(loader, 0), second = drawn(loader, 1);
  EXPECT_EQ(first.size(), 36u);  // nine questions with a right answer
  EXPECT_EQ(loader.batches(), 9);
  EXPECT_NE(first, second);
  EXPECT_EQ(drawn(again, 1), second);  // without epoch 0 before
  EXPECT_EQ(drawn(loader, 0), first);
  for (int64_t question = 0; question < 9; ++question) EXPECT_EQ(first.count(8 * question), 1u);
}

}  // namespace
}  // namespace quatrain::data
