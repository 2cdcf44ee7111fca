// The shortlist of a run: made, measured, read again, and what is refused.

#include <gmock/gmock.h>

#include "tasks/seq2seq/model.h"
#include "tasks/seq2seq/shortlist.h"
#include "tasks/seq2seq_runs.h"
#include "train/run_files.h"

namespace quatrain::tasks {
namespace {

using testing::AllOf, testing::HasSubstr;

class ShortlistTest : public Seq2SeqKindTest {
 protected:
  std::filesystem::path run() const { return folder_ / "run"; }
  std::filesystem::path file() const { return run() / train::kShortlistFile; }
  std::unique_ptr<Model> model(std::vector<std::string> settings = {}) const {
    return load_run(run(), settings_of_tests(settings));
  }
  std::shared_ptr<const models::Shortlist> list(bool joint) const {
    return read_shortlist(run(), run() / "best", joint);
  }
  std::string refusal(const std::vector<std::string>& settings) const {
    try {
      model(settings);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
  // Letters and the same in capitals: every letter has one translation.
  void learn_capitals(const std::vector<std::string>& more = {}) {
    std::vector<std::string> settings{"task.max_source=0", "vocabulary.joint=false",
                                      "model.share_embeddings=false"};
    settings.insert(settings.end(), more.begin(), more.end());
    learn(corpus(settings));
  }
};

TEST_F(ShortlistTest, HasTheTranslationOfEveryLetter) {
  learn_capitals();
  std::vector<std::string> told;
  const ShortlistReport report = make_shortlist(
      run(), {.best = 1, .frequent = 0, .tell = [&](const std::string& text) { told.push_back(text); }});
  EXPECT_THAT(told, testing::Contains("iteration 5 of 5"));
  EXPECT_EQ(report.pairs, 60);
  EXPECT_TRUE(report.has_dev);
  EXPECT_EQ(report.recall, 1);
  EXPECT_EQ(report.whole, 1);
  EXPECT_LT(report.mean_size, 4 + 7);
  const auto low = data::Pieces::load(run() / "best" / "source.pieces"),
             up = data::Pieces::load(run() / "best" / "target.pieces");
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const int64_t source = low.id(std::string(1, letter)),
                  target = up.id(std::string(1, static_cast<char>(letter - 32)));
    if (source == data::Pieces::kUnknown) continue;
    EXPECT_THAT(list(false)->of(source), testing::ElementsAre(target)) << letter;
  }
  EXPECT_THAT(list(false)->always(), testing::ElementsAre(0, 1, 2, 3));
  // No answer has another token, however little the model knows.
  const auto listed = model({"decode.shortlist=true", "decode.banned=<unk>"});
  for (const std::string line : {"abc", "f", "zzz"}) {
    const auto source = low.encode(line);
    std::vector<int64_t> tokens(source.begin(), source.end());
    tokens.push_back(data::Pieces::kEnd);
    const auto possible = list(false)->tokens(tokens);
    const std::string answer = listed->predict({line}).front();
    for (const char letter : answer)
      EXPECT_THAT(possible, testing::Contains(up.id(std::string(1, letter)))) << line;
  }
}

TEST_F(ShortlistTest, LeavesAnswersThatHaveItsTokens) {
  learn(recipe());
  const ShortlistReport report = make_shortlist(run(), {.best = 50});
  EXPECT_EQ(report.recall, 1);
  const std::vector<std::string> lines{"a b c", "g a", "c c d a"};
  EXPECT_EQ(model({"decode.shortlist=true"})->predict(lines), model()->predict(lines));
  EXPECT_EQ(model({"decode.projection=bfloat16"})->predict(lines), model()->predict(lines));
}

TEST_F(ShortlistTest, OfOneVocabularyHasWhatIsCopied) {
  learn(corpus({"train.steps=1"}));
  make_shortlist(run(), {.best = 1, .frequent = 0});
  const auto listed = list(true);
  const auto pieces = data::Pieces::load(run() / "best" / "source.pieces");
  for (const char letter : {'a', 'g', 'm'})
    EXPECT_THAT(listed->of(pieces.id(std::string(1, letter))),
                testing::UnorderedElementsAre(pieces.id(std::string(1, letter)),
                                              pieces.id(std::string(1, static_cast<char>(letter - 32)))));
}

TEST_F(ShortlistTest, IsRefusedWhereItDoesNotFit) {
  learn_capitals();
  EXPECT_THAT(refusal({"decode.shortlist=true"}),
              AllOf(HasSubstr("decode.shortlist = true needs the file"),
                    HasSubstr("make it with quatrain shortlist " + run().string())));
  make_shortlist(run(), {});
  EXPECT_EQ(refusal({"decode.shortlist=true"}), "no error");
  const std::string good = text_of(file());
  const auto with = [&](const std::string& text) {
    std::ofstream(file(), std::ios::binary) << text;
    return refusal({"decode.shortlist=true"});
  };
  const std::string again = ": make it again with quatrain shortlist " + run().string();
  // A bit anywhere.
  for (size_t at = 21; at < good.size(); at += 1 + good.size() / 40) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_THAT(with(bad), AllOf(HasSubstr("is damaged"), HasSubstr(again))) << at;
  }
  for (const size_t length : {size_t{0}, size_t{30}, good.size() / 2, good.size() - 1})
    EXPECT_THAT(with(good.substr(0, length)), HasSubstr(again)) << length;
  EXPECT_THAT(with("lists"), HasSubstr("is no file that quatrain shortlist wrote"));
  EXPECT_THAT(with(good), "no error");
  // The pieces of another run.
  std::filesystem::rename(run(), folder_ / "first");
  learn_capitals({"vocabulary.size=20"});
  std::filesystem::copy(folder_ / "first" / train::kShortlistFile, file());
  EXPECT_THAT(refusal({"decode.shortlist=true"}), AllOf(HasSubstr("is of other pieces"), HasSubstr(again)));
}

TEST_F(ShortlistTest, NeedsARealOutputLayer) {
  learn(recipe({"train.steps=1", "model.output=algebra", "vocabulary.size=8"}));
  EXPECT_THAT(refusal({"decode.shortlist=true"}), HasSubstr("decode.shortlist = true needs an output layer"));
  try {
    make_shortlist(run(), {});
    ADD_FAILURE() << "no error";
  } catch (const RecipeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("scores tokens by an output layer in its algebra"));
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_FALSE(model({"decode.projection=bfloat16"})->predict({"a b"}).empty());
}

TEST_F(ShortlistTest, LeavesNothingWhenItIsStopped) {
  learn_capitals();
  EXPECT_THROW(make_shortlist(run(), {.after_pairs = [] { throw std::runtime_error("stopped"); }}),
               std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace quatrain::tasks
