#include "data/image_readers.h"
#include "data/text_file.h"

/// CIFAR's binary files: records of a label, or of two, and the red, green and blue plane.
namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct Cifar {
  std::vector<std::string> subfolders, train, test;
  const char* names;                         // of classes
  int64_t classes;                           // as published
  int64_t label_bytes;                       // before a picture
  int64_t label_at;                          // which of them counts
  const char* pickles = "cifar-100-python";  // folder of the version for Python
  const char* pickle = "meta";               // a file of it
};

/// Names the version for Python, which torchvision downloads, where it is there in place of the binary one.
void refuse_pickles(const ImageSource& source, const Cifar& cifar) {
  for (const auto& sub : cifar.subfolders)
    if (fs::exists(source.folder / sub / cifar.train[0])) return;
  for (const auto& here : {source.folder / cifar.pickles, source.folder})
    TORCH_CHECK(!fs::exists(here / cifar.pickle), "data: ", here.string(),
                " is the set's version for Python; the ", source.reader,
                " format needs the binary version, with ", cifar.train[0], ", which is another download");
}

void read_cifar(ImageGathering& gathering, const Cifar& cifar) {
  const auto& source = gathering.source();
  std::vector<std::string> files = cifar.train;
  files.insert(files.end(), cifar.test.begin(), cifar.test.end());
  refuse_pickles(source, cifar);
  const fs::path folder = find_folder(source.reader, source.folder, cifar.subfolders, files);
  std::vector<std::string> classes = read_class_names(folder / cifar.names, cifar.classes);
  TORCH_CHECK(std::ssize(classes) == cifar.classes, "data: ", (folder / cifar.names).string(), " must name ",
              cifar.classes, " classes, a line each, got ", classes.size(),
              "; copy it again, or remove it, and classes are called by their numbers");
  gathering.set_classes(std::move(classes));
  const auto open = [&](const std::string& name) {
    return ImageRecords(folder / name, gathering.side(), cifar.label_bytes);
  };
  const auto label = [&](std::span<const uint8_t> bytes, int64_t) -> int64_t {
    return bytes[static_cast<size_t>(cifar.label_at)];
  };
  std::vector<ImageRecords> train;
  int64_t count = 0;
  for (const auto& name : cifar.train) count += train.emplace_back(open(name)).count();
  const auto dev = held_out(count, source.dev_share);
  std::span<const uint8_t> rest = dev;
  for (const auto& file : train) {
    file.add_to(gathering, ImagePart::train, label, rest);
    rest = rest.subspan(static_cast<size_t>(file.count()));
  }
  for (const auto& name : cifar.test) open(name).add_to(gathering, ImagePart::test, label);
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
                         .label_at = 0,
                         .pickles = "cifar-10-batches-py",
                         .pickle = "batches.meta"});
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
