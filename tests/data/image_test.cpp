#include "quatrain/data/image.h"

#include <torch/types.h>
#include <zlib.h>

#include <cmath>

#include "image_files.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

at::Tensor decode(std::string_view bytes) {
  return decode_image(bytes, "a picture");
}

std::string decode_error(std::string_view bytes) {
  const auto message = error_of([&] { decode(bytes); });
  EXPECT_THAT(message, HasSubstr("a picture"));
  return message;
}

int64_t distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(torch::kInt64) - b.to(torch::kInt64)).abs().max().item<int64_t>();
}

/// Four blocks of 16 x 16 in two rows, or more columns: what JPEG keeps.
at::Tensor blocks(int64_t rows, int64_t columns) {
  return random_picture(rows, columns, 3).repeat_interleave(16, 1).repeat_interleave(16, 2);
}

TEST(ImageTest, ReadsPng) {
  const auto picture = random_picture(5, 7);
  const auto read = decode(png_file(picture));
  EXPECT_TRUE(read.equal(picture));
  EXPECT_TRUE(read.is_contiguous());
  EXPECT_TRUE(decode(png_file(picture, PNG_COLOR_TYPE_RGB, 8, /*interlaced=*/true)).equal(picture));
  EXPECT_TRUE(decode(png_file(random_picture(1, 1))).equal(random_picture(1, 1)));
}

TEST(ImageTest, GreyIsRepeated) {
  const auto grey = random_picture(20, 18).narrow(0, 0, 1);
  EXPECT_TRUE(decode(png_file(grey, PNG_COLOR_TYPE_GRAY)).equal(grey.expand({3, 20, 18})));
  const auto blocks_of_grey = blocks(2, 3).narrow(0, 0, 1);
  const auto read = decode(jpeg_file(blocks_of_grey));
  EXPECT_LE(distance(read, blocks_of_grey.expand_as(read)), 1);
  EXPECT_TRUE(read[0].equal(read[1]) && read[0].equal(read[2]));
}

TEST(ImageTest, SixteenBitsBecomeEight) {
  const auto picture = random_picture(6, 6);
  EXPECT_TRUE(decode(png_file(picture.to(torch::kInt32) * 257, PNG_COLOR_TYPE_RGB, 16)).equal(picture));
  // libpng's simple reader is wrong about those that are interlaced; rows and columns of every pass, and
  // less.
  for (const int64_t side : {1, 2, 5, 9, 37}) {
    const auto shapes = std::pair(random_picture(side, side + 3), random_picture(side + 6, side));
    for (const at::Tensor& plain : {shapes.first, shapes.second}) {
      const at::Tensor wide = plain.to(torch::kInt32) * 257;
      const at::Tensor grey = wide.narrow(0, 0, 1), alpha = torch::cat({wide, wide.narrow(0, 0, 1)});
      for (const auto& [picture, type] :
           {std::pair(wide, PNG_COLOR_TYPE_RGB), std::pair(grey, PNG_COLOR_TYPE_GRAY),
            std::pair(alpha, PNG_COLOR_TYPE_RGB_ALPHA)})
        EXPECT_TRUE(decode(png_file(picture, type, 16, /*interlaced=*/true))
                        .equal(decode(png_file(picture, type, 16))))
            << side << ", type " << type;
    }
  }
  // Chunks that no pixel depends on are not read, wrong or not: a text without a keyword.
  std::string with_text =
      png_file(random_picture(9, 9).to(torch::kInt32) * 257, PNG_COLOR_TYPE_RGB, 16, true);
  std::string chunk("\0\0\0\2tEXt\0x", 10);
  const auto sum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(chunk.data()) + 4, 6));
  for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(sum >> shift);
  with_text.insert(33, chunk);  // behind the header
  EXPECT_TRUE(decode(with_text).equal(random_picture(9, 9)));
  const std::string whole =
      png_file(random_picture(30, 30).to(torch::kInt32) * 257, PNG_COLOR_TYPE_RGB, 16, true);
  for (const size_t cut : {whole.size() / 2, whole.size() - 12})
    EXPECT_THAT(decode_error(std::string_view(whole).substr(0, cut)), HasSubstr("is damaged or cut off ("));
  std::string changed = whole;
  changed[whole.size() / 2] ^= 0x40;
  EXPECT_THAT(decode_error(changed), HasSubstr("is damaged or cut off ("));
  const auto near = torch::full({1, 1, 1}, 100 * 257 + 100, torch::kInt32);
  EXPECT_EQ(decode(png_file(near, PNG_COLOR_TYPE_GRAY, 16)).max().item<int64_t>(), 100);
}

TEST(ImageTest, WhatIsTransparentIsBlack) {
  auto picture = torch::full({4, 1, 3}, 200, torch::kUInt8);
  picture[3] = torch::tensor({0, 128, 255}, torch::kUInt8).view({1, 3});
  const auto read = decode(png_file(picture, PNG_COLOR_TYPE_RGB_ALPHA))[1][0];
  EXPECT_EQ(read[0].item<int64_t>(), 0);
  EXPECT_EQ(read[2].item<int64_t>(), 200);
  // Half of the light is more than half of the number, by sRGB's curve.
  EXPECT_NEAR(read[1].item<double>(), 200 * std::pow(128 / 255.0, 1 / 2.2), 3);
  const auto grey = torch::tensor({90, 0}, torch::kUInt8).view({2, 1, 1});
  EXPECT_EQ(decode(png_file(grey, PNG_COLOR_TYPE_GRAY_ALPHA)).max().item<int64_t>(), 0);
}

TEST(ImageTest, ReadsJpeg) {
  const auto picture = blocks(2, 3);
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const auto read = decode(jpeg_file(picture, flags));
    EXPECT_EQ(read.sizes(), picture.sizes());
    EXPECT_LE(distance(read, picture), 3);
  }
}

TEST(ImageTest, TurnsAsTheOrientationSays) {
  const auto picture = blocks(2, 3);
  const auto stored = jpeg_file(picture);
  const auto upright = decode(stored);
  // By the place of the stored first row and first column: TIFF 6, section 8.
  const auto t = upright.transpose(1, 2);
  const at::Tensor expected[] = {upright, upright.flip({2}), upright.flip({1, 2}), upright.flip({1}),
                                 t,       t.flip({2}),       t.flip({1, 2}),       t.flip({1})};
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool low_first : {true, false})
      EXPECT_TRUE(decode(with_orientation(stored, orientation, low_first)).equal(expected[orientation - 1]))
          << orientation;
  // 6: the first row is on the right, so that the stored lower left corner comes to the upper left.
  // A marker may stand behind bytes that fill up.
  const std::string filled = with_orientation(stored, 6, true).insert(2, "\xff\xff");
  EXPECT_TRUE(decode(filled).equal(expected[5]));
  EXPECT_TRUE(decode(with_orientation(stored, 6, true))
                  .select(1, 0)
                  .select(1, 0)
                  .equal(upright.select(1, -1).select(1, 0)));
  for (const int unknown : {0, 9})
    EXPECT_TRUE(decode(with_orientation(stored, unknown, true)).equal(upright));
}

TEST(ImageTest, ADamagedOrientationIsNone) {
  const auto stored = jpeg_file(blocks(1, 2));
  const auto whole = with_orientation(stored, 6, false);
  ASSERT_FALSE(decode(whole).equal(decode(stored)));
  const size_t tiff = 12, exif_end = whole.size() - stored.size() + 2;
  for (size_t byte = tiff; byte < exif_end; ++byte) {
    auto damaged = whole;
    damaged[byte] = '\xff';
    EXPECT_EQ(decode(damaged).numel(), decode(stored).numel()) << byte;
  }
}

TEST(ImageTest, RefusesCmyk) {
  EXPECT_THAT(decode_error(jpeg_file(torch::zeros({4, 16, 16}, torch::kUInt8))),
              AllOf(HasSubstr("CMYK"), HasSubstr("-colorspace sRGB")));
}

TEST(ImageTest, RefusesWhatIsCutOff) {
  const auto png = png_file(random_picture(20, 20));
  for (size_t size = 1; size < png.size(); ++size)
    EXPECT_THAT(decode_error(std::string_view(png).substr(0, size)),
                AnyOf(HasSubstr("damaged or cut off"), HasSubstr("begins with")))
        << size;
  EXPECT_THAT(decode_error(std::string_view(png).substr(0, png.size() - 12)), HasSubstr("no IEND chunk"));
  EXPECT_TRUE(decode(png + "more").equal(decode(png)));
  const auto jpeg = jpeg_file(blocks(2, 2));
  for (size_t size = 1; size < jpeg.size(); ++size)
    EXPECT_THAT(decode_error(std::string_view(jpeg).substr(0, size)),
                AnyOf(HasSubstr("damaged, cut off"), HasSubstr("begins with")))
        << size;
}

TEST(ImageTest, RefusesDamagedPixels) {
  auto png = png_file(random_picture(20, 20));
  png[png.size() / 2] = static_cast<char>(png[png.size() / 2] + 1);
  EXPECT_THAT(decode_error(png), HasSubstr("damaged or cut off"));
}

TEST(ImageTest, RefusesHugeSizesBeforeItTakesMemory) {
  // A PNG's header, with the checksum that belongs to it, and a beginning of pixels.
  const auto png_of = [](uint32_t side) {
    auto png = png_file(torch::zeros({1, 1, 1}, torch::kUInt8), PNG_COLOR_TYPE_GRAY);
    const auto bytes = [](uint32_t number) {
      return std::string{static_cast<char>(number >> 24), static_cast<char>(number >> 16),
                         static_cast<char>(number >> 8), static_cast<char>(number)};
    };
    png.replace(16, 8, bytes(side) + bytes(side));
    return png.replace(
        29, 4, bytes(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data()) + 12, 17))));
  };
  EXPECT_THAT(decode_error(png_of(100000)),
              HasSubstr("tells of 100000 x 100000 pixels; there may be 67108864"));
  EXPECT_THAT(decode_error(png_of(3000000000)), HasSubstr("tells of 3000000000 x 3000000000 pixels"));

  auto jpeg = jpeg_file(blocks(1, 1));
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");  // the most that the decoder takes
  EXPECT_THAT(decode_error(jpeg), HasSubstr("tells of 65500 x 65500 pixels"));
  EXPECT_THAT(error_of([&] { decode_image(png_file(random_picture(10, 10)), "b", 99); }),
              HasSubstr("tells of 10 x 10 pixels; there may be 99"));
}

TEST(ImageTest, SaysWhatIsNoPicture) {
  EXPECT_THAT(decode_error("GIF89a and more \xff"),
              AllOf(HasSubstr(R"(begins with "GIF89a and m")"), HasSubstr("magick FILE FILE.png")));
  EXPECT_THAT(decode_error(""), HasSubstr("is empty"));
  EXPECT_THAT(decode_error("\xff\xd8\xff"), HasSubstr("damaged, cut off"));
}

class ImageFileTest : public DataTest {};

TEST_F(ImageFileTest, ReadsFiles) {
  const auto picture = random_picture(4, 4);
  EXPECT_TRUE(read_image(write("a.jpg", png_file(picture))).equal(picture));  // the name decides nothing
  EXPECT_THAT(error_of([&] { read_image(folder_ / "none.png"); }),
              AllOf(HasSubstr("none.png"), HasSubstr("there is no such file")));
  EXPECT_THAT(error_of([&] { read_image(folder_); }), HasSubstr("it is a folder"));
}

TEST(FitImageTest, TheShortSideDecides) {
  // Thirds of three colours; the middle one is what is kept.
  auto wide = torch::zeros({3, 10, 30}, torch::kUInt8);
  wide.narrow(2, 10, 10).fill_(200);
  EXPECT_TRUE(fit_image(wide, 10).eq(200).all().item<bool>());
  EXPECT_TRUE(fit_image(wide.transpose(1, 2), 10).eq(200).all().item<bool>());
  EXPECT_EQ(fit_image(wide, 4).sizes(), (std::vector<int64_t>{3, 4, 4}));
  EXPECT_EQ(fit_image(random_picture(1, 1), 32).sizes(), (std::vector<int64_t>{3, 32, 32}));
  const auto same = random_picture(8, 8);
  EXPECT_TRUE(fit_image(same, 8).equal(same));
}

TEST(FitImageTest, InterpolatesWithoutAliases) {
  // Lines of one pixel become grey, neither black nor white.
  auto lines = torch::zeros({3, 64, 64}, torch::kUInt8);
  lines.slice(2, 0, 64, 2).fill_(255);
  const auto fitted = fit_image(lines, 16).narrow(2, 2, 12).to(torch::kDouble);
  EXPECT_NEAR(fitted.min().item<double>(), 127.5, 12);
  EXPECT_NEAR(fitted.max().item<double>(), 127.5, 12);
  const auto picture = random_picture(37, 61);
  const auto expected =
      at::_upsample_bilinear2d_aa(picture.to(torch::kDouble).unsqueeze(0), {16, 16 * 61 / 37},
                                  /*align_corners=*/false)[0];
  EXPECT_LE((fit_image(picture, 16).to(torch::kDouble) - expected.narrow(2, (16 * 61 / 37 - 16) / 2, 16))
                .abs()
                .max()
                .item<double>(),
            1.5);
}

TEST(FitImageTest, RefusesWhatIsNoPicture) {
  EXPECT_THAT(error_of([] {
                fit_image(torch::zeros({1, 4, 4}, torch::kUInt8), 4);
              }),
              HasSubstr("must be (3, height, width)"));
  EXPECT_THAT(error_of([] { fit_image(torch::zeros({3, 4, 4}), 4); }), HasSubstr("of uint8"));
  EXPECT_THAT(error_of([] { fit_image(random_picture(4, 4), 0); }), HasSubstr("got 0"));
  EXPECT_THAT(error_of([] { fit_image(random_picture(1, 60000), 40); }),
              StartsWith("image: the picture has 60000 x 1 pixels, which are too narrow to become 40 x 40"));
  EXPECT_THAT(error_of([] { fit_image(random_picture(1, 60000), 40, "a/line.png"); }),
              StartsWith("image: a/line.png has "));
}

}  // namespace
}  // namespace quatrain::data
