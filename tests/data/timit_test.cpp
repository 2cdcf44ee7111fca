#include <set>

#include "audio_files.h"
#include "data/speech_readers.h"
#include "quatrain/data/phones.h"
#include "quatrain/data/speech_corpus.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPhones = "0 100 h#\n100 260 s\n260 300 q\n300 640 iy\n";

class TimitTest : public DataTest {
 protected:
  /// A sentence of 800 samples.
  void record(const std::string& stem, const std::string& wav = ".wav", const std::string& phn = ".phn",
              const std::string& wrd = ".wrd") const {
    const auto sphere_file = [] { return sphere(sixteen_bits(std::vector<int16_t>(800)), 800); };
    write(stem + wav, wav == ".WAV" ? sphere_file() : recording(800, 16000));
    write(stem + phn, kPhones);
    write(stem + wrd, "100 300 Sea\n260 640 see\n");
  }
  SpeechSource source(bool skip_bad = false) const {
    SpeechSource source;
    source.reader = "timit";
    source.folder = folder_;
    source.skip_bad = skip_bad;
    return source;
  }
};

TEST(Phones, FoldAsLeeAndHonHaveIt) {
  ASSERT_EQ(timit_phones().size(), 61u);
  EXPECT_TRUE(std::is_sorted(timit_phones().begin(), timit_phones().end()));
  ASSERT_EQ(folded_phones().size(), 39u);
  std::map<std::string, std::set<std::string>> folded;
  for (size_t i = 0; i < timit_phones().size(); ++i) {
    const int64_t to = phone_folding()[i];
    folded[to < 0 ? "" : folded_phones()[static_cast<size_t>(to)]].insert(timit_phones()[i]);
  }
  std::map<std::string, std::set<std::string>> groups{
      {"", {"q"}},           {"sil", {"bcl", "dcl", "gcl", "pcl", "tcl", "kcl", "h#", "pau", "epi"}},
      {"aa", {"aa", "ao"}},  {"ah", {"ah", "ax", "ax-h"}},
      {"er", {"er", "axr"}}, {"hh", {"hh", "hv"}},
      {"ih", {"ih", "ix"}},  {"l", {"l", "el"}},
      {"m", {"m", "em"}},    {"n", {"n", "en", "nx"}},
      {"ng", {"ng", "eng"}}, {"sh", {"sh", "zh"}},
      {"uw", {"uw", "ux"}}};
  for (const auto& phone : {"ae", "aw", "ay", "b", "ch", "d", "dh", "dx", "eh", "ey", "f", "g", "iy", "jh",
                            "k",  "ow", "oy", "p", "r",  "s", "t",  "th", "uh", "v",  "w", "y", "z"})
    groups[phone] = {phone};
  EXPECT_EQ(folded, groups);

  const auto number = [](const char* name) { return timit_phone(name); };
  const auto result = fold_phones({number("h#"), number("q"), number("tcl"), number("ux")});
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result[0], result[1]);
  EXPECT_EQ(folded_phones()[static_cast<size_t>(result[2])], "uw");
  EXPECT_THAT(error_of([] { fold_phones({61}); }), HasSubstr("from 0 to 60, got 61"));
  EXPECT_THAT(error_of([] { timit_phone("sil"); }), HasSubstr("got \"sil\""));
}

TEST(Phones, LabelFrames) {
  Utterance utterance;
  utterance.phones = {{"h#", 0, 81}, {"s", 81, 240}, {"iy", 240, 401}, {"z", 410, 420}};
  const auto names = [&](int64_t frames, double shift = 160, double centre = 80) {
    std::vector<std::string> all;
    for (const int64_t label : phone_labels(utterance, frames, shift, centre))
      all.push_back(timit_phones()[static_cast<size_t>(label)]);
    return all;
  };
  // Samples 80, 240, 400, 560: the first and last ones of phones are theirs, and the tail is silence.
  EXPECT_THAT(names(4), ElementsAre("h#", "iy", "iy", "h#"));
  EXPECT_THAT(names(2), ElementsAre("h#", "iy"));
  EXPECT_THAT(names(0), IsEmpty());
  // Each frame against a search.
  for (const double shift : {1.0, 7.0, 160.0, 159.637})
    for (const double centre : {0.0, 3.0, 80.0, 79.8}) {
      std::vector<std::string> expected;
      for (int t = 0; t < 100; ++t) {
        expected.emplace_back("h#");
        for (const auto& [phone, begin, end] : utterance.phones)
          if (const auto at = static_cast<int64_t>(t * shift + centre); begin <= at && at < end)
            expected.back() = phone;
      }
      EXPECT_EQ(names(100, shift, centre), expected) << shift << ' ' << centre;
    }
  EXPECT_THAT(error_of([&] { names(-1); }), HasSubstr("got -1"));
  EXPECT_THAT(error_of([&] { names(1, 0); }), HasSubstr("shift at least 1"));
  utterance.phones = {{"sil", 0, 81}};
  EXPECT_THAT(error_of([&] { names(1); }), HasSubstr("\"sil\""));
  utterance.phones.clear();
  EXPECT_THAT(error_of([&] { names(1); }), HasSubstr("no phones"));
}

TEST_F(TimitTest, IsFoundAmongOtherSets) {
  record("speech_timit_sample/timit_sample/dr1-fvmh0/sx1");
  write("speech_fsdd/fsdd/recordings/0_george_0.wav", recording(800, 8000));
  const auto corpus = load_speech(source());
  ASSERT_EQ(corpus.train.size(), 1u);
  EXPECT_EQ(corpus.train[0].id, "fvmh0_sx1");
}

TEST_F(TimitTest, ReadsTheDiscsFolders) {
  record("TIMIT/TRAIN/DR1/FCJF0/SI1027", ".WAV", ".PHN", ".WRD");
  record("TIMIT/TRAIN/DR1/FCJF0/SA1", ".WAV", ".PHN", ".WRD");
  record("TIMIT/TEST/DR8/MAJC0/SX1", ".WAV", ".PHN", ".WRD");
  record("TIMIT/TEST/DR8/MBCG0/SX2", ".WAV", ".PHN", ".WRD");
  const auto corpus = load_speech(source());
  ASSERT_EQ(corpus.train.size(), 1u);
  const Utterance& utterance = corpus.train[0];
  EXPECT_EQ(utterance.id, "fcjf0_si1027");
  EXPECT_EQ(utterance.speaker, "fcjf0");
  EXPECT_EQ(utterance.group, "dr1");
  EXPECT_EQ(utterance.rate, 16000);
  EXPECT_EQ(utterance.samples(), 800);
  EXPECT_THAT(utterance.tokens, ElementsAre("sea", "see"));
  EXPECT_THAT(utterance.phones, ElementsAre(PhoneSegment{"h#", 0, 100}, PhoneSegment{"s", 100, 260},
                                            PhoneSegment{"q", 260, 300}, PhoneSegment{"iy", 300, 640}));
  EXPECT_EQ(corpus.test.size(), 2u);
  EXPECT_THAT(corpus.dev, IsEmpty());

  // As with the core test set and its development set.
  SpeechSource chosen = source();
  chosen.test_speakers = {"MAJC0"};
  EXPECT_EQ(load_speech(chosen).test.size(), 1u);
  EXPECT_EQ(load_speech(chosen).train.size(), 1u);
  chosen.test_speakers = {"core"};
  chosen.dev_speakers = {"dev50"};
  EXPECT_THAT([&] { load_speech(chosen); },
              testing::ThrowsMessage<c10::Error>(testing::HasSubstr("there is no speaker \"fadg0\"")));
  for (const auto& list : {chosen.test_speakers, chosen.dev_speakers})
    for (const auto& speaker : timit_speakers(list))
      record("TIMIT/TEST/DR1/" + speaker + "/SX3", ".WAV", ".PHN", ".WRD");
  const auto standard = load_speech(chosen);
  EXPECT_EQ(standard.train.size(), 1u);
  EXPECT_EQ(standard.dev.size(), 50u + 1);  // MAJC0, one of them, has another sentence
  EXPECT_EQ(standard.test.size(), 24u);
}

TEST_F(TimitTest, ReadsTheSamplesFolders) {
  record("dr1-fvmh0/sx116");
  record("dr1-fvmh0/sa2");
  record("dr2-faem0/si1");
  std::filesystem::remove(folder_ / "dr2-faem0/si1.wrd");
  write("dr2-faem0/si1.txt", "0 800 \"Don't,\" she said -- twice!\n");
  write("readme.doc", "not audio");
  const auto corpus = load_speech(source());
  ASSERT_EQ(corpus.train.size(), 2u);
  EXPECT_EQ(corpus.train[0].id, "fvmh0_sx116");
  EXPECT_EQ(corpus.train[0].group, "dr1");
  EXPECT_THAT(corpus.train[1].tokens, ElementsAre("don't", "she", "said", "twice"));
  SpeechSource fold = source();
  fold.test_speakers = {"fvmh0"};
  EXPECT_EQ(load_speech(fold).test.size(), 1u);
  EXPECT_EQ(load_speech(fold).train.size(), 1u);
}

TEST_F(TimitTest, ToleratesALabelThatEndsASampleLate) {
  record("dr1-fvmh0/sx1");
  write("dr1-fvmh0/sx1.phn", "0 801 h#\n");
  EXPECT_EQ(load_speech(source()).train[0].phones[0].end, 801);
  write("dr1-fvmh0/sx1.phn", "0 802 h#\n");
  EXPECT_THAT(error_of([&] { load_speech(source()); }), HasSubstr("ends at sample 802"));
}

TEST_F(TimitTest, WordsAreAskedForWhereTheyAreNeeded) {
  record("dr1-fvmh0/sx1"), record("dr1-fvmh0/sx2");
  std::filesystem::remove(folder_ / "dr1-fvmh0/sx1.wrd");
  write("dr1-fvmh0/sx2.wrd", "damaged\n");
  EXPECT_THAT(error_of([&] { load_speech(source()); }), HasSubstr("neither a .wrd nor a .txt file"));
  SpeechSource phones = source();
  phones.words = false;
  const auto corpus = load_speech(phones);
  ASSERT_EQ(corpus.train.size(), 2u);
  EXPECT_EQ(corpus.train[0].phones.size(), 4u);
  EXPECT_THAT(corpus.train[1].tokens, IsEmpty());
}

TEST_F(TimitTest, DoesNotReadAWideFolderToItsEnd) {
  record("TRAIN/DR1/FCJF0/SI1027");
  record("TRAIN/DR1/FCJF0/.cache/SI9");
  EXPECT_EQ(load_speech(source()).train.size(), 1u);  // what begins with a dot is passed over
  for (int i = 0; i <= 50000; ++i) {
    if (i % 1000 == 0) std::filesystem::create_directory(folder_ / std::to_string(i));
    std::ofstream(folder_ / std::to_string(i / 1000 * 1000) / std::to_string(i));
  }
  EXPECT_THAT(error_of([&] { load_speech(source()); }),
              AllOf(HasSubstr(folder_.string() + " holds more than 50000 files and folders"),
                    HasSubstr("needs folders of speakers with .wav and .phn files, and .wrd or .txt")));
}

TEST_F(TimitTest, RefusesOrCountsWhatIsBad) {
  struct Case {
    std::string phones, problem, reason;
  };
  for (const auto& [phones, problem, reason] :
       {Case{"0 100 h#\n90 200 s\n", ".phn:2: the phone begins at sample 90", "phones overlap"},
        {"0 100 sil\n", ".phn:1: the phone must be one of TIMIT's 61, got \"sil\"", "a phone is unknown"},
        {"0 h#\n", ".phn:1: a line must be", "a label is bad"},
        {"0 x h#\n", ".phn:1: a line must be", "a label is bad"},
        {"5 5 h#\n", ".phn:1: a line must be", "a label is bad"},
        {"", ".phn is empty", "a file of labels cannot be read"},
        {" \n\n", ".phn has blank lines alone", "a file has no label"},
        {"0 100 h#\n\xff\n", ".phn:2: ", "a line is not text"},
        {"0 900 h#\n", "has only 800", "labels exceed the audio"}}) {
    record("dr1-fvmh0/sx1"), record("dr1-fvmh0/sx2");
    write("dr1-fvmh0/sx2.phn", phones);
    const std::string error = error_of([&] { load_speech(source()); });
    EXPECT_THAT(error, HasSubstr(problem));
    EXPECT_THAT(error, testing::EndsWith("; skip_bad leaves such utterances out"));
    EXPECT_EQ(error.find("skip_bad"), error.rfind("skip_bad")) << error;
    const auto corpus = load_speech(source(true));
    EXPECT_EQ(corpus.train.size(), 1u);
    ASSERT_EQ(corpus.bad.reasons.size(), 1u);
    EXPECT_EQ(corpus.bad.reasons[0].reason, reason);
  }
  std::filesystem::remove(folder_ / "dr1-fvmh0/sx2.phn");
  EXPECT_THAT(error_of([&] { load_speech(source()); }), HasSubstr("sx2.wav: there is no .phn file"));
  record("train/dr1/fcjf0/sx3");
  EXPECT_THAT(error_of([&] { load_speech(source()); }),
              HasSubstr("below a folder train or test, but this one does not"));
}

}  // namespace
}  // namespace quatrain::data
