#include "quatrain/data/image_set.h"

#include <torch/types.h>

#include "image_files.h"
#include "support.h"

/// Pictures in files, those of a class in a folder.
namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ImageFoldersTest : public DataTest {
 protected:
  ImageSource source(bool skip_bad = false, int64_t side = 32) const {
    return {.reader = "folders",
            .folder = folder_,
            .skip_bad = skip_bad,
            .side = side,
            .dev_share = dev_share_,
            .test_share = test_share_};
  }
  ImageSplits load(bool skip_bad = false, int64_t side = 32) const {
    return load_images(source(skip_bad, side));
  }
  std::string error(bool skip_bad = false) const {
    return error_of([&] { load(skip_bad); });
  }
  /// What was left out: "SET: COUNT REASON, FIRST".
  std::vector<std::string> left_out(const ImageSplits& splits) const {
    std::vector<std::string> all;
    for (const auto& one : splits.bad.reasons)
      all.push_back(one.set + ": " + std::to_string(one.count) + " " + one.reason + ", " +
                    std::filesystem::path(one.first).lexically_relative(folder_).string());
    return all;
  }
  /// A picture whose pixels have this value.
  void write_picture(const std::string& name, int value, int64_t height = 8, int64_t width = 8) const {
    const auto picture = torch::full({3, height, width}, value, torch::kUInt8);
    write(name, name.ends_with("png") ? png_file(picture) : jpeg_file(picture));
  }
  static std::vector<int64_t> values_of(const ImageSet& set) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < set.size(); ++i) values.push_back(set.images[i].max().item<int64_t>());
    return values;
  }

  double dev_share_ = 0, test_share_ = 0;
};

TEST_F(ImageFoldersTest, ReadsEachSet) {
  write_picture("train/dog/b.png", 20);
  write_picture("train/dog/a.JPEG", 10, 16, 40);
  write_picture("train/cat/x.jpg", 30);
  write_picture("valid/cat/y.png", 40, 3, 2);
  write_picture("test/dog/z.png", 50);
  write("train/dog/notes.txt", "no picture");
  write("train/.hidden/a.png", "nor this");
  write("README.md", "nor this");
  const auto splits = load(false, 4);
  EXPECT_THAT(splits.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(labels_of(splits.train), ElementsAre(0, 1, 1));
  EXPECT_THAT(values_of(splits.train), ElementsAre(30, 10, 20));
  EXPECT_THAT(values_of(splits.dev), ElementsAre(40));
  EXPECT_THAT(values_of(splits.test), ElementsAre(50));
  EXPECT_THAT(labels_of(splits.test), ElementsAre(1));
  EXPECT_EQ(splits.train.images.sizes(), (std::vector<int64_t>{3, 3, 4, 4}));
  EXPECT_THAT(splits.dev.names, ElementsAre("valid/cat/y.png"));
  EXPECT_THAT(splits.test.names, ElementsAre("test/dog/z.png"));
  EXPECT_THAT(splits.train.names, IsEmpty());
}

TEST_F(ImageFoldersTest, OneSetIsReadAlone) {
  write_picture("test/dog/z.png", 50);
  write_picture("test/dog/a.png", 60);
  write_picture("test/left.png", 1);
  ImageSource source{
      .reader = "folders", .folder = folder_, .only = "test", .classes = {"ant", "cat", "dog"}};
  const auto splits = load_images(source);
  EXPECT_EQ(splits.classes, source.classes);
  EXPECT_THAT(labels_of(splits.test), ElementsAre(2, 2));
  EXPECT_THAT(values_of(splits.test), ElementsAre(60, 50));
  EXPECT_EQ(splits.train.size() + splits.dev.size(), 0);
  EXPECT_EQ(splits.bad.count(), 1);
  source.classes = {"ant", "cat"};
  EXPECT_THAT(error_of([&] { load_images(source); }),
              HasSubstr("test/dog is a class that the model has not (ant, cat)"));
  write_picture("test/cat/b.png", 70);
  source.classes.clear();
  EXPECT_THAT(load_images(source).classes, ElementsAre("cat", "dog"));
  source.only = "dev";
  EXPECT_THAT(error_of([&] { load_images(source); }), HasSubstr("but no folder train beside it"));
  // A set that is a share of the classes is not one of its own.
  std::filesystem::rename(folder_ / "test", folder_ / "train");
  for (const std::string animal : {"cat", "dog"})
    for (int i = 0; i < 8; ++i) write_picture("train/" + animal + "/" + std::to_string(i) + ".png", i);
  source.dev_share = 0, source.test_share = 0.4, source.only = "test";
  const auto shared =
      load_images({.reader = "folders", .folder = folder_, .dev_share = 0, .test_share = 0.4});
  EXPECT_EQ(labels_of(load_images(source).test), labels_of(shared.test));
  // Bad ones alone leave nothing to score.
  std::filesystem::remove_all(folder_ / "train");
  write("test/cat/a.png", "no picture");
  source.classes = {"cat", "dog"}, source.skip_bad = true;
  EXPECT_THAT(error_of([&] { load_images(source); }), HasSubstr("has no picture of the test set in the"));
}

// What the others hold does not matter to who scores one.
TEST_F(ImageFoldersTest, PicturesOfOtherSetsAreNotRead) {
  ImageSource asked = source();
  asked.classes = {"cat", "dog"};
  for (const std::string animal : {"cat", "dog"}) {
    write("train/" + animal + "/bad.png", "no picture");
    write_picture("dev/" + animal + "/a.png", 10);
    write_picture("test/" + animal + "/a.png", 20);
    write("test/" + animal + "/note.txt", "no picture");
  }
  write("train/cat/note.txt", "no picture");
  write_picture("dev/emu/a.png", 1);
  EXPECT_THAT(error(), HasSubstr("emu is a class that the training set has not"));
  asked.only = "test";
  const auto test = load_images(asked);
  EXPECT_THAT(values_of(test.test), ElementsAre(20, 20));
  EXPECT_THAT(labels_of(test.test), ElementsAre(0, 1));
  EXPECT_EQ(std::tuple(test.train.size(), test.dev.size(), test.passed_over), std::tuple(0, 0, 2));
  EXPECT_EQ(test.classes, asked.classes);
  EXPECT_THAT(left_out(test), ElementsAre("test: 2 they end in neither .png, .jpg, .jpeg, .jpe nor .jfif, "
                                          "test/cat/note.txt"));
  asked.only = "train";
  EXPECT_THAT(error_of([&] { load_images(asked); }), HasSubstr("train/cat/bad.png"));
  // Where there is none of the set, that is for others to say.
  std::filesystem::remove_all(folder_ / "test");
  asked.only = "test";
  EXPECT_EQ(load_images(asked).test.size(), 0);
}

TEST_F(ImageFoldersTest, NamesDecideAlsoWhereOneSetIsRead) {
  for (int i = 0; i < 40; ++i)
    for (const std::string animal : {"cat", "dog"})
      write_picture(animal + "/" + std::to_string(i) + ".png", i, 2, 2);
  dev_share_ = 0.2, test_share_ = 0.3;
  const auto all = load(false, 2);
  ImageSource asked = source(false, 2);
  asked.only = "dev", asked.classes = all.classes;
  const auto dev = load_images(asked);
  EXPECT_EQ(values_of(dev.dev), values_of(all.dev));
  EXPECT_EQ(dev.train.size() + dev.test.size(), 0);
  EXPECT_EQ(dev.dev.size() + dev.passed_over, 80);
  EXPECT_TRUE(dev.divided_dev);
}

TEST_F(ImageFoldersTest, AClassMayBeCalledAsASet) {
  for (const std::string name : {"car", "test", "train"}) write_picture(name + "/a.png", 1);
  EXPECT_THAT(load(false, 4).classes, ElementsAre("car", "test", "train"));
}

TEST_F(ImageFoldersTest, AClassMayHaveFolders) {
  write_picture("train/cat/b.png", 20);
  write_picture("train/cat/a/deep/c.png", 30);
  write_picture("train/cat/z/a.png", 40);
  write_picture("train/cat/.hidden/a.png", 1);
  write_picture("train/dog/x/a.png", 50);
  write_picture("dev/dog/y/z/a.png", 60);
  write_picture("elsewhere/a.png", 70);
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", folder_ / "train/dog/link");
  for (const char* circle : {"train/cat/a/deep/up", "train/cat/a/same"}) {
    const auto leads_to = circle == std::string("train/cat/a/same") ? "train/cat/a" : "";
    std::filesystem::create_directory_symlink(folder_ / leads_to, folder_ / circle);
  }
  const auto splits = load(false, 4);
  EXPECT_THAT(splits.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(values_of(splits.train), ElementsAre(20, 30, 40, 70, 50));
  EXPECT_THAT(labels_of(splits.train), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(values_of(splits.dev), ElementsAre(60));
}

TEST_F(ImageFoldersTest, PicturesInNoClassAreCounted) {
  const auto notes = [&] { return left_out(load(false, 4)); };
  for (const std::string animal : {"cat", "dog"}) write_picture(animal + "/a.png", 1);
  EXPECT_THAT(notes(), IsEmpty());
  write_picture("b.png", 2);
  write_picture("a.jpg", 2);
  write("a.txt", "no picture");
  EXPECT_THAT(notes(), ElementsAre("train: 2 they are in no folder of a class, a.jpg"));
  for (const std::string animal : {"cow", "hen"})
    for (const std::string set : {"train/", "valid/", "test/"}) write_picture(set + animal + "/a.png", 1);
  write_picture("test/loose.png", 1);
  EXPECT_THAT(notes(), ElementsAre("test: 1 they are in no folder of a class, test/loose.png",
                                   "train: 4 they are beside train, and not in it, a.jpg"));
  write_picture("Val/cat/b.png", 1);  // as deep as it may be
  EXPECT_THAT(notes(), testing::Contains("train: 5 they are beside train, and not in it, a.jpg"));
  EXPECT_THAT(load(false, 4).classes, ElementsAre("cow", "hen"));
}

TEST_F(ImageFoldersTest, FilesWithOtherEndingsAreCounted) {
  write_picture("cat/a.jpe", 1);
  write_picture("cat/deep/b.JFIF", 2);
  write_picture("dog/a.png", 3);
  write("cat/deep/c.webp", "another kind of picture");
  write("dog/b", "no ending");
  write("dog/.hidden.webp", "not seen");
  write("notes.txt", "in no class");
  const auto splits = load(false, 4);
  EXPECT_THAT(values_of(splits.train), ElementsAre(1, 2, 3));
  EXPECT_THAT(left_out(splits), ElementsAre("train: 2 they end in neither .png, .jpg, .jpeg, .jpe nor .jfif, "
                                            "cat/deep/c.webp"));
  std::filesystem::remove(folder_ / "dog/a.png");
  EXPECT_THAT(error(), HasSubstr("dog has no picture (.png, .jpg, .jpeg, .jpe or .jfif); remove the folder"));
}

TEST_F(ImageFoldersTest, ASetUnderAnotherNameIsNoClass) {
  for (const std::string set : {"Training/", "Testing/"})
    for (const std::string animal : {"cat", "dog"}) write_picture(set + animal + "/a.png", 1);
  EXPECT_THAT(error(), HasSubstr("Training has folders, but no picture of its own; call it train"));
  write_picture("Training/a.png", 1);
  EXPECT_THAT(load(false, 4).classes, ElementsAre("Testing", "Training"));
}

TEST_F(ImageFoldersTest, TwoDevSetsAreRefused) {
  for (const std::string set : {"train/", "dev/", "val/"})
    for (const std::string animal : {"cat", "dog"}) write_picture(set + animal + "/a.png", 1);
  EXPECT_EQ(error(), "data: there are both " + (folder_ / "dev").string() +
                         " and val; remove the one that is not meant");
}

TEST_F(ImageFoldersTest, NamesDecideWhatIsHeldOut) {
  for (int i = 0; i < 150; ++i)
    for (const std::string animal : {"cat", "dog"})
      write_picture(animal + "/" + std::to_string(i) + ".png", i, 2, 2);
  dev_share_ = 0.2, test_share_ = 0.3;
  const auto splits = load(false, 2);
  EXPECT_EQ(splits.train.size() + splits.dev.size() + splits.test.size(), 300);
  EXPECT_NEAR(static_cast<double>(splits.dev.size()), 60, 25);
  EXPECT_NEAR(static_cast<double>(splits.test.size()), 90, 25);
  const auto dev = values_of(splits.dev);
  std::vector<int64_t> without_last;
  for (const int64_t value : dev)
    if (value < 149) without_last.push_back(value);
  for (const std::string animal : {"cat", "dog"}) std::filesystem::remove(folder_ / animal / "149.png");
  EXPECT_EQ(values_of(load(false, 2).dev), without_last);
  dev_share_ = 0.5, test_share_ = 0.5;
  EXPECT_THAT(error(), HasSubstr("less than 1 together, got 0.5 and 0.5"));
}

TEST_F(ImageFoldersTest, ABadPictureIsNamedOrCounted) {
  write_picture("cat/a.png", 1);
  write_picture("dog/a.png", 2);
  write("dog/b.png", "no picture");
  write("cat/c.jpg", jpeg_file(random_picture(16, 16)).substr(0, 500));
  EXPECT_THAT(error(), AllOf(HasSubstr("cat/c.jpg is damaged, cut off"),
                             HasSubstr("; skip_bad leaves such pictures out")));
  const auto splits = load(/*skip_bad=*/true);
  EXPECT_THAT(values_of(splits.train), ElementsAre(1, 2));
  EXPECT_EQ(splits.bad.count(), 2);
  EXPECT_EQ(splits.bad.reasons[0].first, (folder_ / "cat/c.jpg").string());
}

TEST_F(ImageFoldersTest, AClassKeepsAPictureToTrainOn) {
  for (const std::string animal : {"cat", "dog", "emu"}) {
    write_picture("train/" + animal + "/a.png", 1);
    write_picture("dev/" + animal + "/a.png", 1);
  }
  write("train/dog/a.png", "no picture");
  EXPECT_EQ(error(/*skip_bad=*/true),
            "data: the class \"dog\" in " + folder_.string() +
                " has no picture left to train on (1 bad, 1 in dev or test); remove its folder, or put "
                "more pictures there");
  write_picture("train/dog/b.png", 2);
  EXPECT_EQ(load(/*skip_bad=*/true).train.size(), 3);
}

TEST_F(ImageFoldersTest, AllPicturesOfAClassMayNotBeHeldOut) {
  for (const std::string animal : {"cat", "dog"}) write_picture(animal + "/a.png", 1);
  test_share_ = 0.1;  // dog/a.png is always in it
  EXPECT_THAT(error(),
              HasSubstr("\"dog\" in " + folder_.string() + " has no picture left to train on (0 bad, 1 in"));
}

TEST_F(ImageFoldersTest, ALinkThatLeadsToItselfIsABadPicture) {
  write_picture("cat/a.png", 1);
  write_picture("dog/a.png", 2);
  std::filesystem::create_symlink("loop.png", folder_ / "dog/loop.png");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(error(), AllOf(HasSubstr("dog/loop.png cannot be read: "), HasSubstr("skip_bad")));
  EXPECT_EQ(load(/*skip_bad=*/true).bad.count(), 1);
}

TEST_F(ImageFoldersTest, SaysWhatIsMissing) {
  EXPECT_THAT(error(), HasSubstr("there is no folder of a class in"));
  write_picture("cat/a.png", 1);
  EXPECT_THAT(error(), HasSubstr("at least two classes, got only \"cat\""));
  std::filesystem::create_directories(folder_ / "dog");
  EXPECT_THAT(error(), AllOf(HasSubstr("dog has no picture"), HasSubstr("remove the folder")));
  write("dog/b.png", "no picture");
  EXPECT_THAT(error(/*skip_bad=*/true), HasSubstr("the class \"dog\" in"));
  write_picture("test/cat/a.png", 1);
  EXPECT_THAT(error(), HasSubstr("but no folder train beside it"));
  write_picture("train/cat/a.png", 1);
  write_picture("train/dog/a.png", 1);
  write_picture("test/emu/a.png", 1);
  EXPECT_THAT(error(), HasSubstr("test/emu is a class that the training set has not (cat, dog); skip_bad"));
  const auto without =
      load_images({.reader = "folders", .folder = folder_, .skip_bad = true, .dev_share = 0});
  EXPECT_EQ(without.test.size(), 1);
  EXPECT_EQ(without.bad.reasons[0].reason, "the training set has not their class");
  EXPECT_THAT(error_of([&] { load_images({.reader = "folders", .folder = folder_ / "none"}); }),
              HasSubstr("there is no folder"));
}

TEST_F(ImageFoldersTest, WhatIsThrownAfterAPictureEndsTheWork) {
  write_picture("cat/a.png", 1);
  write_picture("dog/a.png", 2);
  int64_t seen = 0;
  load_images(source(), [&](int64_t done) { EXPECT_EQ(done, ++seen); });
  EXPECT_EQ(seen, 2);
  EXPECT_THROW(load_images(source(), [](int64_t) { throw std::logic_error("stop"); }), std::logic_error);
}

}  // namespace
}  // namespace quatrain::data
