#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "data/image_files.h"
#include "data/picture_files.h"
#include "quatrain/data/image_set.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/settings.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kTenShapes = R"toml(
[task]
kind = "images"
[shapes]
train = 60
dev = 20
test = 30
[augmentation]
padding = 0
flip = false
[model]
algebra = "quaternion"
widths = "4 4 4 4"
[train]
rate = 0.01
steps = 8
batch = 10
threads = 1
)toml";

class ImageFiguresTest : public test::FolderTest {};

// Of the pictures of the test set as files: whether the right class is among the five that predict names.
TEST_F(ImageFiguresTest, TopFiveIsTheShareThatPredictNames) {
  const auto data = load_data(parse_recipe(kTenShapes, "ten.toml", "ten", {}));
  const auto task = make_task(data->recipe(), *data);
  const auto result = train::Trainer(*task, data->recipe().train, {.folder = folder_ / "run"}).run();

  data::ImageSource shapes{.reader = "shapes"};
  shapes.shapes = {.train = 60, .dev = 20, .test = 30};
  const data::ImageSplits sets = data::load_images(shapes);
  const auto labels = data::labels_of(sets.test);
  std::vector<std::string> files;
  for (size_t i = 0; i < labels.size(); ++i) {
    files.push_back((folder_ / (std::to_string(i) + ".png")).string());
    test::write_bytes(files.back(), data::png_file(sets.test.images[static_cast<int64_t>(i)]));
  }
  const torch::NoGradGuard no_grad;
  const auto answers = load_run(folder_ / "run", {Setting::parse("evaluate.top=5")})->predict(files);
  int64_t first = 0, among = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string& wanted = sets.classes[static_cast<size_t>(labels[i])];
    std::istringstream words(answers[i]);
    std::vector<std::string> named;
    for (std::string name, share; std::getline(words, name, '\t') && std::getline(words, share, '\t');)
      named.push_back(name);
    ASSERT_EQ(named.size(), 5);
    first += named[0] == wanted, among += std::ranges::count(named, wanted);
  }
  EXPECT_DOUBLE_EQ(result.test.at("top5"), static_cast<double>(among) / 30);
  EXPECT_DOUBLE_EQ(result.test.at("accuracy"), static_cast<double>(first) / 30);
  EXPECT_LT(first, among);
  EXPECT_LT(among, 30);
}

// With a share s of the target spread over all classes, the loss is (1 - s) times that without, plus s times
// the mean over the classes: a straight line.
TEST_F(ImageFiguresTest, TargetsAreSmoothed) {
  const auto loss = [](const std::string& share) {
    torch::manual_seed(1);
    const auto data = load_data(
        parse_recipe(kTenShapes, "ten.toml", "ten", settings_of_tests({"train.label_smoothing=" + share})));
    return make_task(data->recipe(), *data)->loss(0, 0).loss.item<double>();
  };
  const double hard = loss("0"), half = loss("0.5"), most = loss("0.9");
  EXPECT_GT(std::abs(half - hard), 1e-4);
  EXPECT_NEAR((half - hard) / 0.5, (most - hard) / 0.9, 1e-5);
}

TEST(ImageRecipes, TwinsOfCifar10HaveThePapersNetworks) {
  const std::string file = std::string(QUATRAIN_RECIPES) + "/cifar10.toml";
  const Recipe whole = read_recipe(
      file, settings_of_tests({"task.data=shapes", "shapes.train=20", "shapes.dev=10", "shapes.test=10"}));
  for (const auto& [twin, count] : std::vector<std::pair<std::string, int64_t>>{{"phm2", 5'594'794},
                                                                                {"phm3", 3'635'914},
                                                                                {"phm4", 2'805'962},
                                                                                {"phydi4", 2'805'970},
                                                                                {"fixup4", 2'796'404}}) {
    const Recipe recipe = twin_recipe(whole, find_twin(whole, twin));
    const auto model = load_data(recipe)->make_model(recipe);
    EXPECT_EQ(nn::parameter_report(model->module()).total, count) << twin;
  }
}

}  // namespace
}  // namespace quatrain::tasks
