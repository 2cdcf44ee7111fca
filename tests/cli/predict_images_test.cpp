#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/program.h"
#include "data/picture_files.h"

namespace quatrain::cli {
namespace {

using testing::HasSubstr;

// One trained run for all tests here.
class PredictImages : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = new Workplace;
    test::write_colours(place_->path("colours"), 12, 3, 3);
    const Outcome outcome = place_->run(
        "train shapes --data colours --out run --set task.data=folders --set task.side=12 --set "
        "\"model.widths=8 8 8 8\" --set augmentation.padding=1 --set train.steps=60 --set train.batch=9 "
        "--set train.rate=0.01 --set train.threads=1 --set train.evaluate_every=20");
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  }
  static void TearDownTestSuite() {
    delete place_;
    place_ = nullptr;
  }
  static inline Workplace* place_ = nullptr;
};

TEST_F(PredictImages, files_are_arguments_or_lines) {
  const Outcome arguments = place_->run("predict run colours/test/sea/0.png colours/test/sun/1.png");
  EXPECT_EQ(arguments.code, 0);
  EXPECT_THAT(arguments.out, testing::MatchesRegex("sea\t[01]\\.[0-9]+\nsun\t[01]\\.[0-9]+\n"));
  EXPECT_EQ(place_->run("predict run", "colours/test/sea/0.png\ncolours/test/sun/1.png\n").out,
            arguments.out);
}

TEST_F(PredictImages, name_the_likeliest_classes) {
  const std::string words = "predict run colours/test/sea/0.png --set evaluate.top=";
  const std::string one = place_->run(words + "1").out;
  const Outcome two = place_->run(words + "2");
  EXPECT_EQ(two.code, 0) << two.error;
  EXPECT_EQ(two.out.substr(0, one.size() - 1) + "\n", one);
  EXPECT_THAT(two.out, testing::MatchesRegex("sea\t[01]\\.[0-9]+\t(leaf|sun)\t[01]\\.[0-9]+\n"));
  const std::string all = place_->run(words + "5").out;  // there are three
  EXPECT_EQ(std::count(all.begin(), all.end(), '\t'), 5);
  EXPECT_EQ(place_->run("evaluate run --set evaluate.top=2").code, 2);  // figures do not depend on it
}

// Values of 16 bits are brought to 8, and grey becomes three equal colours.
TEST_F(PredictImages, grey_and_16_bits_are_answered_as_8_bits_of_colours) {
  constexpr int kSide = 12;
  const auto value = [](int row, int column) { return static_cast<uint8_t>(row * 20 + column); };
  std::string grey, wide;
  for (int row = 0; row < kSide; ++row) {
    grey += '\0', wide += '\0';
    for (int column = 0; column < kSide; ++column) {
      const char byte = static_cast<char>(value(row, column));
      grey += byte;
      for (int colour = 0; colour < 3; ++colour) wide += byte, wide += byte;  // v 257 is v of 8 bits
    }
  }
  const auto equal = [&](int row, int column) {
    return test::Pixel{value(row, column), value(row, column), value(row, column)};
  };
  test::write_bytes(place_->path("colours.png"), test::plain_png(kSide, kSide, equal));
  test::write_bytes(place_->path("grey.png"), test::png_of_rows(kSide, kSide, 8, 0, grey));
  test::write_bytes(place_->path("wide.png"), test::png_of_rows(kSide, kSide, 16, 2, wide));
  const Outcome outcome = place_->run("predict run colours.png grey.png wide.png");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const std::string answer = outcome.out.substr(0, outcome.out.find('\n') + 1);
  EXPECT_THAT(answer, testing::MatchesRegex("(leaf|sea|sun)\t[01]\\.[0-9]+\n"));
  EXPECT_EQ(outcome.out, answer + answer + answer);
}

TEST_F(PredictImages, jpegs_are_answered_but_for_those_of_inks) {
  for (const std::string name : {"jpeg", "jpeg_grey", "jpeg_cmyk"})  // behind a byte of the fuzz target
    test::write_bytes(place_->path(name), place_->read(QUATRAIN_PICTURES + ("/" + name)).substr(1));
  const Outcome outcome = place_->run("predict run jpeg jpeg_grey jpeg_cmyk");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              testing::MatchesRegex("(leaf|sea|sun)\t[01]\\.[0-9]+\n(leaf|sea|sun)\t[01]\\.[0-9]+\n\n"));
  EXPECT_THAT(outcome.error,
              HasSubstr("quatrain: argument 3: image: the JPEG file jpeg_cmyk is stored in CMYK"));
}

TEST_F(PredictImages, a_bad_file_leaves_the_others_their_answers) {
  test::write_bytes(place_->path("cut.png"), test::colour_png(0, 1).substr(0, 200));
  const std::string files = "colours/test/sea/0.png nowhere.png cut.png colours/test/sun/1.png";
  const Outcome outcome = place_->run("predict run " + files);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("sea\t[01]\\.[0-9]+\n\n\nsun\t[01]\\.[0-9]+\n"));
  EXPECT_THAT(
      outcome.error,
      HasSubstr("quatrain: argument 2: the picture \"nowhere.png\" cannot be read: there is no such file\n"));
  EXPECT_THAT(outcome.error, HasSubstr("quatrain: argument 3: image: the PNG file cut.png is "));
  EXPECT_THAT(outcome.error, HasSubstr("quatrain: 2 of 4 lines have no answer"));
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 3);

  std::string lines = files;
  std::replace(lines.begin(), lines.end(), ' ', '\n');
  const Outcome input = place_->run("predict run", lines);
  EXPECT_EQ(input.code, 1);
  EXPECT_EQ(input.out, outcome.out);
  EXPECT_THAT(input.error, HasSubstr("standard input, line 3: "));
}

TEST_F(PredictImages, evaluate_shows_each_class) {
  const Outcome outcome = place_->run("evaluate run --set evaluate.flip=true");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  for (const char* name : {"class=leaf", "class=sea", "class=sun"}) EXPECT_THAT(outcome.out, HasSubstr(name));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("among the first five")));  // of three there are none
  EXPECT_EQ(place_->run("check run").code, 0);
}

}  // namespace
}  // namespace quatrain::cli
