#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/lines.h"
#include "cli/program.h"

namespace quatrain::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// One trained run for all tests here.
class Predict : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = new Workplace;
    place_->make_data();
    const Outcome outcome = place_->run("train text" + kSmall +
                                        " --set train.steps=150 --set train.rate=1e-2"
                                        " --set task.min_count=1 --data data --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  }
  static void TearDownTestSuite() {
    delete place_;
    place_ = nullptr;
  }
  static std::vector<std::string> predict(const std::string& input) {
    const Outcome outcome = place_->run("predict run", input);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_THAT(outcome.error, IsEmpty());
    return lines_of(outcome.out);
  }
  static inline Workplace* place_ = nullptr;
};

TEST_F(Predict, answers_each_line_with_its_label_and_probabilities) {
  const auto lines = predict("a good film\na dull plot\n");
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(lines[0], testing::MatchesRegex("good\t0\\.[0-9]+\t0\\.[0-9]+|good\t0\\.0000\t1\\.0000"));
  EXPECT_TRUE(lines[1].starts_with("bad\t")) << lines[1];
  double bad = 0, good = 0;
  std::istringstream(lines[0].substr(5)) >> bad >> good;
  EXPECT_NEAR(bad + good, 1, 2e-4);
  EXPECT_GT(good, 0.5);
}

TEST_F(Predict, blank_last_and_very_long_lines_are_lines) {
  EXPECT_THAT(predict(""), IsEmpty());
  EXPECT_EQ(predict("\n").size(), 1);
  EXPECT_EQ(predict("a good film").size(), 1);
  std::string longest;
  for (int i = 0; i < 200000; ++i) longest += "plot ";
  const auto lines = predict("good film\n\n" + longest + "\nbad film\r\n");
  ASSERT_EQ(lines.size(), 4);
  EXPECT_TRUE(lines[0].starts_with("good\t"));
  EXPECT_TRUE(lines[3].starts_with("bad\t"));
}

// What cannot be a text ends it, after the answers to the lines before.
TEST_F(Predict, lines_that_are_no_text_are_named) {
  for (const auto& [bad, rule] :
       {std::pair{std::string(2'000'000, 'a'), "a line may have at most 1048576 bytes"},
        std::pair{std::string("\xff\xfe"), "UTF-8"}}) {
    const Outcome outcome = place_->run("predict run", "good film\nbad film\n" + bad + "\ngood\n");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error,
                testing::AllOf(testing::HasSubstr("standard input, line 3"), testing::HasSubstr(rule)));
    EXPECT_EQ(lines_of(outcome.out).size(), 2);
  }
}

// Many portions: the order stays, and a text's answer does not depend on its neighbours.
TEST_F(Predict, many_lines_stay_in_order) {
  constexpr int kLines = 50000;
  std::string input;
  for (int i = 0; i < kLines; ++i) {
    input += i % 3 ? "good" : "bad";
    for (int word = 0; word < i % 11; ++word) input += " film";
    input += '\n';
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto lines = predict(input);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  ASSERT_EQ(lines.size(), kLines);
  const auto first = predict("good\nbad\n");
  for (int i = 0; i < kLines; i += 11 * 3) {
    EXPECT_EQ(lines[static_cast<size_t>(i)], first[1]) << i;  // "bad" alone
    if (i + 11 < kLines) {
      EXPECT_EQ(lines[static_cast<size_t>(i) + 11], first[0]) << i;  // "good" alone
    }
  }
}

TEST(PredictNumbers, an_answer_that_is_not_finite_is_an_error) {
  const Workplace place;
  ASSERT_EQ(place.run("train hamilton --set train.threads=1 --set train.steps=6 --out run").code, 0);
  const Outcome outcome =
      place.run("predict run", "1 2 3 4 5 6 7 8\n1e20 1e20 1 1 1e20 1e20 1 1\n1 2 3 4 5 6 7 8\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, testing::HasSubstr("standard input, line 2: the answer is not finite"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

// Of a run that writes lines: what its weights do not depend on can be set.
TEST(PredictSettings, search_can_be_set_and_what_was_trained_cannot) {
  const Workplace place;
  const std::string small =
      "train reverse --set reverse.train=200 --set reverse.dev=10 --set reverse.test=10 --set model.width=16"
      " --set model.heads=1 --set train.steps=40 --set train.warmup=5 --set train.rate=1e-2 --set "
      "train.threads=1"
      " --out run";
  ASSERT_EQ(place.run(small).code, 0);
  const std::string recipe = place.read("run/best/recipe.toml");
  const auto tabs = [&](const std::string& settings) {
    const Outcome outcome = place.run("predict run" + settings, "a b c\n");
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_EQ(lines_of(outcome.out).size(), 1) << outcome.out;
    return std::count(outcome.out.begin(), outcome.out.end(), '\t');
  };
  EXPECT_EQ(tabs(""), 0);
  EXPECT_EQ(tabs(" --set decode.beam=4 --set decode.best=3"), 2);
  EXPECT_EQ(tabs(" --set decode.beam=4 --set decode.best=3 --set decode.scores=true"), 5);
  EXPECT_EQ(place.read("run/best/recipe.toml"), recipe);
  const auto figures = [&](const std::string& settings) {
    const Outcome outcome = place.run("evaluate run --json -" + settings);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.out;
  };
  EXPECT_NE(figures(" --set decode.longest=1"), figures(""));

  const auto refused = [&](const std::string& settings, const std::string& sentence) {
    for (const std::string command : {"predict run", "evaluate run"}) {
      const Outcome outcome = place.run(command + settings, "a b c\n");
      EXPECT_EQ(outcome.code, 2);
      EXPECT_THAT(outcome.out, IsEmpty());
      EXPECT_THAT(outcome.error, testing::HasSubstr(sentence));
    }
  };
  refused(
      " --set model.width=32",
      "--set model.width=32: model.width cannot be changed in a run that is trained; these can: task.folder, "
      "task.skip_bad, decode.");
  refused(" --set model.width=31", "model.width cannot be changed");  // whatever else is wrong with it
  refused(" --set train.seed=2", "train.seed cannot be changed");
  refused(" --set train.steps=9", "train.steps cannot be changed");  // a resumed run may, an answer does not
  refused(" --set train.device=cpu", "train.device cannot be changed");
  const Outcome resumed = place.run("train run --resume --set decode.longest=1");
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.error, testing::HasSubstr("different: decode.longest"));
  for (const std::string key : {"reads=pair", "scores=true", "alignments=true"}) {
    const Outcome outcome = place.run("evaluate run --set decode." + key);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error, testing::HasSubstr("would do nothing: it says what quatrain predict writes"));
  }
  const Outcome nothing_left = place.run("train run --resume");
  EXPECT_EQ(nothing_left.code, 0);
  EXPECT_THAT(nothing_left.error, testing::HasSubstr("nothing is left to train: the run ended at step 40"));
  // A line that cannot be read ends the program, or is passed over where that is asked for.
  const Outcome ended = place.run("predict run", "a b\nb \xff\na c\n");
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(lines_of(ended.out).size(), 1);
  EXPECT_THAT(ended.error, testing::HasSubstr("line 2: the text must be UTF-8"));
  // Also of a line whose rest comes later than its beginning.
  const auto alone = lines_of(place.run("predict run", "a b\na c\n").out);
  for (const std::string& bad : {std::string("b \xff"), std::string(3'000'000, 'a')}) {
    const Outcome passed = place.run("predict run --skip-bad", "a b\n" + bad + "\na c\n");
    EXPECT_EQ(passed.code, 1);
    EXPECT_THAT(lines_of(passed.out), testing::ElementsAre(alone[0], "", alone[1]));
    EXPECT_THAT(passed.error, testing::HasSubstr("1 of 3 lines have no answer"));
  }
  refused(" --set decode.baem=2", "did you mean decode.beam?");
  const Outcome best = place.run("predict run --set decode.best=3", "a b c\n");
  EXPECT_EQ(best.code, 2);
  EXPECT_THAT(best.error, testing::HasSubstr("decode.best must be at most decode.beam = 1, got 3"));
  refused(" --set decode.beam", "--set must be of the form table.key=value");
}

// Runs that write the same words answer together.
TEST(PredictTogether, runs_of_the_same_pieces_do_and_others_are_named) {
  const Workplace place;
  place.make_data();
  const auto train = [&](const std::string& run, const std::string& more) {
    const Outcome outcome = place.run(
        "train reverse --set reverse.train=200 --set reverse.dev=10 --set reverse.test=10 --set "
        "model.width=16"
        " --set model.heads=1 --set train.steps=30 --set train.warmup=5 --set train.rate=1e-2"
        " --set train.threads=1 --out " +
        run + more);
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  };
  train("one", "");
  train("two", " --seed 7");
  train("other", " --set reverse.symbols=5");
  ASSERT_EQ(
      place.run("train text" + kSmall + " --set train.steps=2 --set task.min_count=1 --data data --out text")
          .code,
      0);
  const std::string pair = " --set decode.reads=pair";
  const auto score = [&](const std::string& runs) {
    const Outcome outcome = place.run("predict " + runs + pair, "a b c\t\n");
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return std::exp(std::stod(outcome.out));
  };
  const double one = score("one"), two = score("two");
  EXPECT_NEAR(score("one --with two"), (one + two) / 2, 1e-3 * (one + two));
  EXPECT_NEAR(score("one --with two --with two"), (one + 2 * two) / 3, 1e-3 * (one + two));
  EXPECT_EQ(place.run("predict one --with one", "a b c\n").out, place.run("predict one", "a b c\n").out);
  const auto loss = [&](const std::string& runs) {
    const Outcome outcome = place.run("evaluate " + runs + " --json -");
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return nlohmann::json::parse(outcome.out)["figures"]["loss"].get<double>();
  };
  EXPECT_LT(loss("one --with two"), (loss("one") + loss("two")) / 2);
  const auto refused = [&](const std::string& runs, const std::string& sentence) {
    const Outcome outcome = place.run("predict " + runs, "a b c\n");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.error, testing::HasSubstr(sentence));
  };
  refused("one --with two --with other",
          "the runs 'one' and 'other' cannot answer together: their pieces differ");
  refused("one --with text", "'one' and 'text' cannot answer together: they are of kinds seq2seq and text");
  refused("text --with text", "cannot answer together: models of kind text_classification answer alone");
  refused("one --with nowhere", "'nowhere' is not a run");
  const Outcome bare = place.run("predict one" + pair, "a\tb\nc d\n");
  EXPECT_EQ(bare.code, 1);
  EXPECT_EQ(lines_of(bare.out).size(), 1);
  EXPECT_THAT(bare.error, testing::HasSubstr("standard input, line 2: a line must have a source, a tab and a "
                                             "target (decode.reads = pair), this one has no tab"));
}

TEST_F(Predict, a_full_disk_is_an_error) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  place_->write("ask.sh", "'" QUATRAIN_PROGRAM "' predict run <ask.in >/dev/full\n");
  place_->write("ask.in", "good\n");
  const int status = std::system(("cd '" + place_->folder().string() + "' && sh ask.sh 2>/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

// Answers that nobody can get are not lost unsaid.
TEST_F(Predict, a_standard_output_that_is_closed_is_an_error) {
  EXPECT_EQ(place_->run("predict run good 2>said >&-; echo $?").out, "1\n");
  EXPECT_EQ(place_->read("said"), "quatrain: cannot write the standard output\n");
  EXPECT_EQ(place_->run("recipes >&-; echo $?").out, "1\n");
}

// What waits for an answer gets it before it writes on: lines come out in the portions in which they came in.
TEST(LineInput, leaves_out_a_byte_order_mark) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text = "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n";
  ASSERT_GT(write(ends[1], text.data(), text.size()), 0);
  close(ends[1]);
  LineInput reader(ends[0], 100000);
  EXPECT_THAT(reader.next(10), ElementsAre("one", "\xEF\xBB\xBFtwo"));
  close(ends[0]);
}

TEST(LineInput, hands_over_what_is_there) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineInput reader(ends[0], 100000);
  const auto send = [&](const std::string& text) { return write(ends[1], text.data(), text.size()); };
  send("one\ntwo\nthr");
  EXPECT_THAT(reader.next(10), ElementsAre("one", "two"));
  send("ee\n\r\nfour\n");
  EXPECT_THAT(reader.next(2), ElementsAre("three", ""));
  EXPECT_THAT(reader.next(2), ElementsAre("four"));
  send("last");
  close(ends[1]);
  EXPECT_THAT(reader.next(2), ElementsAre("last"));
  EXPECT_THAT(reader.next(2), IsEmpty());
  close(ends[0]);
}

}  // namespace
}  // namespace quatrain::cli
