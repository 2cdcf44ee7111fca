#include "support/shell_word.h"

#include <gtest/gtest.h>

namespace quatrain {
namespace {

TEST(ShellWord, PlainPathsStayAsTheyAre) {
  for (const char* path : {"runs/mine", "/data/run-1_b.2", "../a", "données/é"})
    EXPECT_EQ(shell_word(path), path);
}

TEST(ShellWord, OthersAreQuoted) {
  EXPECT_EQ(shell_word("my runs/a"), "'my runs/a'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME;x*"), "'$HOME;x*'");
  EXPECT_EQ(shell_word("~/a"), "'~/a'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a=b"), "'a=b'");
  EXPECT_EQ(shell_word("-r"), "./-r");
  EXPECT_EQ(shell_word("-a b"), "'./-a b'");
}

}  // namespace
}  // namespace quatrain
