#include "quatrain/data/back_off_model.h"

#include <torch/types.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <random>
#include <sstream>

#include "quatrain/models/ctc_decoder.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kTrigrams = R"(made by hand

\data\
ngram 1=5
ngram 2=4
ngram 3=2

\1-grams:
-99 <s> -0.5
-1.0 </s>
-0.5 a -0.25
-0.75 b -0.125
-2.0 c

\2-grams:
-0.25 <s> a -0.0625
-0.375 a b 0.03125
-0.625 b a
-0.875 b </s>

\3-grams:
-0.1 <s> a b
-0.2 a b a

\end\
)";

class BackOffModelTest : public DataTest {
 protected:
  BackOffModel model(const std::string& text) const { return BackOffModel(write("model.arpa", text)); }

  /// The error of the model by hand with one text in place of another.
  std::string error(const std::string& part, const std::string& replacement) const {
    std::string text = kTrigrams;
    const size_t at = text.find(part);
    EXPECT_NE(at, text.npos) << part;
    text.replace(at, part.size(), replacement);
    return error_of([&] { model(text); });
  }
};

double log10_of(const BackOffModel& model, BackOffModel::State& state, const char* word) {
  return model.advance(state, model.word(word)) / std::numbers::ln10;
}

TEST_F(BackOffModelTest, BacksOff) {
  const auto trigrams = model(kTrigrams);
  EXPECT_EQ(trigrams.order(), 3);
  EXPECT_EQ(trigrams.words(), 5);
  EXPECT_EQ(trigrams.ngrams(), 11);
  EXPECT_EQ(trigrams.name(trigrams.word("b")), "b");
  EXPECT_EQ(trigrams.word("d"), -1);
  auto state = trigrams.start();
  EXPECT_NEAR(log10_of(trigrams, state, "a"), -0.25, 1e-6);                // <s> a
  EXPECT_NEAR(log10_of(trigrams, state, "b"), -0.1, 1e-6);                 // <s> a b
  EXPECT_NEAR(log10_of(trigrams, state, "a"), -0.2, 1e-6);                 // a b a
  EXPECT_NEAR(log10_of(trigrams, state, "b"), -0.375, 1e-6);               // b a | has no weight: a b
  EXPECT_NEAR(log10_of(trigrams, state, "c"), 0.03125 - 0.125 - 2, 1e-6);  // a b |, b |: c
  EXPECT_NEAR(log10_of(trigrams, state, "a"), -0.5, 1e-6);                 // c | has no weight: a
  EXPECT_NEAR(trigrams.end(state) / std::numbers::ln10, -0.25 - 1, 1e-6);  // a |: </s>
  EXPECT_NEAR(log10_of(trigrams, state, "b"), -0.375, 1e-6);
  EXPECT_NEAR(trigrams.end(state) / std::numbers::ln10, 0.03125 - 0.875, 1e-6);  // a b |: b </s>
  state = trigrams.start();
  EXPECT_NEAR(log10_of(trigrams, state, "b"), -0.5 - 0.75, 1e-6);  // <s> |: b
}

TEST_F(BackOffModelTest, StatesForgetWhatCountsNoMore) {
  const auto trigrams = model(kTrigrams);
  const auto after = [&](const Words& words) {
    auto state = trigrams.start();
    for (const auto& word : words) trigrams.advance(state, trigrams.word(word));
    return state;
  };
  EXPECT_EQ(after({"a", "b"}), after({"c", "b", "a", "b"}));  // a b
  EXPECT_EQ(after({"c"}), after({"a", "a", "c"}));            // no n-gram ends with "a c"
  EXPECT_NE(after({"b"}), after({"a", "b"}));
  EXPECT_NE(after({"a"}), after({"c", "a"}));  // <s> a, a
}

TEST_F(BackOffModelTest, UnknownWordsAreUnk) {
  const auto unigrams =
      model("\\data\\\nngram 1=4\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.3 <unk>\n-0.7 a\n\n\\end\\\n");
  EXPECT_EQ(unigrams.word("d"), unigrams.word("<unk>"));
  auto state = unigrams.start();
  EXPECT_NEAR(log10_of(unigrams, state, "d"), -0.3, 1e-6);
  EXPECT_EQ(state, unigrams.start());  // unigrams alone have one state
  EXPECT_NEAR(unigrams.end(state) / std::numbers::ln10, -0.5, 1e-6);
}

// A model of order 4 whose probabilities are random and whose weights make each history's sum to 1, and a
// plain recursion over its texts.
class Plain {
 public:
  explicit Plain(uint64_t seed) : random_(seed) {
    ngrams_.resize(5);
    std::map<std::string, double> unigrams;
    double sum = 0;
    for (const char* word : {"</s>", "<unk>", "a", "b", "c"}) sum += unigrams[word] = share();
    for (const auto& [word, p] : unigrams) ngrams_[1][{word}] = p / sum;
    ngrams_[1][{"<s>"}] = 1e-20;
    for (size_t order = 2; order <= 4; ++order)
      for (const auto& [history, unused] : ngrams_[order - 1])
        if (history.back() != "</s>") add_history(history);
  }

  double probability(Words history, const std::string& word) const {
    Words all = history;
    all.push_back(word);
    if (all.size() < ngrams_.size()) {
      const auto found = ngrams_[all.size()].find(all);
      if (found != ngrams_[all.size()].end()) return found->second;
      const auto weight = weights_.find(history);
      history.erase(history.begin());
      return (weight == weights_.end() ? 1 : weight->second) * probability(history, word);
    }
    history.erase(history.begin());
    return probability(history, word);
  }

  std::string arpa() {
    std::ostringstream text;
    text.precision(9);
    text << "\\data\\\n";
    for (size_t order = 1; order <= 4; ++order)
      text << "ngram " << order << "=" << ngrams_[order].size() << "\n";
    for (size_t order = 1; order <= 4; ++order) {
      text << "\n\\" << order << "-grams:\n";
      std::vector<std::pair<Words, double>> all(ngrams_[order].begin(), ngrams_[order].end());
      std::shuffle(all.begin(), all.end(), random_);  // files need no order
      for (const auto& [words, p] : all) {
        text << std::log10(p) << "\t";
        for (size_t i = 0; i < words.size(); ++i) text << (i ? " " : "") << words[i];
        if (weights_.count(words)) text << "\t" << std::log10(weights_.at(words));
        text << "\n";
      }
    }
    text << "\n\\end\\\n";
    return text.str();
  }

 private:
  double share() { return std::uniform_real_distribution<>(0.1, 1)(random_); }

  // About half the words follow a history explicitly, and never all, so that the weight has a rest to share.
  void add_history(const Words& history) {
    double taken = 0, left = 1;
    int count = 0;
    Words shorter(history.begin() + 1, history.end());
    for (const char* word : {"</s>", "<unk>", "a", "b", "c"}) {
      if (share() > 0.5 || ++count == 5) continue;
      Words all = history;
      all.push_back(word);
      taken += ngrams_[all.size()][all] = share() / 8;
      left -= probability(shorter, word);
    }
    if (taken > 0) weights_[history] = (1 - taken) / left;
  }

  std::mt19937_64 random_;
  std::vector<std::map<Words, double>> ngrams_;
  std::map<Words, double> weights_;
};

TEST_F(BackOffModelTest, EqualsAPlainRecursionAndSumsToOne) {
  for (const uint64_t seed : {1, 2, 3}) {
    Plain plain(seed);
    const auto fourgrams = model(plain.arpa());
    EXPECT_EQ(fourgrams.order(), 4);
    std::mt19937 random(7);
    std::map<BackOffModel::State, double> sums;
    for (int text = 0; text < 100; ++text) {
      Words history{"<s>"};
      auto state = fourgrams.start();
      for (int i = 0; i < 6; ++i) {
        double sum = std::exp(fourgrams.end(state));
        for (const char* word : {"<unk>", "a", "b", "c"}) {
          auto copy = state;
          const double score = fourgrams.advance(copy, fourgrams.word(word));
          EXPECT_NEAR(score, std::log(plain.probability(history, word)), 1e-5);
          sum += std::exp(score);
        }
        EXPECT_NEAR(sum, 1, 1e-5);
        EXPECT_NEAR(sums.emplace(state, fourgrams.end(state)).first->second, fourgrams.end(state), 1e-12);
        const char* word = std::array{"<unk>", "a", "b", "c"}[random() % 4];
        fourgrams.advance(state, fourgrams.word(word));
        history.push_back(word);
        if (history.size() > 3) history.erase(history.begin());
      }
    }
    EXPECT_GT(sums.size(), 10U);
  }
}

// The sounds cannot tell a b from a c, the model can.
TEST_F(BackOffModelTest, ServesADecoder) {
  const auto trigrams = std::make_shared<const BackOffModel>(model(kTrigrams));
  models::CtcDecoderOptions options;
  options.beam = options.best = 20;
  const auto sounds = torch::tensor({{0.02, 0.96, 0.01, 0.01}, {0.1, 0.0001, 0.4, 0.4999}}).log();
  const auto tokens = [&] {
    models::CtcDecoder decoder(options);
    decoder.push(sounds);
    const auto found = decoder.finish();
    std::vector<int64_t> all;
    for (const auto& token : found[0].tokens) all.push_back(token.token);
    return all;
  };
  EXPECT_EQ(tokens(), (std::vector<int64_t>{1, 3}));
  options.language = models::as_word_model(trigrams);
  options.words = {-1, trigrams->word("a"), trigrams->word("b"), trigrams->word("c")};
  EXPECT_EQ(tokens(), (std::vector<int64_t>{1, 2}));
}

TEST_F(BackOffModelTest, ReadsCompressedFiles) {
  const std::string text = kTrigrams;
  const auto file = folder_ / "model.arpa.gz";
  gzFile stream = gzopen(file.c_str(), "wb");
  gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
  gzclose(stream);
  const BackOffModel trigrams(file);
  auto state = trigrams.start();
  EXPECT_NEAR(log10_of(trigrams, state, "a"), -0.25, 1e-6);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_THAT(error_of([&] { BackOffModel damaged(file); }),
              HasSubstr("is a compressed file that is cut off"));
}

TEST_F(BackOffModelTest, ReadsTabsAndOtherEnds) {
  std::string text;
  for (const char letter : std::string(kTrigrams)) {
    if (letter == '\n') {
      text += " \r\n";
    } else {
      text += letter == ' ' ? '\t' : letter;
    }
  }
  EXPECT_EQ(model(text).ngrams(), 11);
}

TEST_F(BackOffModelTest, RefusesDamagedFiles) {
  EXPECT_THAT(error("\\data\\", ""), HasSubstr("model.arpa ends at line 25 without \\data\\; is it an ARPA"));
  EXPECT_THAT(error("\\end\\\n", ""), HasSubstr("model.arpa ends at line 24 without \\end\\"));
  EXPECT_THAT(
      error("ngram 2=4", "ngram 2=5"),
      HasSubstr("model.arpa:21: the section \\2-grams: of line 15 has 4 n-grams, but \\data\\ promises 5"));
  EXPECT_THAT(error("ngram 3=2", "ngram 3=-2"),
              HasSubstr("model.arpa:6: \\data\\ must go on with ngram 3=COUNT or end, got \"ngram 3=-2\""));
  EXPECT_THAT(error("ngram 2=4\n", ""), HasSubstr("must go on with ngram 2=COUNT or end, got \"ngram 3=2\""));
  EXPECT_THAT(error("ngram 2=4", "ngram 2=4 5"), HasSubstr(":5: \\data\\ must go on with ngram 2=COUNT"));
  EXPECT_THAT(error("ngram 2=4", "ngram 2=2147483647"), HasSubstr("may have 2147483646 n-grams"));
  EXPECT_THAT(error("ngram 3=2", ""),
              HasSubstr("have no back-off weight, got \"-0.0625\"; \\data\\ promises n-grams up to order 2"));
  EXPECT_THAT(error("ngram 1=5\nngram 2=4\nngram 3=2\n", ""), HasSubstr("but there is none"));
  EXPECT_THAT(error("\\1-grams:", "\\2-grams:"), HasSubstr("\\1-grams: must follow \\data\\, got \"\\2-"));
  EXPECT_THAT(error("\\3-grams:", "\\4-grams:"), HasSubstr("\\3-grams: must follow \\2-grams:, got"));
  EXPECT_THAT(error("a b ", "a d "), HasSubstr("model.arpa:17: the word \"d\" is not among the unigrams"));
  EXPECT_THAT(error("b a\n", "c a\n"),
              HasSubstr("model.arpa:18: this n-gram's beginning \"c\" must have a back"));
  EXPECT_THAT(error("<s> a b", "c a b"),
              HasSubstr("model.arpa:22: the beginning \"c a\" of this n-gram must"));
  EXPECT_THAT(error("a b 0.03125", "a b"), HasSubstr("this n-gram's beginning \"a b\" must have a back-off"));
  EXPECT_THAT(error("-0.375", "-0.3.75"),
              HasSubstr("the log-probability must be a finite number, got \"-0.3.75\""));
  EXPECT_THAT(error("-0.375", "nan"), HasSubstr("the log-probability must be a finite number, got \"nan\""));
  EXPECT_THAT(error("0.03125", "inf"), HasSubstr("the back-off weight must be a finite number, got \"inf\""));
  EXPECT_THAT(error("-0.375", "0.375"), HasSubstr("model.arpa:17: a log-probability must be at most 0, got"));
  EXPECT_THAT(error("-0.75 b", "-0.75 a"), HasSubstr("model.arpa:12: the n-gram \"a\" comes twice"));
  EXPECT_THAT(error("b a\n", "a b\n"), HasSubstr("model.arpa:18: this n-gram comes twice"));
  EXPECT_THAT(error("a b a", "a b a -0.5"),
              HasSubstr("n-grams of the highest order have no back-off weight"));
  EXPECT_THAT(error("a b a", "a b"), HasSubstr("must have a log-probability, 3 words and perhaps"));
  EXPECT_THAT(error("a b a", "a b a c d"), HasSubstr("must have a log-probability, 3 words and perhaps"));
  EXPECT_THAT(error("\\end\\", "\\end\\\n\\data\\"), HasSubstr("must end after \\end\\, got \"\\data\\\""));
  EXPECT_THAT(error_of([&] { model("\\data\\\nngram 1=1\n\\1-grams:\n-1 </s>\n\\end\\\n"); }),
              HasSubstr("has no unigram <s>, so that the beginning of a text has no probability"));
  EXPECT_THAT(error_of([&] { model("\\data\\\nngram 1=1\n\\1-grams:\n-1 <s>\n\\end\\\n"); }),
              HasSubstr("has no unigram </s>, so that the end of a text has no probability"));
  EXPECT_THAT(error_of([&] { BackOffModel missing(folder_ / "none.arpa"); }),
              HasSubstr("none.arpa cannot be"));
}

TEST_F(BackOffModelTest, RefusesOtherWordsAndStates) {
  const auto trigrams = model(kTrigrams);
  auto state = trigrams.start();
  EXPECT_THAT(error_of([&] { trigrams.advance(state, -1); }),
              HasSubstr("a word must be from 0 to 4, got -1"));
  EXPECT_THAT(error_of([&] { trigrams.name(5); }), HasSubstr("a word must be from 0 to 4, got 5"));
  state = 10;
  EXPECT_THAT(error_of([&] { trigrams.advance(state, 0); }),
              HasSubstr("a state must be from 0 to 9, got 10"));
}

}  // namespace
}  // namespace quatrain::data
