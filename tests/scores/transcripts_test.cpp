#include "quatrain/scores/transcripts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

#include "../temporary_folder.h"

namespace quatrain::scores {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

using Trn = test::FolderTest;

TEST_F(Trn, travels_through_a_file) {
  const std::vector<Transcript> all{
      {{"she", "had"}, "fvmh0", "sx1-2"}, {{}, "s", "2"}, {{"(er)", "a;;", "\xC3\xA9"}, "", "alone"}};
  const auto file = folder_ / "ref.trn";
  write_trn(file, all);
  EXPECT_EQ(read_trn(file), all);
  std::ifstream stream(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            "she had (fvmh0-sx1-2)\n(s-2)\n(er) a;; \xC3\xA9 (alone)\n");
}

TEST_F(Trn, reads_what_others_write) {
  const auto file = folder_ / "hyp.trn";
  std::ofstream(file) << ";; a comment\n\n  YES  NO\t( er ) (a-1) \r\n(b_2)";
  EXPECT_THAT(read_trn(file),
              ElementsAre(Transcript{{"YES", "NO", "(", "er", ")"}, "a", "1"}, Transcript{{}, "", "b_2"}));
}

TEST_F(Trn, refuses) {
  const auto file = folder_ / "hyp.trn";
  for (const char* line : {"words", "words ()", "words (a b)", "words (a-1) more", "a)", "words (a-)"}) {
    std::ofstream(file) << "fine (a-1)\n" << line << "\n";
    EXPECT_THAT(refusal([&] { read_trn(file); }), HasSubstr(file.string() + ":2: a line of a .trn")) << line;
  }
  EXPECT_THAT(refusal([&] { read_trn(folder_ / "none.trn"); }), HasSubstr("none.trn cannot be read"));

  EXPECT_THAT(refusal([] {
                trn_line({{"a b"}, "s", "1"});
              }),
              HasSubstr("token must not contain white space"));
  EXPECT_THAT(refusal([] { trn_line({{""}, "s", "1"}); }), HasSubstr("token must not be empty"));
  EXPECT_THAT(refusal([] { trn_line({{";;"}, "s", "1"}); }), HasSubstr("comment"));
  EXPECT_THAT(refusal([] { trn_line({{}, "s-t", "1"}); }), HasSubstr("or '-', got \"s-t\""));
  EXPECT_THAT(refusal([] { trn_line({{}, "", "s-1"}); }), HasSubstr("utterance"));
  EXPECT_THAT(refusal([] { trn_line({{}, "s", "1)"}); }), HasSubstr("utterance"));
  EXPECT_THAT(refusal([] { trn_line({{}, "s", ""}); }), HasSubstr("utterance must not be empty"));
}

TEST(Ctm, lines) {
  EXPECT_EQ(ctm_line({"rec", "1", 0.5, 0.1234, "word", {}}), "rec 1 0.500 0.123 word");
  EXPECT_EQ(ctm_line({"rec", "A", 12, 1, "word", 0.987}), "rec A 12.000 1.000 word 0.99");
  EXPECT_THAT(refusal([] { ctm_line({"a b", "1", 0, 1, "w", {}}); }), HasSubstr("recording"));
  EXPECT_THAT(refusal([] { ctm_line({"a", "1", 0, 1, "", {}}); }), HasSubstr("token must not be empty"));
  EXPECT_THAT(refusal([] { ctm_line({"a", "1", -1, 1, "w", {}}); }), HasSubstr("begin"));
  EXPECT_THAT(refusal([] {
                ctm_line({"a", "1", 0, std::numeric_limits<double>::quiet_NaN(), "w", {}});
              }),
              HasSubstr("duration"));
  EXPECT_THAT(refusal([] { ctm_line({"a", "1", 0, 1, "w", 1.5}); }), HasSubstr("confidence"));
}

}  // namespace
}  // namespace quatrain::scores
