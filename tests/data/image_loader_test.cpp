#include "quatrain/data/image_loader.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ImageSet numbered_set(int64_t count, int64_t height = 6, int64_t width = 6) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(uint64_t{5});
  return {torch::randint(0, 256, {count, 3, height, width}, generator, torch::kUInt8), torch::arange(count)};
}

/// A set of one picture, many times.
ImageSet copies(const at::Tensor& picture, int64_t count) {
  return {picture.unsqueeze(0).expand({count, 3, picture.size(1), picture.size(2)}).contiguous(),
          torch::zeros({count}, torch::kInt64)};
}

TEST(ImageInputTest, Normalises) {
  const auto images = numbered_set(7, 4, 5).images;
  const auto scale = measure_pixels(images);
  const auto pixels = images.to(torch::kDouble) / 255;
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(scale.mean[static_cast<size_t>(c)], pixels.select(1, c).mean().item<double>(), 1e-12);
    EXPECT_NEAR(scale.deviation[static_cast<size_t>(c)],
                pixels.select(1, c).std(/*unbiased=*/false).item<double>(), 1e-12);
  }
  const auto input = to_input(images, scale, ColourMode::rgb);
  EXPECT_EQ(input.sizes(), images.sizes());
  EXPECT_EQ(input.scalar_type(), torch::kFloat);
  EXPECT_TRUE(input.mean({0, 2, 3}).abs().lt(1e-5).all().item<bool>());
  EXPECT_TRUE((input.std({0, 2, 3}, /*unbiased=*/false) - 1).abs().lt(1e-5).all().item<bool>());
  EXPECT_EQ(measure_pixels(torch::full({1, 3, 2, 2}, 9, torch::kUInt8)).deviation[0], 1);
  EXPECT_THAT(error_of([] {
                measure_pixels(torch::empty({0, 3, 2, 2}, torch::kUInt8));
              }),
              HasSubstr("got none"));
  EXPECT_THAT(error_of([&] {
                to_input(images, {{0, 0, 0}, {1, 0, 1}}, ColourMode::rgb);
              }),
              HasSubstr("deviations above 0, got 0 and 0 for channel 1"));
  EXPECT_THAT(error_of([&] { to_input(images.to(torch::kFloat), {}, ColourMode::rgb); }),
              HasSubstr("of uint8"));
}

TEST(ImageInputTest, EachModeHasItsChannels) {
  const auto images = numbered_set(2).images;
  const PixelScale scale{{.5, .4, .3}, {.2, .3, .4}};
  const auto rgb = to_input(images, scale, ColourMode::rgb);
  const auto zero = torch::zeros_like(rgb.narrow(1, 0, 1));
  const auto grey =
      (.299 * rgb.select(1, 0) + .587 * rgb.select(1, 1) + .114 * rgb.select(1, 2)).unsqueeze(1);
  EXPECT_TRUE(to_input(images, scale, ColourMode::zero_first).equal(torch::cat({zero, rgb}, 1)));
  EXPECT_TRUE(to_input(images, scale, ColourMode::zero_last).equal(torch::cat({rgb, zero}, 1)));
  EXPECT_TRUE(torch::allclose(to_input(images, scale, ColourMode::grey_first), torch::cat({grey, rgb}, 1),
                              1e-5, 1e-6));
  for (const auto mode : kColourModes) {
    EXPECT_EQ(parse_colour_mode(name(mode)), mode);
    EXPECT_EQ(to_input(images, scale, mode).size(1), channels(mode));
  }
  EXPECT_THAT(error_of([] { parse_colour_mode("cmyk"); }),
              HasSubstr("must be one of rgb, zero_first, grey_first, zero_last; got 'cmyk'"));
}

TEST(ImageLoaderTest, EveryPictureOccursOnce) {
  const auto set = numbered_set(23);
  ImageLoader loader(set, {.batch_size = 5, .mode = ColourMode::rgb});
  EXPECT_EQ(loader.batches(), 5);
  EXPECT_EQ(loader.examples(), 23);
  std::vector<int64_t> orders[2];
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < loader.batches(); ++i) {
      const auto batch = loader.batch(epoch, i);
      EXPECT_EQ(batch.size(), i < 4 ? 5 : 3);
      const auto places = torch::tensor(batch.indices);
      EXPECT_TRUE(batch.labels.equal(set.labels.index_select(0, places)));
      EXPECT_TRUE(batch.images.equal(to_input(set.images.index_select(0, places), {}, ColourMode::rgb)));
      orders[epoch].insert(orders[epoch].end(), batch.indices.begin(), batch.indices.end());
    }
  EXPECT_NE(orders[0], orders[1]);
  for (auto& order : orders) {
    EXPECT_FALSE(std::ranges::is_sorted(order));
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 23u);
  }
  ImageLoader sorted(set, {.batch_size = 5, .shuffle = false});
  EXPECT_THAT(sorted.batch(3, 4).indices, ElementsAre(20, 21, 22));
}

TEST(ImageLoaderTest, ThreadsChangeNothing) {
  const auto set = numbered_set(40);
  ImageLoaderOptions options{
      .batch_size = 7, .seed = 9, .augmentation = ImageAugmentation{.padding = 2, .cutout = 3, .part = .5}};
  options.threads = 0;
  ImageLoader alone(set, options);
  for (const int64_t threads : {1, 2, 5}) {
    options.threads = threads;
    options.ahead = threads + 1;
    ImageLoader loader(set, options);
    // In turn, again, back, and on from somewhere, as a run that is resumed.
    for (const auto& [epoch, index] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 0}, {0, 1}, {0, 2}, {0, 2}, {0, 0}, {4, 4}, {4, 5}, {5, 0}, {5, 1}, {0, 3}, {7, 5}}) {
      const auto expected = alone.batch(epoch, index), found = loader.batch(epoch, index);
      EXPECT_EQ(found.indices, expected.indices);
      EXPECT_TRUE(found.images.equal(expected.images)) << threads << " threads, " << epoch << ", " << index;
      EXPECT_TRUE(found.labels.equal(expected.labels));
    }
  }
}

TEST(ImageLoaderTest, BatchesAreMadeAhead) {
  // What is made for the next batch is of the set as it was before the call: what comes ahead does not see
  // this.
  const auto set = numbered_set(4);
  ImageLoader loader(set,
                     {.batch_size = 1, .shuffle = false, .mode = ColourMode::rgb, .threads = 1, .ahead = 1});
  const auto before = to_input(set.images, {}, ColourMode::rgb);
  loader.batch(0, 0);
  for (int tries = 0; tries < 200; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  set.images.zero_();
  EXPECT_TRUE(loader.batch(0, 1).images.equal(before.narrow(0, 1, 1)));
  EXPECT_TRUE(loader.batch(0, 3).images.eq(0).all().item<bool>());
}

TEST(ImageLoaderTest, WhatBecomesOfAPictureIsAFunctionOfItsPlace) {
  const auto set = numbered_set(12);
  const ImageLoaderOptions options{.batch_size = 4, .augmentation = ImageAugmentation{.padding = 3}};
  ImageLoaderOptions other = options;
  other.batch_size = 5;
  ImageLoader fours(set, options), fives(set, other);
  std::map<int64_t, at::Tensor> found;
  for (int64_t i = 0; i < fours.batches(); ++i) {
    const auto batch = fours.batch(2, i);
    for (int64_t row = 0; row < batch.size(); ++row)
      found[batch.indices[static_cast<size_t>(row)]] = batch.images[row];
  }
  for (int64_t i = 0; i < fives.batches(); ++i) {
    const auto batch = fives.batch(2, i);
    for (int64_t row = 0; row < batch.size(); ++row)
      EXPECT_TRUE(batch.images[row].equal(found.at(batch.indices[static_cast<size_t>(row)])));
  }
  other = options;
  other.seed = 1;
  other.shuffle = false;
  ImageLoader reseeded(set, other);
  const auto first = reseeded.batch(2, 0), later = reseeded.batch(3, 0);
  EXPECT_FALSE(first.images.equal(later.images));
  EXPECT_FALSE(first.images.equal(torch::stack({found.at(0), found.at(1), found.at(2), found.at(3)})));
}

/// All that augmentation makes of one picture.
at::Tensor variants(const at::Tensor& picture, const ImageAugmentation& augmentation, int64_t count,
                    const PixelScale& scale = {}) {
  ImageLoader loader(copies(picture, count), {.batch_size = count,
                                              .augmentation = augmentation,
                                              .scale = scale,
                                              .mode = ColourMode::rgb,
                                              .threads = 0});
  return loader.batch(0, 0).images;
}

bool contains(const at::Tensor& all, const at::Tensor& one) {
  return (all == one).flatten(1).all(1).any().item<bool>();
}

TEST(ImageAugmentationTest, MovesByThePadding) {
  const auto picture = numbered_set(1).images[0];
  const PixelScale scale{{.5, .4, .3}, {.2, .3, .4}};
  const auto all = variants(picture, {.padding = 1, .flip = false}, 400, scale);
  const auto padded =
      torch::constant_pad_nd(to_input(picture.unsqueeze(0), scale, ColourMode::rgb), {1, 1, 1, 1});
  int64_t crops = 0;
  for (int64_t down = 0; down <= 2; ++down)
    for (int64_t right = 0; right <= 2; ++right) {
      const auto crop = padded.narrow(2, down, 6).narrow(3, right, 6);
      EXPECT_TRUE(contains(all, crop)) << down << ", " << right;
      crops += (all == crop).flatten(1).all(1).sum().item<int64_t>();
    }
  EXPECT_EQ(crops, 400);  // and nothing else
}

TEST(ImageAugmentationTest, FlipsHalfOfThem) {
  const auto picture = numbered_set(1, 4, 5).images[0];
  const auto whole = to_input(picture.unsqueeze(0), {}, ColourMode::rgb)[0];
  const auto all = variants(picture, {.padding = 0}, 400);
  const auto flipped = (all == whole.flip({2})).flatten(1).all(1).sum().item<int64_t>();
  EXPECT_EQ((all == whole).flatten(1).all(1).sum().item<int64_t>() + flipped, 400);
  EXPECT_NEAR(static_cast<double>(flipped), 200, 50);
}

TEST(ImageAugmentationTest, CutsASquareOut) {
  const auto picture = torch::full({3, 6, 6}, 255, torch::kUInt8);
  const auto all = variants(picture, {.padding = 0, .flip = false, .cutout = 3}, 600);
  std::set<int64_t> sizes;
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t i = 0; i < all.size(0); ++i) {
    const auto hidden = all[i][0].eq(0).nonzero();
    EXPECT_TRUE(all[i][0].equal(all[i][1]) && all[i][0].equal(all[i][2]));
    const auto low = std::get<0>(hidden.min(0)), high = std::get<0>(hidden.max(0));
    const auto extent = high - low + 1;
    EXPECT_EQ(extent.prod().item<int64_t>(), hidden.size(0));  // a rectangle
    sizes.insert(hidden.size(0));
    places.emplace(low[0].item<int64_t>(), low[1].item<int64_t>());
  }
  EXPECT_THAT(sizes, ElementsAre(4, 6, 9));  // cut off at one border, at two, or not
  EXPECT_EQ(places.size(), 25u);  // 36 middles; those at the upper and left border have the same corner
}

// A picture whose red is the row and whose green is the column shows where each pixel comes from.
TEST(ImageAugmentationTest, EnlargesAPart) {
  constexpr int64_t kHeight = 40, kWidth = 60, kCount = 500;
  const auto rows = torch::arange(kHeight).to(torch::kUInt8).unsqueeze(1).expand({kHeight, kWidth}),
             columns = torch::arange(kWidth).to(torch::kUInt8).expand({kHeight, kWidth});
  const auto picture = torch::stack({rows, columns, torch::zeros_like(rows)});
  const auto all = variants(picture, {.padding = 0, .flip = false, .part = .25}, kCount) * 255;
  double least = 1, most = 0, flattest = 9, steepest = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const at::Tensor row = all[i][0], column = all[i][1];
    // Each depends on its own axis alone, rises evenly away from the borders, and stays inside.
    ASSERT_TRUE(row.allclose(row.select(1, 0).unsqueeze(1).expand_as(row)));
    ASSERT_TRUE(column.allclose(column.select(0, 0).expand_as(column)));
    ASSERT_GE(all[i].min().item<float>(), 0);
    ASSERT_LE(row.max().item<float>(), kHeight - 1);
    ASSERT_LE(column.max().item<float>(), kWidth - 1);
    const auto step = [](const at::Tensor& line) {
      const at::Tensor inner = line.narrow(0, line.size(0) / 4, line.size(0) / 2).diff();
      EXPECT_TRUE(inner.allclose(inner.mean().expand_as(inner), 1e-3, 1e-3));
      return inner.mean().item<double>();
    };
    const double high = step(row.select(1, 0)), wide = step(column[0]);
    least = std::min(least, high * wide), most = std::max(most, high * wide);
    flattest = std::min(flattest, wide / high), steepest = std::max(steepest, wide / high);
  }
  EXPECT_NEAR(least, .25, .02);
  EXPECT_GT(most, .9);
  EXPECT_LE(most, 1.0001);
  EXPECT_NEAR(flattest, .75, .02);
  EXPECT_NEAR(steepest, 4. / 3, .03);
}

TEST(ImageAugmentationTest, WhatIsHiddenIsZeroInAllChannels) {
  ImageLoader loader(copies(torch::full({3, 6, 6}, 255, torch::kUInt8), 50),
                     {.augmentation = ImageAugmentation{.padding = 2, .cutout = 2},
                      .scale = {{.5, .4, .3}, {.2, .3, .4}},
                      .mode = ColourMode::grey_first});
  const auto images = loader.batch(0, 0).images;
  const auto zero = images.eq(0);
  EXPECT_TRUE(zero.any().item<bool>());
  EXPECT_TRUE(zero.any(1).equal(zero.all(1)));
}

TEST(ImageLoaderTest, RefusesWhatItCannotDo) {
  const auto set = numbered_set(3);
  const auto error = [&](const ImageLoaderOptions& options) {
    return error_of([&] { ImageLoader loader(set, options); });
  };
  EXPECT_THAT(error({.batch_size = 0}), HasSubstr("batch_size must be at least 1, got 0"));
  EXPECT_THAT(error({.threads = -1}), HasSubstr("threads must be from 0 to 256, got -1"));
  EXPECT_THAT(error({.ahead = 0}), HasSubstr("ahead must be at least 1, got 0"));
  EXPECT_THAT(error({.augmentation = ImageAugmentation{.padding = 6}}),
              HasSubstr("padding must be from 0 to 5"));
  EXPECT_THAT(error({.augmentation = ImageAugmentation{.cutout = 7}}), HasSubstr("got 4 and 7"));
  EXPECT_THAT(error({.augmentation = ImageAugmentation{.part = 0}}), HasSubstr("part must be above 0"));
  EXPECT_THAT(error_of([] { ImageLoader loader(numbered_set(0)); }), HasSubstr("at least one picture"));
  EXPECT_THAT(error_of([&] {
                ImageLoader loader({set.images, set.labels.narrow(0, 0, 2)});
              }),
              HasSubstr("labels must be (3) of int64"));
  ImageLoader loader(set);
  EXPECT_THAT(error_of([&] { loader.batch(0, 1); }), HasSubstr("index must be from 0 to 0, got 1"));
  EXPECT_THAT(error_of([&] { loader.batch(-1, 0); }), HasSubstr("epoch must not be negative"));
}

}  // namespace
}  // namespace quatrain::data
