#include "quatrain/train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <string>

namespace quatrain::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is shown on a stream by `draw`.
template <typename Draw>
std::string shown(const Draw& draw) {
  std::FILE* file = std::tmpfile();
  draw(file);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

Progress middle() {
  Progress p;
  p.step = 50;
  p.steps = 200;
  p.loss = 0.61234;
  p.examples_per_second = 1234.4;
  p.seconds = 30;
  p.seconds_left = 3725;
  p.figure = "accuracy";
  p.last = 0.75;
  p.best = 0.8125;
  return p;
}

TEST(ProgressTest, TheRateIsOfWhatTheTaskCounts) {
  const std::string text = shown([](std::FILE* file) {
    Progress p = middle();
    p.unit = "tokens";
    ProgressLine(file, "", true, 0).show(p);
  });
  EXPECT_THAT(text, HasSubstr("  1234 tokens/s  1h02m left"));
}

TEST(ProgressTest, OneLineIsRedrawnOnATerminal) {
  const std::string text = shown([](std::FILE* file) {
    ProgressLine line(file, "quaternion", true, 0);
    Progress p = middle();
    line.show(p);
    p.stage = Progress::Stage::evaluating;
    line.show(p);
    p.stage = Progress::Stage::done;
    line.show(p);
  });
  EXPECT_THAT(
      text,
      HasSubstr("quaternion  [=====---------------] step 50/200  loss 0.6123  accuracy 0.7500 (best 0.8125)"
                "  1234 examples/s  1h02m left\r\x1b[K"));
  EXPECT_THAT(text, HasSubstr("evaluating\r\x1b[K"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
}

TEST(ProgressTest, ALineIsNoLongerThanTheTerminalsRow) {
  int master = -1, slave = -1;
  const winsize size{24, 40, 0, 0};
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, &size), 0);
  std::FILE* terminal = ::fdopen(slave, "w");
  {
    ProgressLine line(terminal, "caf\u00e9");
    line.show(middle());
  }
  std::string text;  // which may come in parts
  for (char part[64]; text.empty() || text.back() != '\n';) {
    const ssize_t got = ::read(master, part, sizeof part);
    ASSERT_GT(got, 0);
    text.append(part, static_cast<size_t>(got));
  }
  std::fclose(terminal);
  ::close(master);
  EXPECT_EQ(text, "caf\u00e9  [=====---------------] step 50/20\r\n");
}

TEST(ProgressTest, PlainLinesElsewhereAndNotTooMany) {
  const std::string text = shown([](std::FILE* file) {
    ProgressLine line(file, "", false, 3600);
    Progress p = middle();
    for (p.step = 1; p.step < 100; ++p.step) line.show(p);
    p.stage = Progress::Stage::done;
    line.show(p);
  });
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text, HasSubstr("step 1/200"));
  EXPECT_THAT(text, HasSubstr("step 100/200"));
}

// The log of a run of weeks stays short.
TEST(ProgressTest, PlainLinesBecomeRarer) {
  for (const auto& [seconds, lines] : {std::pair{0.0, 50}, std::pair{1e6, 1}}) {
    const std::string text = shown([&, seconds = seconds](std::FILE* file) {
      ProgressLine line(file, "", false, 0);
      Progress p = middle();
      p.seconds = seconds;
      for (p.step = 1; p.step <= 50; ++p.step) line.show(p);
    });
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), lines);
  }
}

TEST(ProgressTest, AFileIsNoTerminal) {
  EXPECT_THAT(shown([](std::FILE* file) { ProgressLine(file).show(middle()); }), Not(HasSubstr("\x1b")));
}

TEST(ProgressTest, MessagesStandAboveTheLine) {
  const std::string text = shown([](std::FILE* file) {
    ProgressLine line(file, "t", true, 0);
    line.show(middle());
    line.message("hello");
  });
  EXPECT_THAT(text, HasSubstr("\r\x1b[Kt  hello\n"));
}

}  // namespace
}  // namespace quatrain::train
