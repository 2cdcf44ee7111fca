// What is shown while data are prepared.

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

// What is shown of work that takes so long.
std::string shown(bool terminal, double seconds, double lasting) {
  std::FILE* file = std::tmpfile();
  {
    WorkLine line(file, terminal, seconds);
    line.tell("reading");
    line.tell("learning \x1b");
    std::this_thread::sleep_for(std::chrono::duration<double>(lasting));
  }
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
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

TEST(WorkLine, the_result_of_the_work_is_handed_on) {
  EXPECT_EQ(while_telling([](const auto&) { return 7; }), 7);
}

}  // namespace
}  // namespace quatrain::cli
