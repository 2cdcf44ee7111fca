#include "quatrain/data/image_set.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "data/image_readers.h"
#include "data/random.h"
#include "data/split_files.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kCifarSide = 32;
constexpr int64_t kLeastSide = 2, kMostSide = 4096;

struct ImageEntry {
  Reader reader;
  int64_t side;                   // 0: that of the source
  void (*read)(ImageGathering&);  // null: generated
};

const std::vector<ImageEntry>& image_entries() {
  static const std::vector<ImageEntry> all{
      {{"cifar10", "CIFAR-10 (data_batch_1.bin .. data_batch_5.bin, test_batch.bin)", true},
       kCifarSide,
       read_cifar10},
      {{"cifar100", "CIFAR-100, 100 classes (train.bin, test.bin)", true}, kCifarSide, read_cifar100},
      {{"cifar100_coarse", "CIFAR-100, 20 classes (train.bin, test.bin)", true},
       kCifarSide,
       read_cifar100_coarse},
      {{"planes", "pictures as bytes (train.u8, train.labels.u8, test.u8, test.labels.u8)", true},
       0,
       read_image_planes},
      {{"folders",
        "your pictures, a folder for each class (CLASS/*.png, *.jpg, in train, dev and test if you like)",
        true},
       0,
       read_image_folders},
      {{"shapes", "ten shapes on noisy backgrounds, generated", false}, kShapeSide, nullptr},
  };
  return all;
}

}  // namespace

ImageGathering::ImageGathering(const ImageSource& source, const AfterImages& after_images, int64_t side)
    : source_(source), after_images_(after_images), side_(side) {
  TORCH_CHECK(side >= kLeastSide && side <= kMostSide, "data: the side of pictures must be from ", kLeastSide,
              " to ", kMostSide, ", got ", side);
  const double test_share = source.reader == "folders" ? source.test_share : 0;  // the others' own
  TORCH_CHECK(source.dev_share >= 0 && test_share >= 0 && source.dev_share + test_share < 1,
              "data: dev_share and test_share must be at least 0, and less than 1 together, got ",
              source.dev_share, " and ", test_share);
}

void ImageGathering::refuse(ImagePart part, const std::string& reason, const std::string& place,
                            const std::string& sentence) {
  TORCH_CHECK(source_.skip_bad, sentence, "; skip_bad leaves such pictures out");
  leave_out(part, reason, place);
}

void ImageGathering::leave_out(ImagePart part, const std::string& reason, const std::string& place) {
  splits_.bad.add(kImageParts[static_cast<size_t>(part)], reason, place);
}

void ImageGathering::read_wanted() {
  if (source_.only.empty() || source_.classes.empty()) return;
  only_ = wanted(source_).value_or(ImagePart::train);
}

void ImageGathering::set_classes(std::vector<std::string> classes) {
  TORCH_CHECK(classes.size() >= 2, "data: ", source_.folder.string(),
              " must have pictures of at least two classes, got ",
              classes.empty() ? "none" : "only " + quote(classes[0]));
  splits_.classes = std::move(classes);
}

void ImageGathering::add(ImagePart part, std::span<const uint8_t> image, int64_t label,
                         const std::string& place, std::string name) {
  const auto classes = static_cast<int64_t>(splits_.classes.size());
  if (label < 0 || label >= classes)
    return refuse(part, "the label is not among the classes", place,
                  place + ": the label must be from 0 to " + std::to_string(classes - 1) + ", got " +
                      std::to_string(label));
  Rows& rows = rows_[static_cast<size_t>(part)];
  rows.images.append(image);
  rows.labels.push_back(label);
  if (!name.empty() && part != ImagePart::train) rows.names.push_back(std::move(name));
  if (after_images_) after_images_(++done_);
}

ImageSet ImageGathering::finish(Rows& rows) const {
  const auto store = std::make_shared<SequenceStore<uint8_t>>(std::move(rows.images));
  store->finish();
  ImageSet set;
  set.labels = torch::tensor(rows.labels, torch::kInt64);
  set.names = std::move(rows.names);
  set.images = store->size() == 0 ? torch::empty({0, 3, side_, side_}, torch::kUInt8)
                                  : torch::from_blob(
                                        const_cast<uint8_t*>((*store)[0].data()),
                                        {store->size(), 3, side_, side_}, [store](void*) {}, torch::kUInt8);
  return set;
}

ImageSplits ImageGathering::finish() {
  const auto& labels = rows_[static_cast<size_t>(needed_)].labels;
  const bool trains = needed_ == ImagePart::train;
  TORCH_CHECK(
      !labels.empty() || !reads(needed_), "data: ", source_.folder.string(), " has no picture ",
      trains ? "to train on" : std::string("of the ") + kImageParts[static_cast<size_t>(needed_)] + " set",
      " in the ", source_.reader, " format",
      splits_.bad.count() > 0 ? "; the first of " + std::to_string(splits_.bad.count()) + " bad ones: " +
                                    splits_.bad.reasons[0].first + ", " + splits_.bad.reasons[0].reason
                              : "");
  TORCH_CHECK(!trains || !reads(needed_) || std::ranges::count(labels, labels[0]) < std::ssize(labels),
              "data: all pictures to train on in ", source_.folder.string(), " are of the class ",
              quote(splits_.classes[static_cast<size_t>(labels[0])]), "; there must be two classes at least");
  splits_.train = finish(rows_[static_cast<size_t>(ImagePart::train)]);
  splits_.dev = finish(rows_[static_cast<size_t>(ImagePart::dev)]);
  splits_.test = finish(rows_[static_cast<size_t>(ImagePart::test)]);
  return std::move(splits_);
}

std::optional<ImagePart> wanted(const ImageSource& source) {
  const std::string needed = needed_set(source.only, "pictures");
  if (needed == "train") return std::nullopt;
  return needed == "dev" ? ImagePart::dev : ImagePart::test;
}

std::vector<std::string> read_class_names(const fs::path& file, int64_t count) {
  std::vector<std::string> names;
  if (!fs::exists(file)) {
    for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    return names;
  }
  for_each_line(file, [&](std::string_view line, int64_t) {
    if (!trimmed(line).empty()) names.emplace_back(trimmed(line));
  });
  return names;
}

std::vector<uint8_t> held_out(int64_t count, double share) {
  constexpr uint64_t kSeed = 1;  // never changes: results on these sets are compared over years
  std::vector<uint8_t> out(static_cast<size_t>(count));
  std::fill_n(out.begin(), std::llround(share * static_cast<double>(count)), uint8_t{1});
  LineRandom(kSeed).shuffle(out);
  return out;
}

const std::vector<Reader>& image_readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list;
    for (const auto& entry : image_entries()) list.push_back(entry.reader);
    return list;
  }();
  return all;
}

ImageSplits load_images(const ImageSource& source, const AfterImages& after_images) {
  std::vector<std::string> known;
  for (const auto& entry : image_entries()) {
    known.emplace_back(entry.reader.name);
    if (source.reader != entry.reader.name) continue;
    if (!entry.read) return generate_shapes(source.shapes);
    ImageGathering gathering(source, after_images, entry.side > 0 ? entry.side : source.side);
    entry.read(gathering);
    return gathering.finish();
  }
  TORCH_CHECK(false, "data: the reader of pictures must be one of ", join(known), ", got ",
              quote(source.reader));
}

}  // namespace quatrain::data
