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

fs::path labels_of(const fs::path& folder, const std::string& stem) {
  return folder / (stem + ".labels.u8");
}

struct Planes {
  ImageRecords pictures;
  std::string labels;  // a byte a picture

  Planes(const ImageGathering& gathering, const fs::path& folder, const std::string& stem)
      : pictures(folder / (stem + ".u8"), gathering.side()) {
    const fs::path file = labels_of(folder, stem);
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
  return find_one(stems_of(kImageParts[static_cast<size_t>(part)]), [&](const std::string& stem) {
    const fs::path file = folder / (stem + ".u8"), labels = labels_of(folder, stem);
    TORCH_CHECK(fs::exists(file) || !fs::exists(labels), "data: there are labels in ", labels.string(),
                ", but no pictures in ", file.string());
    return fs::exists(file) ? file : fs::path();
  });
}

const std::vector<std::string> kPlaneFolders{"", "cifar10"};
constexpr const char* kNames = "classes.txt";

/// The classes by their names, or else by their numbers.
std::vector<std::string> classes_of(const Planes& planes, const fs::path& folder) {
  const fs::path names = folder / kNames;
  const std::set<uint8_t> labels(planes.labels.begin(), planes.labels.end());
  const int64_t classes = labels.empty() ? 0 : *labels.rbegin() + 1;
  TORCH_CHECK(fs::exists(names) || std::ssize(labels) == classes, "data: the labels of ",
              planes.pictures.file().string(), " go up to ", classes - 1, ", but only ", labels.size(),
              " of these classes have a picture; name the classes in ", names.string(), ", a line each");
  return read_class_names(names, classes);
}

/// The dev or test set that is wanted, of a folder without a training set.
bool read_alone(ImageGathering& gathering) {
  const auto& source = gathering.source();
  const auto part = wanted(source);
  if (!part) return false;
  std::vector<fs::path> folders;
  for (const auto& sub : kPlaneFolders) folders.push_back(sub.empty() ? source.folder : source.folder / sub);
  if (std::ranges::any_of(folders, [](const fs::path& folder) { return fs::exists(folder / "train.u8"); }))
    return false;
  for (const auto& folder : folders) {
    const fs::path file = find_planes(folder, *part);
    if (file.empty()) continue;
    const Planes planes(gathering, folder, file.stem().string());
    const auto& known = source.classes;
    const auto written =
        known.empty() ? classes_of(planes, folder) : read_class_names(folder / kNames, std::ssize(known));
    TORCH_CHECK(known.empty() || written == known, "data: the classes of ", file.string(), " are called ",
                shorten(join(written)), ", but must be ", shorten(join(known)), "; name them so in ",
                (folder / kNames).string(), ", a line each, if they are the same");
    gathering.read_alone(*part);
    gathering.set_classes(written);
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
  gathering.set_classes(classes_of(train, folder));
  const fs::path dev = find_planes(folder, ImagePart::dev);
  const bool has_dev = !dev.empty();
  train.add_to(gathering, ImagePart::train, held_out(train.pictures.count(), has_dev ? 0 : source.dev_share));
  if (has_dev) Planes(gathering, folder, dev.stem().string()).add_to(gathering, ImagePart::dev);
  if (!find_planes(folder, ImagePart::test).empty())
    Planes(gathering, folder, "test").add_to(gathering, ImagePart::test);
}

}  // namespace quatrain::data
