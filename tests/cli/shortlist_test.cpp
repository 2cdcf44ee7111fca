// `quatrain shortlist`: the file beside a run, and predictions with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

class ShortlistCommand : public testing::Test {
 protected:
  void train() const {
    const Outcome outcome = place_.run(
        "train reverse --set model.width=32 --set model.heads=2 --set model.feed_forward=32 --set "
        "reverse.train=300 --set reverse.dev=20 --set reverse.test=20 --set train.epochs=0 --set "
        "train.steps=4 --set train.threads=1 --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  }
  void expect_refused(const std::string& words, int code, const std::string& sentence) const {
    SCOPED_TRACE(words);
    const Outcome outcome = place_.run(words, "a b\n");
    EXPECT_EQ(outcome.code, code);
    EXPECT_THAT(outcome.error, HasSubstr(sentence));
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
    EXPECT_THAT(outcome.out, testing::IsEmpty());
  }

  Workplace place_;
};

TEST_F(ShortlistCommand, is_made_used_and_refused) {
  train();
  const std::string predict = "predict run --set decode.shortlist=true";
  expect_refused(predict, 2, "needs the file 'run/shortlist': make it with quatrain shortlist run");
  const Outcome made = place_.run("shortlist run --best 3 --frequent 2");
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_THAT(made.error, HasSubstr("iteration 5 of 5"));
  EXPECT_THAT(made.out, AllOf(HasSubstr("training pairs"), HasSubstr("dev tokens listed"),
                              HasSubstr("dev sentences listed wholly"), HasSubstr("run/shortlist")));
  // One vocabulary: all that is put in reverse order is listed.
  EXPECT_THAT(made.out, HasSubstr("100.00%"));
  const Outcome answers = place_.run(predict, "a b c\n\nb\n");
  EXPECT_EQ(answers.code, 0) << answers.error;
  EXPECT_EQ(std::count(answers.out.begin(), answers.out.end(), '\n'), 3);
  EXPECT_EQ(place_.run("evaluate run --set decode.shortlist=true").code, 0);
  EXPECT_EQ(place_.run("check run").code, 0);
  const std::string whole = place_.read("run/shortlist");
  place_.write("run/shortlist", whole.substr(0, whole.size() / 2));
  expect_refused(predict, 1,
                 "the shortlist 'run/shortlist' is damaged: make it again with quatrain shortlist run");
  const Outcome checked = place_.run("check run");
  EXPECT_EQ(checked.code, 1);
  EXPECT_THAT(checked.out, testing::ContainsRegex("shortlist +the shortlist 'run/shortlist' is damaged"));
  ASSERT_EQ(place_.run("shortlist run --best 3 --frequent 2").code, 0);
  EXPECT_EQ(place_.read("run/shortlist"), whole);
  expect_refused("shortlist nowhere", 2, "'nowhere' is not a run");
  expect_refused("shortlist run --best 0", 2, "--best");
}

TEST_F(ShortlistCommand, goes_with_the_run_that_is_overwritten) {
  train();
  ASSERT_EQ(place_.run("shortlist run --best 3 --frequent 2").code, 0);
  ASSERT_EQ(place_.run("train run --overwrite --out run --set train.steps=2").code, 0);
  EXPECT_FALSE(fs::exists(place_.path("run/shortlist")));
}

TEST_F(ShortlistCommand, leaves_nothing_when_stopped) {
  train();
  const std::string folder = place_.path("run").string();
  const Background work("shortlist " + folder, place_.path("error"));
  work.wait_until_it_catches(SIGINT);
  work.signal(SIGINT);
  const int code = work.wait();
  EXPECT_TRUE(code == 130 ? !fs::exists(place_.path("run/shortlist")) : code == 0) << code;
  EXPECT_FALSE(fs::exists(place_.path("run/shortlist.part")));
}

}  // namespace
}  // namespace quatrain::cli
