#include <c10/util/Exception.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "data/image_readers.h"
#include "data/split_files.h"
#include "data/text_file.h"

/// Pictures as bytes, without a header, and their labels in a file beside them.
namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct Planes {
  ImageRecords pictures;
  std::string labels;  // a byte a picture

  Planes(const ImageGathering& gathering, const fs::path& folder, const std::string& stem)
      : pictures(folder / (stem + ".u8"), gathering.side()) {
    const fs::path file = folder / (stem + ".labels.u8");
    TORCH_CHECK(fs::exists(file), "data: there are pictures in ", pictures.file().string(),
                ", but no labels in ", file.string());
    const auto count = static_cast<int64_t>(fs::file_size(file));
    TORCH_CHECK(count == pictures.count(), "data: ", pictures.file().string(), " has ", pictures.count(),
                " pictures, but ", file.string(), " has ", count, " labels");
    labels.resize(static_cast<size_t>(count));
    TORCH_CHECK(open_named(file).read(labels.data(), count), "data: ", file.string(),
                " cannot be read; copy it again");
  }
  void add_to(ImageGathering& gathering, ImagePart part, std::span<const uint8_t> dev = {}) const {
    pictures.add_to(
        gathering, part,
        [this](auto, int64_t i) -> int64_t { return static_cast<uint8_t>(labels[static_cast<size_t>(i)]); },
        dev);
  }
};

/// The file of a set; an empty path where there is none.
fs::path find_planes(const fs::path& folder, ImagePart part) {
  return find_one(stems_of(part), [&](const std::string& stem) {
    const fs::path file = folder / (stem + ".u8");
    return fs::exists(file) ? file : fs::path();
  });
}

/// Gives the classes their names: those of a file, or `known` ones, or numbers.
void name_classes(ImageGathering& gathering, const fs::path& folder, const Planes& planes,
                  const std::vector<std::string>& known) {
  const fs::path names = folder / "classes.txt";
  if (!known.empty() && !fs::exists(names)) return gathering.set_classes(known);
  const std::set<uint8_t> labels(planes.labels.begin(), planes.labels.end());
  const int64_t classes = labels.empty() ? 0 : *labels.rbegin() + 1;
  TORCH_CHECK(fs::exists(names) || std::ssize(labels) == classes, "data: the labels of ",
              planes.pictures.file().string(), " go up to ", classes - 1, ", but only ", labels.size(),
              " of these classes have a picture; name the classes in ", names.string(), ", a line each");
  gathering.set_classes(read_class_names(names, classes));
}

const std::vector<std::string> kPlaneFolders{"", "cifar10"};

/// Reads the one set that is wanted, where there is a file of it.
bool read_alone(ImageGathering& gathering) {
  const auto& source = gathering.source();
  const auto part = alone(source);
  if (!part) return false;
  for (const auto& sub : kPlaneFolders) {
    const fs::path folder = sub.empty() ? source.folder : source.folder / sub;
    const fs::path file = find_planes(folder, *part);
    if (file.empty()) continue;
    const Planes planes(gathering, folder, file.stem().string());
    gathering.read_alone(*part);
    name_classes(gathering, folder, planes, source.classes);
    planes.add_to(gathering, *part);
    return true;
  }
  return false;
}

}  // namespace

void read_image_planes(ImageGathering& gathering) {
  if (read_alone(gathering)) return;
  const auto& source = gathering.source();
  const fs::path folder = find_folder(source.reader, source.folder, kPlaneFolders, {"train.u8"});
  const Planes train(gathering, folder, "train");
  name_classes(gathering, folder, train, {});
  const fs::path dev = find_planes(folder, ImagePart::dev);
  const bool has_dev = !dev.empty();
  train.add_to(gathering, ImagePart::train, held_out(train.pictures.count(), has_dev ? 0 : source.dev_share));
  if (has_dev) Planes(gathering, folder, dev.stem().string()).add_to(gathering, ImagePart::dev);
  if (fs::exists(folder / "test.u8")) Planes(gathering, folder, "test").add_to(gathering, ImagePart::test);
}

}  // namespace quatrain::data
