#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

using testing::HasSubstr;

// tests/python/test_scores.py compares the values with sacrebleu's.
TEST(Score, prints_scores_and_signatures) {
  const Workplace place;
  place.write("references", "A man, a plan.\r\nNo lemon\n");
  place.write("hypotheses", "A man, a plan.\nNo melon");
  const Outcome outcome = place.run("score hypotheses references");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex(
                  "BLEU +[0-9.]+  nrefs:1.case:mixed.eff:no.tok:13a.smooth:exp.version:quatrain-"));
  EXPECT_THAT(outcome.out, HasSubstr("87.5/83.3/100.0/100.0, brevity penalty 1.000 (8 words for 8)"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex(
                               "chrF2 +[0-9.]+  nrefs:1.case:mixed.eff:yes.nc:6.nw:0.space:no.version:"));
  EXPECT_EQ(place.run("score - references", place.read("hypotheses")).out, outcome.out);
  place.write("marked", "\xEF\xBB\xBF" + place.read("hypotheses"));
  EXPECT_EQ(place.run("score marked references").out, outcome.out);
  place.write("others", "Another plan.\nNo melon\n");
  const Outcome several = place.run("score hypotheses references others");
  EXPECT_THAT(several.out, HasSubstr("nrefs:2|case:mixed|eff:no"));
  EXPECT_THAT(several.out, HasSubstr("100.0/100.0/100.0/100.0"));
  place.write("few", "Another plan.\n");
  EXPECT_THAT(place.run("score hypotheses references few").error,
              HasSubstr("got 2 in hypotheses and 1 in few"));
}

TEST(Score, counts_words_as_asked) {
  const Workplace place;
  place.write("references", "A man, a plan.\n");
  const auto lengths = [&](const std::string& tokenize) {
    const Outcome outcome = place.run("score references references --json - --tokenize " + tokenize);
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["lines"], 1);
    EXPECT_NEAR(json["bleu"]["score"].get<double>(), 100, 1e-9);
    EXPECT_NEAR(json["chrf"]["score"].get<double>(), 100, 1e-9);
    return json["bleu"]["hypothesis_length"].get<int>();
  };
  EXPECT_EQ(lengths("13a"), 6);
  EXPECT_EQ(lengths("none"), 4);
  EXPECT_EQ(lengths("char"), 11);
}

TEST(Score, counts_errors_of_recognised_speech) {
  const Workplace place;
  place.write("references", "a b c d\ne f\n\n");
  place.write("hypotheses", "a x c\ne f\ng\n");
  const Outcome words = place.run("score hypotheses references --metric wer --confusions confusions.tsv");
  EXPECT_EQ(words.code, 0) << words.error;
  EXPECT_EQ(words.out, "%WER 50.00 [ 3 / 6, 1 ins, 1 del, 1 sub ]\n%SER 66.67 [ 2 / 3 ]\n");
  EXPECT_EQ(
      place.read("confusions.tsv"),
      "reference\thypothesis\tcount\n***\tg\t1\nb\tx\t1\nd\t***\t1\na\ta\t1\nc\tc\t1\ne\te\t1\nf\tf\t1\n");
  const auto json = nlohmann::json::parse(place.run("score hypotheses references --metric cer --json -").out);
  EXPECT_EQ(json["hits"], 7);  // of 7 + 3 characters: "d" and the space before it are missing
  EXPECT_EQ(json["deletions"], 2);
  EXPECT_NEAR(json["cer"].get<double>(), .4, 1e-12);
}

TEST(Score, matches_transcripts_by_their_utterances) {
  const Workplace place;
  place.write("ref.trn", "a b (ann-1)\nc d (bob-1)\n");
  place.write("hyp.trn", "c x (bob-1)\na b (ann-1)\n");
  EXPECT_THAT(place.run("score hyp.trn ref.trn --metric wer").out, HasSubstr("%WER 25.00 [ 1 / 4,"));
  place.write("hyp.trn", "a b (ann-1)\n");
  EXPECT_THAT(place.run("score hyp.trn ref.trn --metric wer").error,
              HasSubstr("(bob-1) is in ref.trn and not in hyp.trn"));
  place.write("hyp.trn", "a b (ann-1)\na b (ann-1)\n");
  EXPECT_THAT(place.run("score hyp.trn ref.trn --metric wer").error, HasSubstr("hyp.trn has two of (ann-1)"));
}

// JSON has no infinity; errors beside no word at all have it.
TEST(Score, has_no_rate_without_a_word_to_hear) {
  const Workplace place;
  place.write("references", "\n");
  place.write("hypotheses", "a b\n");
  const auto json = nlohmann::json::parse(place.run("score hypotheses references --metric wer --json -").out);
  EXPECT_TRUE(json["wer"].is_null());
  EXPECT_EQ(json["insertions"], 2);
  EXPECT_EQ(json["sentence_error_rate"], 1);
}

TEST(Score, refuses_lines_that_are_too_long_to_align) {
  const Workplace place;
  place.write("long", std::string(40000, 'a') + "\n");
  EXPECT_THAT(place.run("score long long --metric cer").error,
              HasSubstr("line 1 is too long to align, with 40,000 and 40,000 characters"));
  EXPECT_EQ(place.run("score long long --metric wer").code, 0);
}

// The weights of NIST's sclite favour hits, with more edits in all.
TEST(Score, aligns_as_asked) {
  const Workplace place;
  place.write("references", "a b c d e\n");
  place.write("hypotheses", "d e x y z\n");
  const std::string words = "score hypotheses references --metric wer --alignment ";
  EXPECT_THAT(place.run(words + "fewest_edits").out, HasSubstr("[ 5 / 5, 0 ins, 0 del, 5 sub ]"));
  EXPECT_THAT(place.run(words + "sclite").out, HasSubstr("[ 6 / 5, 3 ins, 3 del, 0 sub ]"));
}

}  // namespace
}  // namespace quatrain::cli
