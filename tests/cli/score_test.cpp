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

}  // namespace
}  // namespace quatrain::cli
