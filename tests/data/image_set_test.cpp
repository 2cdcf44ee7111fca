#include "quatrain/data/image_set.h"

#include <torch/types.h>

#include <cstring>
#include <set>

#include "image_files.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kPicture = 3 * 32 * 32;

/// The bytes of a picture of 32 x 32 that is known by its number.
std::string plane_bytes(int number, size_t size = kPicture) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(static_cast<size_t>(number) * 7 + i / 1024);
  return bytes;
}

class ImageSetTest : public DataTest {
 protected:
  ImageSplits load(const std::string& reader, bool skip_bad = false, int64_t side = 32) const {
    return load_images({.reader = reader,
                        .folder = folder_,
                        .skip_bad = skip_bad,
                        .side = side,
                        .dev_share = dev_share_,
                        .shapes = {}});
  }
  std::string error(const std::string& reader, bool skip_bad = false, int64_t side = 32) const {
    return error_of([&] { load(reader, skip_bad, side); });
  }

  /// Two pictures in each file of CIFAR-10; `label` is that of the very first one.
  void write_cifar10(int label = 3) const {
    for (int file = 1; file <= 6; ++file) {
      std::string records;
      for (int i = 0; i < 2; ++i) {
        const int number = 2 * (file - 1) + i;
        records += static_cast<char>(number == 0 ? label : number % 10);
        records += plane_bytes(number);
      }
      write(file <= 5 ? "data_batch_" + std::to_string(file) + ".bin" : "test_batch.bin", records);
    }
  }

  void write_planes(const std::string& stem, const std::vector<uint8_t>& labels,
                    size_t picture = kPicture) const {
    std::string bytes;
    for (size_t i = 0; i < labels.size(); ++i) bytes += plane_bytes(static_cast<int>(i), picture);
    write(stem + ".u8", bytes);
    write(stem + ".labels.u8", {reinterpret_cast<const char*>(labels.data()), labels.size()});
  }

  double dev_share_ = 0;
};

TEST_F(ImageSetTest, ReadsCifar10) {
  write_cifar10();
  auto splits = load("cifar10");
  EXPECT_THAT(labels_of(splits.train), ElementsAre(3, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(labels_of(splits.test), ElementsAre(0, 1));
  EXPECT_EQ(splits.dev.size(), 0);
  EXPECT_EQ(splits.dev.images.sizes(), (std::vector<int64_t>{0, 3, 32, 32}));
  EXPECT_EQ(splits.train.images.sizes(), (std::vector<int64_t>{10, 3, 32, 32}));
  const std::string expected = plane_bytes(4);
  EXPECT_EQ(std::memcmp(splits.train.images[4].data_ptr<uint8_t>(), expected.data(), kPicture), 0);
  EXPECT_THAT(splits.classes, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));

  write("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  EXPECT_EQ(load("cifar10").classes[9], "truck");
  std::filesystem::create_directories(folder_ / "whole/cifar-10-batches-bin");
  for (const auto& entry :
       std::vector<std::filesystem::directory_entry>(std::filesystem::directory_iterator(folder_), {}))
    if (entry.is_regular_file())
      std::filesystem::rename(entry.path(), folder_ / "whole/cifar-10-batches-bin" / entry.path().filename());
  EXPECT_EQ(load_images({.reader = "cifar10", .folder = folder_ / "whole"}).test.size(), 2);
}

TEST_F(ImageSetTest, TheDevSetIsDrawnOnceForAll) {
  write_cifar10();
  dev_share_ = 0.3;
  const auto splits = load("cifar10"), again = load("cifar10");
  EXPECT_EQ(splits.train.size(), 7);
  EXPECT_EQ(splits.dev.size(), 3);
  EXPECT_EQ(splits.test.size(), 2);
  EXPECT_TRUE(splits.dev.images.equal(again.dev.images));
  std::multiset<int64_t> both;
  for (const auto* set : {&splits.train, &splits.dev})
    for (const int64_t label : labels_of(*set)) both.insert(label);
  EXPECT_THAT(both, ElementsAre(1, 2, 3, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(labels_of(splits.dev), ElementsAre(1, 4, 5));  // always these
}

TEST_F(ImageSetTest, ReadsCifar100) {
  const auto record = [](int coarse, int fine) {
    return std::string{static_cast<char>(coarse), static_cast<char>(fine)} + plane_bytes(fine);
  };
  write("train.bin", record(4, 30) + record(19, 99));
  write("test.bin", record(0, 1));
  const auto fine = load("cifar100"), coarse = load("cifar100_coarse");
  EXPECT_THAT(labels_of(fine.train), ElementsAre(30, 99));
  EXPECT_THAT(labels_of(coarse.train), ElementsAre(4, 19));
  EXPECT_EQ(std::tuple(fine.classes.size(), coarse.classes.size()), std::tuple(100, 20));
  EXPECT_TRUE(fine.train.images.equal(coarse.train.images));
  const std::string expected = plane_bytes(99);
  EXPECT_EQ(std::memcmp(fine.train.images[1].data_ptr<uint8_t>(), expected.data(), kPicture), 0);
  write("test.bin", record(20, 1));
  EXPECT_THAT(error("cifar100_coarse"), HasSubstr("must be from 0 to 19, got 20"));
  EXPECT_THAT(error("cifar100"), IsEmpty());
}

TEST_F(ImageSetTest, RefusesDamagedCifar) {
  EXPECT_THAT(error("cifar10"), HasSubstr("there is no data_batch_1.bin"));
  write("cifar-10-batches-py/batches.meta", "");
  EXPECT_THAT(error("cifar10"), AllOf(HasSubstr("cifar-10-batches-py is the set's version for Python"),
                                      HasSubstr("binary version")));
  EXPECT_THAT(error("cifar100"), HasSubstr("there is no train.bin"));
  write("meta", "");
  EXPECT_THAT(error("cifar100"), HasSubstr(folder_.string() + " is the set's version for Python"));
  std::filesystem::remove(folder_ / "meta");
  std::filesystem::remove_all(folder_ / "cifar-10-batches-py");
  write_cifar10();
  std::filesystem::remove(folder_ / "data_batch_3.bin");
  EXPECT_THAT(error("cifar10"), HasSubstr("but no data_batch_3.bin"));
  write_cifar10();
  std::filesystem::resize_file(folder_ / "data_batch_3.bin", 2 * 3073 - 1);
  EXPECT_THAT(error("cifar10"), AllOf(HasSubstr("data_batch_3.bin must be a multiple of 3073 bytes"),
                                      HasSubstr("got 6145; it is cut off")));
  EXPECT_THAT(error("cifar10", /*skip_bad=*/true), HasSubstr("cut off"));
  std::filesystem::resize_file(folder_ / "data_batch_3.bin", 0);
  EXPECT_THAT(error("cifar10"), HasSubstr("data_batch_3.bin is empty; copy it again"));
}

TEST_F(ImageSetTest, AFileOfNamesFitsTheClasses) {
  write_cifar10();
  for (const std::string names : {"a\nb\n", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n"}) {
    write("batches.meta.txt", names);
    EXPECT_THAT(error("cifar10"), HasSubstr("batches.meta.txt must name 10 classes, a line each, got "));
  }
}

TEST_F(ImageSetTest, ALabelOutOfRangeIsBad) {
  write_cifar10(/*label=*/10);
  EXPECT_THAT(
      error("cifar10"),
      AllOf(HasSubstr("data_batch_1.bin, picture 0 (from 0 on): the label must be from 0 to 9, got 10"),
            HasSubstr("skip_bad leaves such pictures out")));
  const auto splits = load("cifar10", /*skip_bad=*/true);
  EXPECT_THAT(labels_of(splits.train), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  ASSERT_EQ(splits.bad.count(), 1);
  EXPECT_EQ(splits.bad.reasons[0].set, "train");
  EXPECT_EQ(splits.bad.reasons[0].reason, "the label is not among the classes");
}

TEST_F(ImageSetTest, ReadsPlanes) {
  write_planes("train", {0, 2, 1});
  write_planes("val", {2});
  write_planes("test", {1, 0});
  dev_share_ = 0.5;  // not used: there is a dev set
  const auto splits = load("planes");
  EXPECT_THAT(labels_of(splits.train), ElementsAre(0, 2, 1));
  EXPECT_THAT(labels_of(splits.dev), ElementsAre(2));
  EXPECT_THAT(labels_of(splits.test), ElementsAre(1, 0));
  EXPECT_THAT(splits.classes, ElementsAre("0", "1", "2"));
  const std::string expected = plane_bytes(1);
  EXPECT_EQ(std::memcmp(splits.test.images[1].data_ptr<uint8_t>(), expected.data(), kPicture), 0);
  write("classes.txt", "bird\ncat\ndog\nemu\n");
  EXPECT_THAT(load("planes").classes, ElementsAre("bird", "cat", "dog", "emu"));
  for (const char* name : {"val.u8", "val.labels.u8"}) std::filesystem::remove(folder_ / name);
  dev_share_ = 0.4;
  EXPECT_EQ(load("planes").dev.size(), 1);  // of three
}

TEST_F(ImageSetTest, OneSetOfPlanesIsReadAlone) {
  write_planes("valid", {2, 0});
  ImageSource source{.reader = "planes", .folder = folder_, .only = "dev", .classes = {"0", "1", "2", "3"}};
  const auto splits = load_images(source);
  EXPECT_THAT(labels_of(splits.dev), ElementsAre(2, 0));
  EXPECT_EQ(splits.train.size() + splits.test.size(), 0);
  EXPECT_EQ(splits.classes, source.classes);
  source.classes = {"0", "1"};
  EXPECT_THAT(error_of([&] { load_images(source); }), HasSubstr("must be from 0 to 1, got 2"));
  source.classes.clear();
  EXPECT_THAT(error_of([&] { load_images(source); }), HasSubstr("only 2 of these classes have a picture"));
  // Classes with names are to have the same ones.
  source.classes = {"ant", "bee", "cow"};
  EXPECT_THAT(error_of([&] { load_images(source); }),
              AllOf(HasSubstr("are called 0, 1, 2, but must be ant, bee, cow"), HasSubstr("classes.txt")));
  write("classes.txt", "ant\nbee\ncow\n");
  EXPECT_THAT(labels_of(load_images(source).dev), ElementsAre(2, 0));
  source.classes.clear();
  EXPECT_THAT(load_images(source).classes, ElementsAre("ant", "bee", "cow"));
  source.only = "test";
  EXPECT_THAT(error_of([&] { load_images(source); }), HasSubstr("there is no train.u8 in"));
  // Beside pictures to train on a set is what it is without `only`.
  std::filesystem::rename(folder_ / "valid.u8", folder_ / "test.u8");
  std::filesystem::rename(folder_ / "valid.labels.u8", folder_ / "test.labels.u8");
  for (const char* name : {"train.u8", "train.labels.u8"}) std::filesystem::remove(folder_ / name);
  write_planes("cifar10/train", {0, 1, 2, 1});
  source.only = "dev", source.dev_share = 0.25;
  const auto shared = load_images(source);
  EXPECT_EQ(std::tuple(shared.train.size(), shared.dev.size(), shared.test.size()), std::tuple(3, 1, 0));
}

TEST_F(ImageSetTest, TwoDevSetsOfPlanesAreRefused) {
  write_planes("train", {0, 1});
  write_planes("valid", {0});
  write_planes("val", {1});
  EXPECT_EQ(error("planes"), "data: there are both " + (folder_ / "valid.u8").string() +
                                 " and val.u8; remove the one that is not meant");
}

TEST_F(ImageSetTest, LabelsWithoutPlanesAreRefused) {
  write_planes("train", {0, 1});
  for (const char* set : {"test", "valid"}) {
    write(std::string(set) + ".labels.u8", "\0");
    EXPECT_THAT(error("planes"), AllOf(HasSubstr("there are labels in "), HasSubstr("but no pictures in ")));
    std::filesystem::remove(folder_ / (std::string(set) + ".labels.u8"));
  }
}

TEST_F(ImageSetTest, PlanesMayHaveAnotherSize) {
  write_planes("train", {0, 1}, 3 * 8 * 8);
  EXPECT_EQ(load("planes", false, 8).train.images.sizes(), (std::vector<int64_t>{2, 3, 8, 8}));
  EXPECT_THAT(error("planes"), HasSubstr("those of a picture of 32 x 32, got 384"));
  EXPECT_THAT(error("planes", false, 0), HasSubstr("must be from 2 to 4096, got 0"));
}

TEST_F(ImageSetTest, RefusesDamagedPlanes) {
  write_planes("train", {0, 1, 1});
  write("train.labels.u8", std::string(2, '\0'));
  EXPECT_THAT(error("planes"), AllOf(HasSubstr("train.u8 has 3 pictures"), HasSubstr("has 2 labels")));
  std::filesystem::remove(folder_ / "train.labels.u8");
  EXPECT_THAT(error("planes"), HasSubstr("no labels in"));
  write_planes("train", {0, 1});
  write_planes("test", {2});
  EXPECT_THAT(error("planes"),
              HasSubstr("test.u8, picture 0 (from 0 on): the label must be from 0 to 1, got 2"));
  for (const char* name : {"test.u8", "test.labels.u8"}) std::filesystem::remove(folder_ / name);
  write_planes("train", {});
  EXPECT_THAT(error("planes"), HasSubstr("train.u8 is empty; copy it again"));
  write_planes("train", {0, 1, 255});
  EXPECT_THAT(error("planes"), HasSubstr("go up to 255, but only 3 of these classes have a picture"));
  write_planes("train", {0, 0});
  EXPECT_THAT(error("planes"), HasSubstr("at least two classes, got only \"0\""));
  write("classes.txt", "cat\ndog\n");
  EXPECT_THAT(error("planes"), HasSubstr("are of the class \"cat\""));
  write_planes("train", {5, 5});
  EXPECT_THAT(error("planes", /*skip_bad=*/true), HasSubstr("the first of 2 bad ones: "));
}

TEST_F(ImageSetTest, TheReaderIsOneOfThese) {
  EXPECT_THAT(error("photos"), HasSubstr("must be one of cifar10, cifar100, cifar100_coarse, planes, "
                                         "folders, shapes, got \"photos\""));
}

}  // namespace
}  // namespace quatrain::data
