#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/bad_examples.h"
#include "quatrain/data/dataset.h"
#include "quatrain/data/shapes.h"

namespace quatrain::data {

/// Pictures of one size and their classes. Those of files are in a mapped file, so that a set may be larger
/// than memory: they can be read, not written.
struct QUATRAIN_API ImageSet {
  at::Tensor images;  ///< (N, 3, side, side), uint8: red, green, blue
  at::Tensor labels;  ///< (N), int64: places in ImageSplits::classes
  /// Of the dev and test sets of folders: the files, by their paths below the source's folder.
  std::vector<std::string> names{};
  int64_t size() const { return images.defined() ? images.size(0) : 0; }
};

/// A dataset of pictures. The dev set selects; the test set is scored once. Either may be empty.
struct QUATRAIN_API ImageSplits {
  ImageSet train, dev, test;
  std::vector<std::string> classes;  ///< their names; at least two
  BadExamples bad;                   ///< left out where that was asked for; in no class (folders)
  /// True where dev and test are a share of the training set's folder, because they have none (folders).
  bool divided_dev = false, divided_test = false;
  int64_t passed_over = 0;  ///< pictures of the training set's folder that were not read (ImageSource::only)
};

/// Where pictures come from.
struct QUATRAIN_API ImageSource {
  std::string reader = "folders";  ///< a name among image_readers()
  std::filesystem::path folder{};  ///< where the files lie; not used by shapes
  bool skip_bad = false;           ///< leave bad pictures out and count them, instead of an error
  int64_t side = 32;               ///< of planes and folders: rows and columns of a picture
  /// Shares of the pictures to train on that become dev or test where the files have no such set (test: of
  /// folders alone). Which ones is the same each time: of folders the names decide, so that more files move
  /// none; of the others exactly so many are drawn, by seeds that never change.
  double dev_share = 0.1, test_share = 0.1;
  /// Of planes and folders: the one set that is wanted, train, dev or test; empty: all. Where there is no
  /// training set, a dev or test set is read alone. Where `classes` are given too, the pictures of the other
  /// sets of folders are not read.
  std::string only = "";
  /// The classes of such a set, by their numbers, by which it must call its own; empty: those that it has.
  std::vector<std::string> classes = {};
  ShapesOptions shapes{};  ///< of shapes alone
};

/// cifar10, cifar100, cifar100_coarse, planes, folders, shapes.
///   cifar10   data_batch_1.bin to data_batch_5.bin and test_batch.bin; names of classes in
///             batches.meta.txt
///   cifar100  train.bin and test.bin with 100 classes, or 20 (coarse); names in fine_label_names.txt and
///             coarse_label_names.txt
///   planes    train.u8, a picture after the other, each as its red, green and blue plane of side x side
///             bytes, row after row, and train.labels.u8, a byte a picture; the same of dev (or valid, or
///             val) and test, and the names of classes in classes.txt, a line each
///   folders   CLASS/NAME.png, .jpg, .jpeg, .jpe or .jfif (quatrain/data/image.h) in train, dev (or valid, or
///             val) and test, or in the folder itself; a class may have folders of any depth. Classes are
///             numbered in the order of their names' bytes. Pictures become side x side (fit_image). Names
///             that begin with a dot are passed over; a class's files with other endings, and pictures beside
///             the classes or in a folder beside train, are counted as left out
///   shapes    generated (quatrain/data/shapes.h)
/// Without its file of names a class is called by its number.
QUATRAIN_API const std::vector<Reader>& image_readers();

/// Called while pictures are read with how many are done; what it throws ends the work.
using AfterImages = std::function<void(int64_t done)>;

/// Reads or generates a dataset.
///
/// A picture that cannot be read, or a label that is not among the classes (without a file of names: among
/// those of train): one sentence with the place, what is wrong, and the way out (c10::Error); with skip_bad
/// it is counted instead. Always an error are a missing folder or file, one whose length is not that of whole
/// pictures, another number of labels than of pictures, two dev sets, a class of dev or test that train has
/// not, a class (of folders) without good pictures in train, and a train set with pictures of fewer than two
/// classes.
QUATRAIN_API ImageSplits load_images(const ImageSource& source, const AfterImages& after_images = {});

}  // namespace quatrain::data
