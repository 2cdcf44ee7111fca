#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>

#include "data/image_files.h"
#include "data/picture_files.h"
#include "quatrain/ops.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/changed_set.h"
#include "tasks/settings.h"
#include "temporary_folder.h"
#include "threads.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSmallNet = R"toml(
[task]
kind = "images"
side = 12
[shapes]
train = 60
dev = 20
test = 30
[augmentation]
padding = 1
[model]
algebra = "quaternion"
widths = "8 8 8 8"
[train]
optimizer = "sgd"
momentum = 0.9
rate = 0.05
schedule = "constant"
warmup = 0
steps = 12
batch = 9
evaluate_every = 6
threads = 1
)toml";

class ImagesTest : public test::FolderTest {
 protected:
  static Recipe recipe_of(const std::vector<std::string>& settings) {
    return parse_recipe(kSmallNet, "small.toml", "small", settings_of_tests(settings));
  }
  // Of a folder of colours, or what the settings say.
  std::unique_ptr<Data> load(std::vector<std::string> settings, const DataRequest& request = {}) {
    DataRequest asked = request;
    asked.folder = (folder_ / "colours").string();
    settings.insert(settings.begin(), "task.data=folders");
    return load_data(recipe_of(settings), asked);
  }
  train::Result learn(const Data& data, train::RunOptions run) {
    const auto task = make_task(data.recipe(), data);
    return train::Trainer(*task, data.recipe().train, run).run();
  }
  train::Result learn(const std::vector<std::string>& settings) {
    return learn(*load(settings), {.folder = folder_ / "run"});
  }
  std::string error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error_of_load(const std::vector<std::string>& settings) {
    return error_of([&] { load(settings); });
  }
  std::string file(const std::string& name) const { return (folder_ / "colours" / name).string(); }
};

TEST_F(ImagesTest, ColoursAreLearnedAndTold) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  const train::Result result = learn({"train.steps=40"});
  EXPECT_EQ(result.test.at("accuracy"), 1);
  EXPECT_EQ(result.test.at("accuracy/class=sea"), 1);
  EXPECT_EQ(result.test.at("count/class=sea"), 5);
  EXPECT_EQ(result.test.at("count"), 15);
  EXPECT_FALSE(result.test.contains("top5"));
  const auto run = folder_ / "run";
  EXPECT_EQ(text_of(run / "best" / "classes.txt"), "leaf\nsea\nsun\n");
  EXPECT_EQ(text_of(run / "test.confusions.tsv"),
            "class\tanswer\tcount\nleaf\tleaf\t5\nsea\tsea\t5\nsun\tsun\t5\n");
  EXPECT_THAT(
      text_of(run / "test.answers.tsv"),
      testing::AllOf(StartsWith("file\tclass\tanswer\ntest/leaf/0.png\tleaf\tleaf\ntest/leaf/1.png\t"),
                     testing::EndsWith("\ntest/sun/4.png\tsun\tsun\n")));

  const torch::NoGradGuard no_grad;
  const auto model = load_run(run);
  test::write_bytes(folder_ / "wide.png", test::colour_png(2, 99, 70, 31));
  test::write_bytes(folder_ / "tiny.png", test::colour_png(1, 99, 1, 1));
  const auto answers = model->predict({file("test/sea/0.png"), (folder_ / "wide.png").string(),
                                       (folder_ / "tiny.png").string(), file("test/leaf/1.png")});
  EXPECT_THAT(answers, ElementsAre(StartsWith("sea\t"), StartsWith("sun\t"), StartsWith("sea\t"),
                                   StartsWith("leaf\t")));
  for (const auto& answer : answers)
    EXPECT_THAT(answer, testing::ContainsRegex("\t[01]\\.[0-9][0-9][0-9][0-9]$"));

  // The mean over a picture and its mirror image does not tell the two apart.
  const auto mirrored = load_run(run, {Setting::parse("evaluate.flip=true")});
  const at::Tensor picture = data::random_picture(12, 12);
  test::write_bytes(folder_ / "one.png", data::png_file(picture));
  test::write_bytes(folder_ / "two.png", data::png_file(picture.flip(2)));
  const std::vector<std::string> both{(folder_ / "one.png").string(), (folder_ / "two.png").string()};
  const auto same = mirrored->predict(both);
  EXPECT_EQ(same[0], same[1]);
  const auto straight = model->predict(both);
  EXPECT_NE(straight[0], straight[1]);
}

TEST_F(ImagesTest, ALearnedAlgebrasFactorsAreLoadedWithItsRun) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  const auto train = [&](const char* steps, const char* run) {
    learn(*load({steps, "train.evaluate_every=3", "model.algebra=phm(4)", "model.widths=64 64 64 64"}),
          {.folder = folder_ / run, .existing = train::Existing::resume});
  };
  train("train.steps=6", "run"), train("train.steps=3", "parts"), train("train.steps=6", "parts");
  for (const std::string name : {"best/structure", "last/structure", "last/model"})
    EXPECT_EQ(text_of(folder_ / "run" / (name + ".safetensors")),
              text_of(folder_ / "parts" / (name + ".safetensors")));
  const torch::NoGradGuard no_grad;
  std::vector<double> shares;  // behind "sea", "sun" or "leaf" and a tab
  for (const bool with : {true, false}) {
    const auto model = load_run(folder_ / "run");
    int held = 0;
    for (const auto& item : model->module().named_parameters())
      if (held += ops::structure_report(item.value()).rank > 0; !with)
        ops::set_structure_state(item.value(), {});
    EXPECT_GE(held, 5);
    shares.push_back(std::stod(model->predict({file("test/sea/0.png")})[0].substr(4)));
  }
  EXPECT_NEAR(shares[0], shares[1], 1e-3);
}

TEST_F(ImagesTest, ShapesAreFitted) {
  const auto data = load_data(
      recipe_of({"augmentation.padding=0", "augmentation.flip=false", "train.steps=60", "train.batch=20",
                 "model.residual=phydi", "train.evaluate_every=60", "model.widths=16 16 16 16"}));
  const auto task = make_task(data->recipe(), *data);
  const train::Result result = train::Trainer(*task, data->recipe().train, {.folder = folder_ / "run"}).run();
  EXPECT_EQ(result.facts.at("classes"), 10);
  EXPECT_GE(result.test.at("top5"), result.test.at("accuracy"));
  const torch::NoGradGuard no_grad;
  task->model().eval();
  EXPECT_GT(task->evaluate("train", {}).figures.at("accuracy"), 0.9);
}

TEST_F(ImagesTest, NormsMayWhiten) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  const auto result = learn({"train.steps=40", "model.norm=whitening", "model.residual=phydi"});
  EXPECT_EQ(result.test.at("accuracy"), 1);
  const auto model = load_run(folder_ / "run");
  EXPECT_TRUE(model->module().named_buffers().contains("stem_norm.running_covariance"));
}

TEST_F(ImagesTest, ResumesBitForBitWithinAnEpoch) {
  const test::Threads threads(2);
  for (const char* algebra : {"quaternion", "phm(2)", "real"}) {
    const auto data =
        load_data(recipe_of({std::string("model.algebra=") + algebra, "augmentation.cutout=6"}));
    const auto straight = learn(*data, {.folder = folder_ / "whole"});
    std::atomic<bool> stop = false;
    train::RunOptions half{.folder = folder_ / "half", .stop = &stop};
    half.on_progress = [&](const train::Progress& progress) { stop = progress.step >= 5; };
    EXPECT_FALSE(learn(*data, half).finished);
    const auto resumed = learn(*data, {.folder = folder_ / "half", .existing = train::Existing::resume});
    EXPECT_EQ(straight.test, resumed.test);
    for (const char* name : {"best/model.safetensors", "last/training.safetensors", "test.confusions.tsv"})
      EXPECT_EQ(text_of(folder_ / "whole" / name), text_of(folder_ / "half" / name))
          << algebra << " " << name;
    fs::remove_all(folder_ / "whole");
    fs::remove_all(folder_ / "half");
  }
}

TEST_F(ImagesTest, BatchesAreMadeByAsManyThreadsAsTheRunHas) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  const auto running = [] {
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  };
  const auto data = load({});
  const auto made_with = [&](int count) {
    const test::Threads threads(count);
    make_task(data->recipe(), *data);  // those of torch, which stay
    const auto before = running();
    const auto task = make_task(data->recipe(), *data);
    return running() - before;
  };
  EXPECT_EQ(made_with(3), 3);
  EXPECT_EQ(made_with(1), 1);
  EXPECT_EQ(made_with(20), 8);
}

TEST_F(ImagesTest, OtherPicturesAreRefusedAndNamed) {
  test::write_colours(folder_ / "colours", 4, 2, 2);
  learn(*load({"train.steps=1"}), {.folder = folder_ / "run"});
  const auto refusal = [&](const std::string& settings = "train.steps=2") {
    return error_of(
        [&] { learn(*load({settings}), {.folder = folder_ / "run", .existing = train::Existing::resume}); });
  };
  for (const std::string set : {"train", "dev", "test"}) {
    const std::string one = file(set + "/sea/1.png"), before = text_of(one);
    test::write_bytes(one, test::colour_png(1, 77));
    EXPECT_THAT(refusal(), HasSubstr(set + ".pictures.checksum differs"));
    EXPECT_THAT(changed_set(folder_ / "run", set), testing::ElementsAre(set + ".pictures"));
    test::write_bytes(one, before);
    EXPECT_THAT(changed_set(folder_ / "run", set), testing::IsEmpty());
  }
  fs::rename(file("train/leaf"), file("train/tree"));
  for (const std::string set : {"dev", "test"}) fs::rename(file(set + "/leaf"), file(set + "/tree"));
  EXPECT_THAT(refusal(), HasSubstr("pictures.checksum differs"));

  // Nor are they scored as if their classes were the run's.
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  EXPECT_THAT(error_of([&] { load({}, {.split = "test", .model = model.get()}); }),
              testing::AllOf(HasSubstr("(sea, sun, tree)"), HasSubstr("the run's (leaf, sea, sun)")));
}

TEST_F(ImagesTest, ATestSetIsScoredWithoutATrainingSet) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  const double accuracy = learn({}).test.at("accuracy");
  const std::vector<std::string> named{"task.classes=a b c"};
  learn(*load(named), {.folder = folder_ / "named"});
  for (const char* set : {"train", "dev"}) fs::remove_all(folder_ / "colours" / set);
  const torch::NoGradGuard no_grad;
  const auto accuracy_of = [&](const char* run, const std::vector<std::string>& settings) {
    const std::shared_ptr<Model> model = load_run(folder_ / run);
    const auto data = load(settings, {.split = "test", .model = model.get()});
    return data->make_task(model)->evaluate("test", {}).figures.at("accuracy");
  };
  EXPECT_EQ(accuracy_of("run", {}), accuracy);
  // Folders are to be called as the model calls its classes.
  EXPECT_THAT(error_of([&] { accuracy_of("named", named); }),
              HasSubstr("test/leaf is a class that the model has not (a, b, c)"));
  for (const auto& [from, to] : {std::pair{"leaf", "a"}, {"sea", "b"}, {"sun", "c"}})
    fs::rename(folder_ / "colours/test" / from, folder_ / "colours/test" / to);
  EXPECT_EQ(accuracy_of("named", named), accuracy);
}

// Nor does it matter what the others' pictures hold, and how many there are is known without reading them.
TEST_F(ImagesTest, PicturesOfOtherSetsMayBeDamaged) {
  test::write_colours(folder_ / "colours", 12, 4, 0);
  const std::vector<std::string> divided{"task.test_share=0.3"};
  const double accuracy = learn(divided).test.at("accuracy");
  const std::string scored = text_of(folder_ / "run" / "test.answers.tsv");
  {
    const torch::NoGradGuard no_grad;
    const std::shared_ptr<Model> scoring = load_run(folder_ / "run");
    const auto dev = load(divided, {.split = "dev", .model = scoring.get()});
    EXPECT_TRUE(dev->make_task(scoring)->evaluate("dev", {}).files.contains("dev.answers.tsv"));
  }
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "colours"))
    if (const std::string name = entry.path().lexically_relative(folder_ / "colours").string();
        entry.is_regular_file() && scored.find("\n" + name + "\t") == scored.npos) {
      test::write_bytes(entry.path(), "no picture");
      ++damaged;
    }
  EXPECT_GT(damaged, 12);
  EXPECT_LT(damaged, 48);
  EXPECT_THAT(error_of_load(divided), HasSubstr("skip_bad leaves such pictures out"));
  const torch::NoGradGuard no_grad;
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  const auto data = load(divided, {.split = "test", .model = model.get()});
  EXPECT_THAT(data->notes(), ElementsAre(StartsWith("the test set is " + std::to_string(48 - damaged) +
                                                    " of the 36 pictures, chosen by their names")));
  EXPECT_EQ(data->make_task(model)->evaluate("test", {}).figures.at("accuracy"), accuracy);
}

// What a colour has is the training set's, also where another set is scored.
TEST_F(ImagesTest, TheScaleComesWithTheWeights) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  const auto first = [](const Data& data) { return data.inputs("test", data.recipe(), 4, 1)[0].tensors[0]; };
  const at::Tensor before = first(*load({}));
  const double accuracy = learn({}).test.at("accuracy");
  for (int i = 0; i < 12; ++i) fs::remove(file("train/sun/" + std::to_string(i) + ".png"));
  test::write_bytes(file("train/sun/0.png"), test::colour_png(0, 5));
  const torch::NoGradGuard no_grad;
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  const auto data = load({}, {.split = "test", .model = model.get()});
  EXPECT_TRUE(data->has("test"));
  EXPECT_FALSE(data->has("dev"));
  EXPECT_TRUE(first(*data).equal(before));
  EXPECT_FALSE(first(*load({})).equal(before));
  EXPECT_EQ(data->make_task(model)->evaluate("test", {}).figures.at("accuracy"), accuracy);
}

// Its pixels have the scale of the run that it started from, before it is stopped and after. Classes in
// another order bring their rows of the last layer along.
TEST_F(ImagesTest, ATunedRunGoesOnWithTheSameBits) {
  test::write_colours(folder_ / "colours", 12, 4, 5);
  learn({"train.steps=4", "task.classes=sun leaf sea"});
  for (int i = 0; i < 12; ++i)
    test::write_bytes(file("train/sun/" + std::to_string(i) + ".png"), test::colour_png(0, 5));
  const std::string weights = "train.weights=" + (folder_ / "run").string();
  const auto run = [&](const train::RunOptions& options, const DataRequest& request = {}) {
    const auto data = load({weights, "train.steps=12"}, request);
    const auto task = make_task(data->recipe(), *data, request.vocabulary.empty());
    const auto result = train::Trainer(*task, data->recipe().train, options).run();
    EXPECT_EQ(data->notes(), std::vector<std::string>{});
    return result;
  };
  {
    const auto data = load({weights});
    const auto trained = load_run(folder_ / "run"), made = make_model(data->recipe(), *data);
    const at::Tensor before = trained->module().named_parameters()["head.weight"],
                     after = made->module().named_parameters()["head.weight"];
    EXPECT_TRUE(after.equal(torch::stack({before[1], before[2], before[0]})));  // of sun, leaf and sea
  }
  const auto straight = run({.folder = folder_ / "whole"});
  std::atomic<bool> stop = false;
  train::RunOptions half{.folder = folder_ / "half", .stop = &stop};
  half.on_progress = [&](const train::Progress& progress) { stop = progress.step >= 5; };
  EXPECT_FALSE(run(half).finished);
  const auto resumed = run({.folder = folder_ / "half", .existing = train::Existing::resume},
                           {.vocabulary = folder_ / "half" / "last", .resumes = true});
  EXPECT_EQ(straight.test, resumed.test);
  for (const char* name : {"best/model.safetensors", "best/classes.txt", "test.confusions.tsv"})
    EXPECT_EQ(text_of(folder_ / "whole" / name), text_of(folder_ / "half" / name)) << name;
  EXPECT_EQ(text_of(folder_ / "half" / "best" / "classes.txt"), "leaf\nsea\nsun\n");
  fs::rename(file("train"), folder_ / "train");  // the test set alone is scored by the same numbers
  const std::shared_ptr<Model> model = load_run(folder_ / "half");
  const auto data = load({}, {.split = "test", .model = model.get()});
  EXPECT_EQ(data->make_task(model)->evaluate("test", {}).figures.at("accuracy"),
            straight.test.at("accuracy"));
}

TEST_F(ImagesTest, ChannelsFollowTheAlgebra) {
  const auto sizes = [&](const std::vector<std::string>& settings) {
    const Recipe recipe = recipe_of(settings);
    const auto data = load_data(recipe);
    const auto batch = data->inputs("dev", recipe, 7, 5);
    EXPECT_EQ(batch.size(), 3);
    EXPECT_EQ(batch[2].units, 6);
    return batch[0].tensors[0].sizes().vec();
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes({}), (Sizes{7, 4, 32, 32}));
  EXPECT_EQ(sizes({"model.algebra=complex"}), (Sizes{7, 4, 32, 32}));
  EXPECT_EQ(sizes({"model.algebra=real"}), (Sizes{7, 3, 32, 32}));
  EXPECT_EQ(sizes({"model.algebra=phm(3)", "model.widths=6 6 9 9"}), (Sizes{7, 3, 32, 32}));
  EXPECT_EQ(sizes({"model.real_stem=true"}), (Sizes{7, 3, 32, 32}));
  EXPECT_EQ(sizes({"model.algebra=real", "task.colour=grey_first"}), (Sizes{7, 4, 32, 32}));
}

TEST_F(ImagesTest, RefusesWhatDoesNotFit) {
  const auto error = [&](const std::vector<std::string>& settings) {
    return error_of([&] { recipe_of(settings); });
  };
  EXPECT_THAT(
      error({"model.widths=6 8 8 8"}),
      HasSubstr(
          "model.widths must be divisible by n = 4 (quaternion), got \"6 8 8 8\" (nearest: \"8 8 8 8\")"));
  for (const char* widths : {"8 8 8", "8 8 8 8 8", "8 8 8 x", "0 8 8 8", "8 8 8 8.5"})
    EXPECT_THAT(error({std::string("model.widths=") + widths}), HasSubstr("must be four whole numbers"))
        << widths;
  EXPECT_THAT(error({"model.depth=20"}), HasSubstr("must be 18, 34, 50, 101 or 152, got 20"));
  EXPECT_THAT(error({"model.algebra=octonion"}), HasSubstr("set model.real_stem = true"));
  EXPECT_THAT(error({"task.colour=rgb"}), HasSubstr("take zero_first"));
  EXPECT_THAT(error({"task.data=folders", "augmentation.padding=12"}),
              HasSubstr("augmentation.padding must be less than the side of a picture, 12, got 12"));
  EXPECT_THAT(error({"augmentation.cutout=33"}), HasSubstr("augmentation.cutout must be at most"));
  EXPECT_THAT(error({"task.data=folders", "task.dev_share=0.6", "task.test_share=0.5"}),
              HasSubstr("less than 1 together"));
  EXPECT_EQ(error({"task.data=cifar10", "task.dev_share=0.95"}), "no error");  // which have a test set
  EXPECT_THAT(error({"task.data=pictures"}), HasSubstr("task.data"));
  EXPECT_EQ(error({"model.algebra=octonion", "model.real_stem=true"}), "no error");
}

TEST_F(ImagesTest, APictureThatIsAloneInItsBatchIsRefusedWhereItIsTooSmall) {
  test::write_colours(folder_ / "colours", 3, 1, 1);
  const auto error = [&](const std::string& side, const std::string& batch) {
    fs::remove_all(folder_ / "run");
    return error_of([&] {
      learn({"task.side=" + side, "train.batch=" + batch, "train.steps=3", "train.evaluate_every=3"});
    });
  };
  EXPECT_THAT(error("8", "4"), HasSubstr("train.batch = 4 leaves one of the 9 pictures alone"));
  EXPECT_THAT(error("8", "1"), HasSubstr("train.batch = 1 leaves one of the 9 pictures alone"));
  EXPECT_EQ(error("8", "5"), "no error");
  EXPECT_EQ(error("9", "4"), "no error");
}

TEST_F(ImagesTest, ADevSetWithoutPicturesIsSaid) {
  test::write_colours(folder_ / "colours", 4, 2, 2);
  EXPECT_THAT(load({})->notes(), testing::IsEmpty());
  EXPECT_THAT(notes_of_missing_sets(*load({})), testing::IsEmpty());
  fs::remove_all(file("dev"));
  EXPECT_THAT(notes_of_missing_sets(*load({"task.dev_share=0"})),
              ElementsAre("there is no dev set: the last weights count as the best"));
}

TEST_F(ImagesTest, BadPicturesAreNamedOrLeftOut) {
  test::write_colours(folder_ / "colours", 4, 2, 2);
  const std::string whole = text_of(file("train/sea/1.png"));
  test::write_bytes(file("train/sea/1.png"), whole.substr(0, whole.size() / 2));
  test::write_bytes(
      file("train/sun/2.jpg"),
      data::jpeg_file(data::random_picture(4, 4).repeat({2, 1, 1}).narrow(0, 0, 4).contiguous()));
  test::write_bytes(file("test/sun/9.png"), "");
  EXPECT_THAT(error_of_load({}),
              testing::AllOf(HasSubstr("train/sea/1.png"), HasSubstr("skip_bad leaves such pictures out")));
  const auto data = load({"task.skip_bad=true"});
  std::string notes;
  for (const auto& note : data->notes()) notes += note + "\n";
  EXPECT_THAT(notes, testing::AllOf(HasSubstr("train set: 2 pictures left out"), HasSubstr("sea/1.png\n"),
                                    HasSubstr("test set: 1 picture left out")));
  test::write_bytes(file("train/sea/1.png"), whole);
  fs::remove(file("train/sun/2.jpg"));
  EXPECT_THAT(error_of_load({}), HasSubstr("test/sun/9.png"));
  fs::remove(file("test/sun/9.png"));

  // Grey, 16 bits and other sizes are pictures like all others.
  test::write_bytes(file("train/sea/grey.png"),
                    data::png_file(data::random_picture(9, 5).narrow(0, 0, 1), PNG_COLOR_TYPE_GRAY));
  test::write_bytes(file("train/sea/grey.jpg"),
                    data::jpeg_file(data::random_picture(33, 20).narrow(0, 0, 1)));
  test::write_bytes(
      file("train/sea/deep.png"),
      data::png_file(data::random_picture(40, 8).to(torch::kInt32) * 257, PNG_COLOR_TYPE_RGB, 16));
  EXPECT_EQ(load({})->inputs("train", recipe_of({"task.data=folders"}), 100, 1)[0].units, 15);

  EXPECT_THAT(error_of_load({"task.classes=a b"}),
              HasSubstr("task.classes must name the 3 classes of the data, got 2 names"));
  EXPECT_THAT(error_of_load({"task.classes=a b a"}), HasSubstr("two classes are called \"a\""));
  for (const char* set : {"train", "dev", "test"})
    for (const char* colour : {"sun", "leaf"}) fs::remove_all(file(std::string(set) + "/" + colour));
  EXPECT_THAT(error_of_load({}), HasSubstr("two classes"));
  fs::remove_all(file("train"));
  EXPECT_THAT(error_of_load({}), testing::Not(HasSubstr("no error")));
}

TEST_F(ImagesTest, LabelsThatDoNotFitAreNamed) {
  const auto planes = [&](const std::string& labels) {
    test::write_bytes(file("train.u8"), std::string(6 * 3 * 8 * 8, 'x'));
    test::write_bytes(file("train.labels.u8"), labels);
    return error_of_load({"task.data=planes", "task.side=8", "task.dev_share=0"});
  };
  EXPECT_THAT(planes(std::string("\0\1\0\1\0", 5)), testing::AllOf(HasSubstr("5"), HasSubstr("6")));
  EXPECT_THAT(planes(std::string(6, '\0')), HasSubstr("two classes"));
  EXPECT_EQ(planes(std::string("\0\1\0\1\0\1", 6)), "no error");
}

TEST_F(ImagesTest, FilesThatAreNoneAreNamed) {
  test::write_colours(folder_ / "colours", 4, 2, 2);
  learn({"train.steps=1", "task.classes=tree water light"});
  const auto model = load_run(folder_ / "run");
  EXPECT_EQ(model->line_problem("nowhere.png"),
            "the picture \"nowhere.png\" cannot be read: there is no such file");
  EXPECT_THAT(model->line_problem(folder_.string()), HasSubstr("cannot be read: "));
  EXPECT_TRUE(model->answers_the_rest());
  test::write_bytes(folder_ / "text.png", "this is no picture");
  const torch::NoGradGuard no_grad;
  const auto [answers, problem] =
      answer(*model, std::vector<std::string>{file("test/sea/0.png"), (folder_ / "text.png").string(),
                                              file("test/sea/1.png")});
  EXPECT_EQ(answers.size(), 1);
  EXPECT_THAT(problem, HasSubstr("text.png"));
  const test::Threads threads(3);  // the first of several is told, whichever is read first
  test::write_bytes(folder_ / "other.png", "neither is this");
  const auto both = [&](const char* first, const char* second) {
    const std::string good = file("test/sea/0.png");
    try {
      model->predict({good, (folder_ / first).string(), good, (folder_ / second).string()});
    } catch (const LineError& error) {
      return std::to_string(error.line()) +
             (std::string(error.what()).find(first) != std::string::npos ? " right" : "");
    }
    return std::string("no error");
  };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(both("text.png", "other.png"), "1 right");
  EXPECT_EQ(both("other.png", "text.png"), "1 right");
  EXPECT_THAT(answers[0], testing::ContainsRegex("^(tree|water|light)\t"));
}

TEST_F(ImagesTest, ARealModelBecomesAQuaternionModel) {
  test::write_colours(folder_ / "colours", 4, 2, 2);
  learn({"train.steps=1", "model.algebra=real"});
  const auto model = load_run(folder_ / "run")->in_algebra("quaternion");
  EXPECT_EQ(find_value(model->recipe(), "model.real_stem"), "true");
  EXPECT_EQ(find_value(model->recipe(), "task.colour"), "rgb");
}

}  // namespace
}  // namespace quatrain::tasks
