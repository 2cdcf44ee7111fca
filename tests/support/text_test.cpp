#include "support/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace quatrain {
namespace {

using testing::HasSubstr;

// What plain_toml refuses a text for, with the line; empty where it does not.
std::string refused(const std::string& text) {
  try {
    plain_toml(text);
  } catch (const TextError& error) {
    return std::to_string(error.line()) + ": " + error.what();
  }
  return "";
}

TEST(PlainToml, is_the_same_in_ascii) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a = 1 # b", "a = 1 # b"},
      {"a = \"\xC3\xA9\"", "a = \"\\U000000E9\""},
      {"a = \"\xF0\x9F\x98\x80\" # \xC3\xA9!", "a = \"\\U0001F600\" # ?!"},
      {"a = 'C:\\\xC3\xA9\"'", "a = \"C:\\\\\\U000000E9\\\"\""},
      {"a = \"\"\"\n\xC3\xA9 \"\" \\\"\"\"\"\"\nb = 'x'",
       "a = \"\"\"\n\\U000000E9 \"\" \\\"\"\"\"\"\nb = \"x\""},
      {"a = '''\n'\\\xC3\xA9'''", "a = \"\"\"\n'\\\\\\U000000E9\"\"\""},
      {"a = ''\nb = \"\"", "a = \"\"\nb = \"\""},
      {"\xEF\xBB\xBF a = 1\r\n", " a = 1\r\n"},
  };
  for (const auto& [text, plain] : cases) EXPECT_EQ(plain_toml(text), plain) << text;
}

TEST(PlainToml, refuses_what_the_parser_does_not_stand) {
  EXPECT_THAT(refused("a = 1\n\x01"),
              HasSubstr("2: the text must not contain control characters, but contains 0x01"));
  EXPECT_THAT(refused("a = 1\rb = 2"), HasSubstr("0x0D"));
  EXPECT_THAT(refused("a = 1\nb = \"\xE9\""),
              HasSubstr("2: the text must be UTF-8, but contains the byte 0xE9"));
  EXPECT_THAT(refused("\xFF\xFE["), HasSubstr("1: the text is UTF-16"));
  EXPECT_THAT(refused("\xC3\xA9 = 1"), HasSubstr("1: outside strings and comments only ASCII is allowed"));
  std::string deep = "a";
  for (int i = 0; i < 16; ++i) deep += ".a";
  EXPECT_EQ(refused(deep + " = 1"), "");
  EXPECT_THAT(refused(deep + ".a = 1"), HasSubstr("a name may have at most 17 parts"));
  EXPECT_EQ(refused("a = " + std::string(20, '[') + std::string(20, ']')), "");
  EXPECT_THAT(refused("\na = " + std::string(21, '[')),
              HasSubstr("2: lists and tables may be nested at most 20 deep"));
  EXPECT_EQ(refused("a = \"" + deep + deep + "\" # " + deep + deep), "");
}

TEST(LineProblem, says_what_is_wrong) {
  EXPECT_EQ(line_problem(""), "");
  EXPECT_EQ(line_problem("caf\xC3\xA9"), "");
  EXPECT_EQ(line_problem(std::string(kLongestLine, 'x')), "");
  EXPECT_THAT(line_problem(std::string(kLongestLine + 1, 'x')), HasSubstr("at most 1048576 bytes"));
  EXPECT_THAT(line_problem("caf\xE9"), HasSubstr("byte 4 of the line"));
  EXPECT_THAT(line_problem(std::string("ab\0", 3)), HasSubstr("NUL bytes, found one at byte 3"));
  EXPECT_THAT(line_problem("\xFE\xFF"), HasSubstr("UTF-16"));
}

TEST(Shorten, cuts_between_characters) {
  EXPECT_EQ(shorten(std::string(40, 'x')), std::string(40, 'x'));
  EXPECT_EQ(shorten(std::string(41, 'x')), std::string(40, 'x') + "...");
  EXPECT_EQ(quote(std::string(39, 'x') + "\xC3\xA9z"), "\"" + std::string(39, 'x') + "...\"");
}

TEST(Quote, escapes_what_is_not_utf8) {
  EXPECT_EQ(quote("caf\xC3\xA9"), "\"caf\xC3\xA9\"");
  EXPECT_EQ(quote("caf\xE9"), "\"caf\\xE9\"");
  EXPECT_EQ(quote("\xFF\xFE"
                  "a\xC3"),
            "\"\\xFF\\xFEa\\xC3\"");
}

TEST(ReadFile, wants_a_file_of_no_more_than_it_may_have) {
  const auto problem = [](const char* path, size_t most) -> std::string {
    try {
      read_file(path, most);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("nowhere", 1), "there is no such file");
  EXPECT_EQ(problem("/tmp", 1), "it is a folder");
  EXPECT_EQ(problem("/dev/zero", 1), "it is a pipe or a device; save its content as a file first");
  EXPECT_THAT(problem("/proc/self/exe", 1), HasSubstr("but may have at most 1"));
}

}  // namespace
}  // namespace quatrain
