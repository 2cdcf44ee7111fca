#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/data/image_set.h"
#include "quatrain/data/sequence_store.h"

/// The readers of pictures, one a file; image_set.cpp lists them under their names.
namespace quatrain::data {

enum class ImagePart { train, dev, test };
inline constexpr std::array kImageParts{"train", "dev", "test"};

/// Gathers a dataset: refuses what is bad or counts it, and stores the rest.
class ImageGathering {
 public:
  ImageGathering(const ImageSource& source, const AfterImages& after_images, int64_t side);

  /// An error, or with skip_bad a count. `reason` is the same for all of its kind, `sentence` tells of this
  /// one and names its place.
  void refuse(ImagePart part, const std::string& reason, const std::string& place,
              const std::string& sentence);
  /// Counts a picture that belongs to no class.
  void leave_out(ImagePart part, const std::string& reason, const std::string& place);
  /// Takes a picture, 3 * side * side bytes, whose label is to be among the classes. The name of its file is
  /// kept of a set to score.
  void add(ImagePart part, std::span<const uint8_t> image, int64_t label, const std::string& place,
           std::string name = "");
  /// Says that a set is there without the others.
  void read_alone(ImagePart part) { needed_ = part, only_ = part; }
  /// Says that the others are there, and are not read where one set is wanted and the classes are known.
  void read_wanted();
  /// The set that there must be.
  ImagePart needed() const { return needed_; }
  bool reads(ImagePart part) const { return !only_ || only_ == part; }
  bool reads_all() const { return !only_; }
  /// Counts pictures of sets that are not read.
  void pass_over(size_t count) { splits_.passed_over += static_cast<int64_t>(count); }
  /// Says of which sets the training set's folder gives a share.
  void divide(bool dev, bool test) { splits_.divided_dev = dev, splits_.divided_test = test; }
  /// To be called before the first picture is added.
  void set_classes(std::vector<std::string> classes);

  const ImageSource& source() const { return source_; }
  int64_t side() const { return side_; }
  ImageSplits finish();

 private:
  struct Rows {
    SequenceStore<uint8_t> images;
    std::vector<int64_t> labels;
    std::vector<std::string> names;
  };
  ImageSet finish(Rows& rows) const;

  const ImageSource& source_;
  const AfterImages& after_images_;
  ImagePart needed_ = ImagePart::train;
  std::optional<ImagePart> only_;
  int64_t side_, done_ = 0;
  std::array<Rows, kImageParts.size()> rows_;
  ImageSplits splits_;
};

/// A file without a header: records of so many bytes of a label and a picture, as its red, green and blue
/// plane.
class ImageRecords {
 public:
  /// An error where the file's length does not fit.
  ImageRecords(std::filesystem::path file, int64_t side, int64_t label_bytes = 0);

  int64_t count() const { return count_; }
  const std::filesystem::path& file() const { return file_; }

  /// The label of a record, of which the bytes before the picture and the number from 0 on are given.
  using LabelOf = std::function<int64_t(std::span<const uint8_t>, int64_t)>;
  /// `dev`: which of the records are dev instead; empty: none.
  void add_to(ImageGathering& gathering, ImagePart part, const LabelOf& label_of,
              std::span<const uint8_t> dev = {}) const;

 private:
  std::filesystem::path file_;
  int64_t bytes_, label_bytes_, count_ = 0;
};

/// The dev or test set that is wanted, which may be there without a training set; otherwise nothing.
std::optional<ImagePart> wanted(const ImageSource& source);

/// Names of classes, a line each, without empty lines; of a file that is missing as many numbers as `count`.
std::vector<std::string> read_class_names(const std::filesystem::path& file, int64_t count);

/// Which of so many pictures are dev (1): exactly so many as the share tells, and the same each time.
std::vector<uint8_t> held_out(int64_t count, double share);

void read_cifar10(ImageGathering& gathering);
void read_cifar100(ImageGathering& gathering);
void read_cifar100_coarse(ImageGathering& gathering);
void read_image_planes(ImageGathering& gathering);
void read_image_folders(ImageGathering& gathering);

}  // namespace quatrain::data
