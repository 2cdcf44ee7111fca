// What is shown while data are prepared, and of work that goes on by itself.

#include "cli/work_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace quatrain::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// What `work` writes to a file.
std::string written(const auto& work) {
  std::FILE* file = std::tmpfile();
  work(file);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// What is shown of work that takes so long.
std::string shown(bool terminal, double seconds, double lasting) {
  return written([&](std::FILE* file) {
    WorkLine line(file, terminal, seconds);
    line.tell("reading");
    line.tell("learning \x1b");
    sleep_for(lasting);
  });
}

// The same of so many pieces of it, a hundred in a second.
std::string shown_pieces(bool terminal, double seconds, int pieces) {
  return written([&](std::FILE* file) {
    WorkLine line(file, terminal, seconds);
    for (int i = 0; i < pieces; ++i, sleep_for(0.01)) line.show("batch " + std::to_string(i));
  });
}

TEST(WorkLine, on_a_terminal_one_line_is_drawn_and_gone_at_the_end) {
  const std::string text = shown(true, 0.02, 0.3);
  EXPECT_THAT(text, StartsWith("\r\x1b[K"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[Klearning \\x1B  "));
  EXPECT_THAT(text, EndsWith("s\r\x1b[K"));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

TEST(WorkLine, short_work_draws_nothing) {
  EXPECT_EQ(shown(true, 3600, 0), "");
}

TEST(WorkLine, elsewhere_all_is_told_and_the_last_repeated_ever_more_rarely) {
  const std::string told = "reading\nlearning \\x1B\n";
  EXPECT_EQ(shown(false, 3600, 0.1), told);
  const std::string text = shown(false, 0.01, 1);
  EXPECT_THAT(text, StartsWith(told + "learning \\x1B ("));
  EXPECT_THAT(text, EndsWith("s so far)\n"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 2 + 8);  // at 0.01, 0.02, 0.04 ...
}

TEST(WorkLine, what_comes_often_is_written_ever_more_rarely_elsewhere) {
  EXPECT_EQ(shown_pieces(true, 3600, 3), "");
  EXPECT_EQ(shown_pieces(false, 3600, 3), "");
  const std::string drawn = shown_pieces(true, 0.02, 30);
  EXPECT_THAT(drawn, testing::ContainsRegex("^\r\x1b\\[Kbatch [0-9]+  [0-9]+s\r\x1b\\[K"));
  EXPECT_THAT(drawn, EndsWith("s\r\x1b[K"));
  EXPECT_THAT(drawn, Not(HasSubstr("\n")));
  const std::string text = shown_pieces(false, 0.02, 60);
  EXPECT_THAT(text, testing::ContainsRegex(
                        "^batch [0-9]+ \\([0-9]+s so far\\)\nbatch [0-9]+ \\([0-9]+s so far\\)\n"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 8);  // at 0.02, 0.04, 0.08 ...
}

TEST(WorkLine, steps_aside_for_what_is_printed) {
  const std::string text = written([](std::FILE* file) {
    WorkLine line(file, true, 0.02);
    line.show("batch 1");
    sleep_for(0.3);
    line.clear();
    std::fputs("a note", file);
    sleep_for(0.1);
    std::fputs("\n", file);
    line.show("batch 2");
    sleep_for(0.3);
  });
  EXPECT_THAT(text, StartsWith("\r\x1b[Kbatch 1  "));
  EXPECT_THAT(text, HasSubstr("s\r\x1b[Ka note\n\r\x1b[Kbatch 2  "));
  EXPECT_THAT(text, EndsWith("s\r\x1b[K"));
}

TEST(WorkLine, the_result_of_the_work_is_handed_on) {
  EXPECT_EQ(while_telling([](const auto&) { return 7; }), 7);
}

}  // namespace
}  // namespace quatrain::cli
