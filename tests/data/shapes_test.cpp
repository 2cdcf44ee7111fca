#include "quatrain/data/shapes.h"

#include <torch/types.h>

#include "quatrain/data/image_set.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

TEST(ShapesTest, APictureIsAFunctionOfItsSeedAndNumber) {
  const auto few = generate_shapes({.train = 12, .dev = 10, .test = 10, .seed = 4});
  const auto many = generate_shapes({.train = 30, .dev = 20, .test = 11, .seed = 4});
  EXPECT_EQ(few.train.images.sizes(), (std::vector<int64_t>{12, 3, 32, 32}));
  EXPECT_TRUE(many.train.images.narrow(0, 0, 12).equal(few.train.images));
  EXPECT_TRUE(many.dev.images.narrow(0, 0, 10).equal(few.dev.images));
  EXPECT_TRUE(shape_image({.seed = 4}, 11).equal(few.train.images[11]));
  EXPECT_FALSE(shape_image({.seed = 5}, 11).equal(few.train.images[11]));
  EXPECT_FALSE(few.train.images[0].equal(few.dev.images[0]) || few.dev.images[0].equal(few.test.images[0]));
  EXPECT_THAT(few.dev.labels,
              testing::Truly([](const at::Tensor& labels) { return labels.equal(torch::arange(10)); }));
  EXPECT_EQ(few.classes.size(), 10u);
  EXPECT_TRUE(load_images({.reader = "shapes", .shapes = {.train = 12, .dev = 1, .test = 1, .seed = 4}})
                  .train.images.equal(few.train.images));
  EXPECT_THAT(error_of([] { generate_shapes({.train = 0}); }), HasSubstr("train must be at least 1, got 0"));
  EXPECT_THAT(error_of([] { shape_image({}, -1); }), HasSubstr("got -1"));
}

/// The share of test pictures that least squares on the pixels names rightly.
double linear_accuracy(const ImageSplits& splits) {
  const auto rows = [](const ImageSet& set) {
    const auto pixels = set.images.flatten(1).to(torch::kFloat) / 255 - .5;
    return torch::cat({pixels, torch::ones({set.size(), 1})}, 1);
  };
  const auto x = rows(splits.train);
  const auto wanted = torch::one_hot(splits.train.labels, 10).to(torch::kFloat);
  const auto gram = x.t().matmul(x) + 100 * torch::eye(x.size(1));
  const auto weights = std::get<0>(torch::linalg_solve_ex(gram, x.t().matmul(wanted)));
  return rows(splits.test)
      .matmul(weights)
      .argmax(1)
      .eq(splits.test.labels)
      .to(torch::kFloat)
      .mean()
      .item<double>();
}

TEST(ShapesTest, ALinearClassifierFindsLittle) {
  EXPECT_LT(linear_accuracy(generate_shapes({.train = 6000, .dev = 1, .test = 1000})), .3);
}

}  // namespace
}  // namespace quatrain::data
