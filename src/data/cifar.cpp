#include <c10/util/Exception.h>

#include <fstream>

#include "data/image_readers.h"
#include "data/text_file.h"

/// CIFAR's binary files: records of a label, or of two, and the red, green and blue plane.
namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct Cifar {
  std::vector<std::string> subfolders, train, test;
  const char* names;    // of classes
  int64_t classes;      // as published
  int64_t label_bytes;  // before a picture
  int64_t label_at;     // which of them counts
};

int64_t record_bytes(const ImageGathering& gathering, const Cifar& cifar) {
  return cifar.label_bytes + 3 * gathering.side() * gathering.side();
}

int64_t records(const fs::path& file, int64_t record) {
  const auto size = static_cast<int64_t>(fs::file_size(file));
  TORCH_CHECK(size > 0 && size % record == 0, "data: the length of ", file.string(),
              " must be a multiple of ", record, " bytes, those of a picture and its label, got ", size,
              "; it is cut off, or of another kind: copy or unpack it again");
  return size / record;
}

/// Returns how many there were. `first`: the number of the first one among all to train on.
int64_t read_records(ImageGathering& gathering, const Cifar& cifar, const fs::path& file, ImagePart part,
                     const std::vector<bool>& dev, int64_t first) {
  const int64_t bytes = record_bytes(gathering, cifar), count = records(file, bytes);
  std::ifstream stream = open_file(file);
  std::vector<uint8_t> record(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < count; ++i) {
    stream.read(reinterpret_cast<char*>(record.data()), bytes);
    TORCH_CHECK(stream, "data: ", file.string(), " cannot be read beyond picture ", i, "; copy it again");
    const bool is_dev = part == ImagePart::train && dev[static_cast<size_t>(first + i)];
    gathering.add(is_dev ? ImagePart::dev : part,
                  std::span(record).subspan(static_cast<size_t>(cifar.label_bytes)),
                  record[static_cast<size_t>(cifar.label_at)],
                  file.string() + ", picture " + std::to_string(i) + " (from 0 on)");
  }
  return count;
}

void read_cifar(ImageGathering& gathering, const Cifar& cifar) {
  const auto& source = gathering.source();
  std::vector<std::string> files = cifar.train;
  files.insert(files.end(), cifar.test.begin(), cifar.test.end());
  const fs::path folder = find_folder(source.reader, source.folder, cifar.subfolders, files);
  gathering.set_classes(read_class_names(folder / cifar.names, cifar.classes));
  int64_t count = 0;
  for (const auto& file : cifar.train) count += records(folder / file, record_bytes(gathering, cifar));
  const auto dev = held_out(count, source.dev_share);
  int64_t first = 0;
  for (const auto& file : cifar.train)
    first += read_records(gathering, cifar, folder / file, ImagePart::train, dev, first);
  for (const auto& file : cifar.test) read_records(gathering, cifar, folder / file, ImagePart::test, dev, 0);
}

const std::vector<std::string> kFoldersOf100{"", "cifar-100-binary", "cifar100/cifar-100-binary"};

}  // namespace

void read_cifar10(ImageGathering& gathering) {
  read_cifar(gathering, {.subfolders = {"", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"},
                         .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                   "data_batch_4.bin", "data_batch_5.bin"},
                         .test = {"test_batch.bin"},
                         .names = "batches.meta.txt",
                         .classes = 10,
                         .label_bytes = 1,
                         .label_at = 0});
}

void read_cifar100(ImageGathering& gathering) {
  read_cifar(gathering, {.subfolders = kFoldersOf100,
                         .train = {"train.bin"},
                         .test = {"test.bin"},
                         .names = "fine_label_names.txt",
                         .classes = 100,
                         .label_bytes = 2,
                         .label_at = 1});
}

void read_cifar100_coarse(ImageGathering& gathering) {
  read_cifar(gathering, {.subfolders = kFoldersOf100,
                         .train = {"train.bin"},
                         .test = {"test.bin"},
                         .names = "coarse_label_names.txt",
                         .classes = 20,
                         .label_bytes = 2,
                         .label_at = 0});
}

}  // namespace quatrain::data
