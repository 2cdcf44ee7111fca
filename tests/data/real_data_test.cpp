#include <torch/types.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "quatrain/data/audio.h"
#include "quatrain/data/dataset.h"
#include "quatrain/data/filter_bank.h"
#include "quatrain/data/image_input.h"
#include "quatrain/data/image_set.h"
#include "quatrain/data/line_pair_source.h"
#include "quatrain/data/phones.h"
#include "quatrain/data/speech_corpus.h"
#include "quatrain/data/text_pairs.h"
#include "quatrain/data/text_source.h"
#include "quatrain/data/vectors.h"
#include "support.h"

// These read the sets themselves, from the folder that QUATRAIN_DATA names, one folder a set (docs/data.md).
namespace quatrain::data {
namespace {

class RealDataTest : public testing::Test {
 protected:
  void open(const std::string& set) {
    const char* folder = std::getenv("QUATRAIN_DATA");
    if (!folder) GTEST_SKIP() << "QUATRAIN_DATA names no folder";
    source_.folder = std::filesystem::path(folder) / set;
    if (!std::filesystem::exists(source_.folder)) GTEST_SKIP() << "there is no " << source_.folder;
    source_.reader = set;
  }
  static std::vector<size_t> sizes(const Splits& splits) {
    return {splits.train.size(), splits.dev.size(), splits.test.size()};
  }
  TextPairSplits read_pairs(const std::string& reader) const {
    TextPairSource source;
    source.reader = reader;
    source.folder = source_.folder;
    return load_text_pairs(source);
  }
  static std::vector<size_t> sizes(const TextPairSplits& splits) {
    return {splits.train.size(), splits.dev.size(), splits.test.size()};
  }
  Source source_;
};

#define OPEN_OR_SKIP(set) \
  open(set);              \
  if (IsSkipped()) return

TEST_F(RealDataTest, Sst) {
  OPEN_OR_SKIP("sst");
  EXPECT_EQ(sizes(load(source_)), (std::vector<size_t>{6920, 872, 1821}));
  source_.reader = "sst5";
  EXPECT_EQ(sizes(load(source_)), (std::vector<size_t>{8544, 1101, 2210}));
}

TEST_F(RealDataTest, Imdb) {
  OPEN_OR_SKIP("imdb");
  const auto splits = load(source_);
  EXPECT_EQ(splits.train.size() + splits.dev.size(), 25000u);
  EXPECT_NEAR(static_cast<double>(splits.dev.size()), 2500, 5);
  EXPECT_EQ(splits.test.size(), 25000u);
  EXPECT_EQ(majority(splits.test).overall.count, 12500);
}

TEST_F(RealDataTest, SvaHasTheKnownMajority) {
  OPEN_OR_SKIP("sva");
  const auto splits = load(source_);
  auto all = splits.train;
  all.insert(all.end(), splits.dev.begin(), splits.dev.end());
  all.insert(all.end(), splits.test.begin(), splits.test.end());
  EXPECT_EQ(all.size(), 7485u);
  const auto guess = majority(all);
  const auto percent = [](const Share& share) { return std::lround(100 * share.share()); };
  EXPECT_EQ(guess.overall.label, 1);
  EXPECT_EQ(percent(guess.overall), 64);
  EXPECT_EQ(percent(guess.by_group.at(2)), 79);
  EXPECT_EQ(percent(guess.by_group.at(3)), 86);
  EXPECT_EQ(percent(guess.by_group.at(4)), 95);
}

TEST_F(RealDataTest, WordVectors) {
  OPEN_OR_SKIP("wordvecs");
  const Vocabulary words({"in", "the", "film", "zzyzx"});
  const auto folder = source_.folder / "wordvecs";
  const auto wide = load_vectors(folder / "w2v.bf16", words),
             narrow = load_vectors(folder / "glove_twitter_11925x25.txt", words);
  EXPECT_EQ(wide.values.size(1), 300);
  EXPECT_GE(wide.found, 2);
  EXPECT_EQ(narrow.values.size(1), 25);
  EXPECT_EQ(narrow.found, 3);
}

class RealPairsTest : public testing::Test {
 protected:
  void open(const std::string& reader, const std::string& folder) {
    const char* data = std::getenv("QUATRAIN_DATA");
    if (!data) GTEST_SKIP() << "QUATRAIN_DATA names no folder";
    folder_ = std::filesystem::path(data) / folder;
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "there is no " << folder_;
    LinePairSource source;
    source.reader = reader;
    source.folder = folder_;
    if (reader != "wikitext2") corpus_ = open_line_pairs(source);
  }
  /// The sizes of the sets, and how many pairs were left out.
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> all;
    for (const char* split : {"train", "dev", "test"}) {
      const auto reader = corpus_->open(split);
      all.push_back(0);
      for (LinePair pair; reader->next(pair);) ++all.back();
    }
    all.push_back(corpus_->bad().count());
    return all;
  }
  std::filesystem::path folder_;
  std::unique_ptr<LinePairCorpus> corpus_;
};

#define OPEN_PAIRS_OR_SKIP(reader, folder) \
  open(reader, folder);                    \
  if (IsSkipped()) return

TEST_F(RealPairsTest, Multi30k) {
  OPEN_PAIRS_OR_SKIP("multi30k", "mt");
  EXPECT_EQ(sizes(), (std::vector<int64_t>{29000, 1014, 1000, 0}));
}

TEST_F(RealPairsTest, EnglishJapanese) {
  OPEN_PAIRS_OR_SKIP("enja", "mt");
  EXPECT_EQ(sizes(), (std::vector<int64_t>{50000, 500, 500, 0}));
}

TEST_F(RealPairsTest, ShakespeareLeavesOutWhatTrainHas) {
  OPEN_PAIRS_OR_SKIP("shakespeare", "shakespeare");
  EXPECT_EQ(sizes(), (std::vector<int64_t>{18395, 1218, 1444, 18}));
}

TEST_F(RealPairsTest, WikiTextHasTorchtextsWords) {
  OPEN_PAIRS_OR_SKIP("wikitext2", "wikitext2");
  const auto corpus = open_text({"wikitext2", folder_});
  const auto pieces = [&](PieceKind kind) {
    PieceOptions options;
    options.kind = kind;
    options.size = 0;
    const auto reader = corpus->open("train");
    return Pieces::train([&](std::string& line) { return reader->next(line); }, options);
  };
  // torchtext counts 28,782 words and white space cuts 33,278, <unk> and the end of a line among the latter.
  const auto basic = pieces(PieceKind::basic_english);
  EXPECT_EQ(basic.size(), 28782 + 3);
  EXPECT_EQ(pieces(PieceKind::words).size(), 33278 + 2);
  EXPECT_EQ(encode_text(*corpus->open("train"), basic, false).numbers(), 2049990);
}

struct Recordings {
  int64_t files = 0, frames = 0;
  double shortest = 1e9, longest = 0;
};

/// Reads the WAV files of a folder, and computes their filter banks.
Recordings listen(const char* set) {
  Recordings all;
  const auto folder = std::filesystem::path(std::getenv("QUATRAIN_DATA")) / set;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".wav") continue;
    const auto info = read_audio_info(entry.path());
    const auto audio = read_audio(entry.path());
    EXPECT_EQ(audio.samples.sizes(), (std::vector<int64_t>{info.channels, info.frames})) << entry.path();
    const auto features = FilterBank({.rate = audio.rate})(audio.samples[0]);
    EXPECT_TRUE(features.isfinite().all().item<bool>()) << entry.path();
    ++all.files;
    all.frames += features.size(0);
    all.shortest = std::min(all.shortest, info.seconds());
    all.longest = std::max(all.longest, info.seconds());
  }
  return all;
}

TEST_F(RealDataTest, SpokenDigits) {
  OPEN_OR_SKIP("speech_fsdd");
  const auto all = listen("speech_fsdd");
  EXPECT_EQ(all.files, 3000);
  EXPECT_NEAR(all.shortest, 0.14, 0.005);
  EXPECT_NEAR(all.longest, 2.28, 0.005);
}

TEST_F(RealDataTest, Timit) {
  OPEN_OR_SKIP("speech_timit_sample");
  EXPECT_EQ(listen("speech_timit_sample").files, 160);
}

/// Of a set that is read as it stands in its folder.
SpeechCorpus load_real_speech(const std::string& reader, const std::filesystem::path& folder) {
  SpeechSource source;
  source.reader = reader;
  source.folder = folder;
  return load_speech(source);
}

TEST_F(RealDataTest, SpokenDigitsInSets) {
  OPEN_OR_SKIP("speech_fsdd");
  const auto corpus = load_real_speech("fsdd", source_.folder);
  EXPECT_EQ(corpus.train.size(), 2400u);
  EXPECT_EQ(corpus.dev.size(), 300u);
  EXPECT_EQ(corpus.test.size(), 300u);
}

TEST_F(RealDataTest, YesNo) {
  OPEN_OR_SKIP("speech_yesno");
  const auto corpus = load_real_speech("yesno", source_.folder);
  EXPECT_EQ(corpus.train.size(), 30u);
  size_t words = 0;
  for (const auto& utterance : corpus.test) words += utterance.tokens.size();
  EXPECT_EQ(words, 240u);
}

TEST_F(RealDataTest, TimitsLabels) {
  OPEN_OR_SKIP("speech_timit_sample");
  const auto corpus = load_real_speech("timit", source_.folder);
  ASSERT_EQ(corpus.train.size(), 128u);
  std::set<std::string> speakers, dialects;
  double seconds = 0;
  int64_t all_frames = 0, phones = 0, unseen = 0;
  for (const auto& utterance : corpus.train) {
    speakers.insert(utterance.speaker);
    dialects.insert(utterance.group);
    seconds += utterance.seconds();
    const int64_t frames = (utterance.samples() + 80) / 160;
    all_frames += frames;
    const auto labels = phone_labels(utterance, frames);
    for (const auto& [phone, begin, end] : utterance.phones) {
      phones += phone != "q";
      // Samples t * 160 + 80 within the phone.
      unseen += (begin + 79) / 160 == (end + 79) / 160;
    }
    EXPECT_EQ(labels.front(), timit_phone(kTimitSilence));
    EXPECT_EQ(labels.back(), timit_phone(kTimitSilence));
  }
  EXPECT_EQ(speakers.size(), 16u);
  EXPECT_EQ(dialects.size(), 8u);
  EXPECT_NEAR(seconds, 390, 0.5);
  EXPECT_EQ(all_frames, 39023);
  EXPECT_EQ(phones, 4893);
  EXPECT_EQ(unseen, 1);
}

// Of one set, or of all.
int64_t count_of(const BadExamples& bad, const std::string& reason, const std::string& set = "") {
  int64_t count = 0;
  for (const auto& one : bad.reasons)
    if (one.reason == reason && (set.empty() || one.set == set)) count += one.count;
  return count;
}

// The photograph of each pair of an SNLI file that has a label.
std::vector<std::string> photographs(const std::filesystem::path& path) {
  std::vector<std::string> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("-\t")) continue;
    size_t begin = 0;
    for (int column = 0; column < 3; ++column) begin = line.find('\t', begin) + 1;
    all.push_back(line.substr(begin, line.find('#', begin) - begin));
  }
  return all;
}

// Texts of the one set that the other has too.
size_t shared(const std::vector<TextPair>& one, const std::vector<TextPair>& other) {
  std::set<std::string> texts, both;
  for (const auto& pair : one) texts.insert({pair.first, pair.second});
  for (const auto& pair : other)
    for (const auto* text : {&pair.first, &pair.second})
      if (texts.contains(*text)) both.insert(*text);
  return both.size();
}

TEST_F(RealDataTest, Entailment) {
  OPEN_OR_SKIP("nli");
  const auto snli = read_pairs("snli");
  EXPECT_EQ(sizes(snli), (std::vector<size_t>{17157, 1002, 9824}));
  TextPairSource source;
  source.reader = "snli";
  source.folder = source_.folder;
  const auto files = text_pair_files(source);  // dev, test and others
  const auto of_dev = photographs(files[0]), of_test = photographs(files[1]);
  const std::set<std::string> tested(of_test.begin(), of_test.end());
  std::multiset<std::string> in_both;
  for (const auto& one : of_dev)
    if (tested.contains(one)) in_both.insert(one);
  EXPECT_EQ(std::set<std::string>(in_both.begin(), in_both.end()).size(), 122u);
  EXPECT_EQ(count_of(snli.bad, "their photograph is in a set that selects or tests", "train and dev"),
            static_cast<int64_t>(in_both.size()));
  std::set<std::string> premises;
  for (const auto* set : {&snli.dev, &snli.test})
    for (const auto& pair : *set) premises.insert(pair.first);
  for (const auto& pair : snli.train) ASSERT_FALSE(premises.contains(pair.first)) << pair.first;
  const auto sick = read_pairs("sick");
  EXPECT_EQ(sizes(sick), (std::vector<size_t>{4407, 500, 4927}));
  EXPECT_EQ(count_of(sick.bad, "the pair is in the test set too"), 93);
}

TEST_F(RealDataTest, Answers) {
  OPEN_OR_SKIP("answer_sel");
  const auto questions = [](const std::vector<TextPair>& pairs) {
    std::set<int64_t> groups;
    for (const auto& pair : pairs) groups.insert(pair.group);
    return groups.size();
  };
  const auto wikiqa = read_pairs("wikiqa"), trecqa = read_pairs("trecqa");
  EXPECT_EQ(sizes(wikiqa), (std::vector<size_t>{8672, 1130, 2351}));
  EXPECT_EQ(sizes(trecqa), (std::vector<size_t>{4718, 1117, 1442}));
  EXPECT_EQ(questions(wikiqa.test), 243u);
  EXPECT_EQ(questions(trecqa.test), 68u);
}

TEST_F(RealDataTest, Paraphrases) {
  OPEN_OR_SKIP("paraphrase");
  const auto msrp = read_pairs("msrp"), twitter = read_pairs("twitter_url");
  EXPECT_EQ(sizes(msrp), (std::vector<size_t>{3576, 500, 1725}));
  int64_t paraphrases = 0;
  for (const auto& pair : msrp.test) paraphrases += pair.label;
  EXPECT_EQ(paraphrases, 1147);
  EXPECT_EQ(sizes(twitter), (std::vector<size_t>{6096, 903, 1843}));
  EXPECT_EQ(count_of(twitter.bad, "the pair has two labels"), 146);  // lines, of 62 pairs
  EXPECT_EQ(count_of(twitter.bad, "a sentence is in a set that selects or tests", "train"), 331);
  EXPECT_EQ(count_of(twitter.bad, "a sentence is in a set that selects or tests", "dev"), 15);
  int64_t others = 0;
  for (const auto& pair : twitter.test) others += pair.label == 0;
  EXPECT_EQ(others, 1529);
  EXPECT_EQ(shared(twitter.train, twitter.test) + shared(twitter.train, twitter.dev) +
                shared(twitter.dev, twitter.test),
            0u);
}

TEST_F(RealDataTest, Cifar10HasItsKnownMeans) {
  OPEN_OR_SKIP("cifar10");
  const auto splits = load_images({.reader = "planes", .folder = source_.folder});
  EXPECT_EQ(splits.train.size(), 45000);
  EXPECT_EQ(splits.dev.size(), 5000);
  EXPECT_EQ(splits.test.size(), 10000);
  EXPECT_TRUE(splits.test.labels.bincount().eq(1000).all().item<bool>());
  const auto whole = measure_pixels(torch::cat({splits.train.images, splits.dev.images}));
  const double means[] = {.4914, .4822, .4465},
               deviations[] = {.2470, .2435, .2616};  // as they are published
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(whole.mean[c], means[c], 1e-4);
    EXPECT_NEAR(whole.deviation[c], deviations[c], 1e-4);
  }
}

}  // namespace
}  // namespace quatrain::data
