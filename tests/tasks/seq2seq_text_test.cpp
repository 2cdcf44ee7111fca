// What the lines are (`task.text`): how answers and references are written, shown and scored.

#include <gmock/gmock.h>

#include <fstream>

#include "quatrain/scores/bleu.h"
#include "tasks/seq2seq_runs.h"

namespace quatrain::tasks {
namespace {

using scores::BleuTokenizer;

class Seq2SeqTextTest : public Seq2SeqKindTest {
 protected:
  // Every line becomes the same one, and half of the test set says another word at its end.
  Recipe constant(const std::string& form, const std::string& line) {
    const Recipe made = corpus({"task.text=" + form, "vocabulary.pieces=words", "train.rate=1e-2",
                                "train.warmup=4", "train.steps=40", "train.evaluate_every=40",
                                "train.batch=8", "train.samples=2", "decode.beam=1"});
    for (const auto& [split, count] : {std::pair{"train", 60}, std::pair{"dev", 8}, std::pair{"test", 8}}) {
      std::ofstream up(folder_ / (std::string(split) + ".up"));
      for (int i = 0; i < count; ++i)
        up << line << (std::string_view(split) == "test" && i % 2 ? " g" : " f") << "\n";
    }
    return made;
  }
};

// A comma within a word is a word of its own by the rules 13a alone, and pieces that end in @@ are joined.
TEST_F(Seq2SeqTextTest, TheFormSaysHowAnswersAreWrittenAndScored) {
  const std::string whole = "a,b c d e", pieces = "a@@ ,@@ b c d e";
  const auto bleu = [&](BleuTokenizer tokenizer) {
    scores::BleuCounts counts;
    for (int i = 0; i < 8; ++i)
      counts += scores::bleu_counts(whole + " f", whole + (i % 2 ? " g" : " f"), tokenizer);
    return scores::bleu(counts);
  };
  ASSERT_GT(std::abs(bleu(BleuTokenizer::v13a) - bleu(BleuTokenizer::none)), 1);
  struct Case {
    const char* form;
    const std::string& line;
    BleuTokenizer tokenizer;
  };
  for (const auto& [form, line, tokenizer] : {Case{"raw", whole, BleuTokenizer::v13a},
                                              {"tokenised", whole, BleuTokenizer::none},
                                              {"bpe", pieces, BleuTokenizer::none}}) {
    SCOPED_TRACE(form);
    std::vector<std::string> told;
    train::RunOptions run{.folder = folder_ / form};
    run.on_sample = [&](const std::string& text) { told.push_back(text); };
    const train::Figures figures = learn(constant(form, line), run).test;
    std::string answers;
    for (int i = 0; i < 8; ++i) answers += whole + " f\n";
    ASSERT_EQ(text_of(folder_ / form / "test.hypotheses.txt"), answers);
    EXPECT_NEAR(figures.at("bleu"), bleu(tokenizer), 1e-9);
    EXPECT_EQ(figures.at("exact"), 0.5);
    const std::string shown = " -> " + whole + " f  [" + whole + " f]";
    EXPECT_THAT(told, testing::ElementsAre("ab" + shown, "deh" + shown));
    EXPECT_EQ(load_run(folder_ / form)->predict({"ab"}).front(), whole + " f");
  }
}

}  // namespace
}  // namespace quatrain::tasks
