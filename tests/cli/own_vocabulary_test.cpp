// Runs whose vocabulary is that of a file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr, testing::Not;

class OwnVocabulary : public testing::Test {
 protected:
  OwnVocabulary() {
    for (const auto& [set, count] : {std::pair{"train", 80}, {"dev", 6}, {"test", 6}}) {
      std::string german, english;
      for (int i = 0; i < count; ++i) {
        const auto [from, to] = kWords[static_cast<size_t>(i) % std::size(kWords)];
        const auto [more, other] = kWords[static_cast<size_t>(i * i + 3) % std::size(kWords)];
        german += std::string(from) + " und " + more + "\n";
        english += std::string(to) + " and " + other + "\n";
      }
      place_.write("pairs/" + std::string(set) + ".de", german);
      place_.write("pairs/" + std::string(set) + ".en", english);
    }
    const Outcome base = train("base", "--set vocabulary.size=40");
    EXPECT_EQ(base.code, 0) << base.error;
    EXPECT_EQ(place_.run("convert base made --to ctranslate2").code, 0);
  }
  Outcome train(const std::string& out, const std::string& more) const {
    return place_.run(
        "train translation --data pairs --set model.width=16 --set model.heads=2 --set model.feed_forward=16"
        " --set model.encoder_layers=1 --set model.decoder_layers=1 --set train.steps=2"
        " --set train.evaluate_every=2 --set train.batch=16 --set train.threads=1 --set decode.beam=1"
        " --set decode.longest=4 --out " +
        out + " " + more);
  }
  void expect_refused(const Outcome& outcome, int code, const std::string& sentence) const {
    EXPECT_EQ(outcome.code, code);
    EXPECT_THAT(outcome.error, HasSubstr(sentence));
    EXPECT_THAT(outcome.out, testing::IsEmpty());
  }

  static constexpr std::pair<const char*, const char*> kWords[] = {
      {"hund", "dog"},   {"haus", "house"},  {"baum", "tree"},     {"wasser", "water"},
      {"licht", "lamp"}, {"garten", "yard"}, {"schule", "school"}, {"apfel", "apple"}};
  Workplace place_;
};

TEST_F(OwnVocabulary, a_run_keeps_a_copy_of_it) {
  const Outcome trained = train("run", "--set vocabulary.file=made/source.spm");
  ASSERT_EQ(trained.code, 0) << trained.error;
  EXPECT_TRUE(place_.read("run/best/source.pieces") == place_.read("base/best/source.pieces"));
  EXPECT_THAT(place_.read("run/best/recipe.toml"),
              AllOf(HasSubstr("file = '" + place_.path("made/source.spm").string()),
                    HasSubstr("pieces = 'unigram'"), HasSubstr("size = 40")));
  expect_refused(place_.run("train run --resume --set train.steps=4 --set vocabulary.file=made/target.spm"),
                 2, "was started with another recipe (different: vocabulary.file");
  fs::remove_all(place_.path("made"));
  const Outcome resumed = place_.run("train run --resume --set train.steps=4");
  EXPECT_EQ(resumed.code, 0) << resumed.error;
  EXPECT_THAT(resumed.error, Not(HasSubstr("vocabulary")));
  EXPECT_EQ(place_.run("predict run", "hund und haus\n").code, 0);
}

TEST_F(OwnVocabulary, each_side_may_have_its_own) {
  const std::string apart = "--set vocabulary.joint=false --set model.share_embeddings=false ";
  ASSERT_EQ(train("two", apart + "--set vocabulary.size=27").code, 0);
  ASSERT_EQ(place_.run("convert two apart --to ctranslate2").code, 0);
  const std::string files = "--set vocabulary.file=apart/source.spm ",
                    both = files + "--set vocabulary.target_file=apart/target.spm ";
  const Outcome trained = train("run", apart + both);
  ASSERT_EQ(trained.code, 0) << trained.error;
  for (const char* side : {"best/source.pieces", "best/target.pieces"})
    EXPECT_TRUE(place_.read("run/" + std::string(side)) == place_.read("two/" + std::string(side)));
  expect_refused(train("more", apart + files), 2,
                 "vocabulary.target_file and vocabulary.file must both name a model, or neither");
  expect_refused(train("more", both), 2,
                 "vocabulary.target_file must be empty with vocabulary.joint = true, where file is for both");
}

TEST_F(OwnVocabulary, what_is_none_and_what_would_do_nothing_is_refused) {
  expect_refused(train("run", "--set vocabulary.file=pairs/train.de"), 1,
                 "train.de must be a whole model of SentencePiece, as spm_train writes it (NAME.model)");
  expect_refused(train("run", "--set vocabulary.file=none"), 1, "there is no such file");
  expect_refused(train("run", "--set vocabulary.file=made/source.spm --set vocabulary.size=30"), 2,
                 "vocabulary.size would do nothing: it needs an empty vocabulary.file");
  EXPECT_FALSE(fs::exists(place_.path("run")));
  // Where training starts from a run's weights, the pieces are that run's.
  expect_refused(train("run", "--weights base --set vocabulary.file=made/source.spm"), 2,
                 "vocabulary.file would do nothing: the vocabulary is that of");
}

}  // namespace
}  // namespace quatrain::cli
