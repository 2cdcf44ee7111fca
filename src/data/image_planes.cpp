#include <c10/util/Exception.h>

#include <algorithm>
#include <fstream>

#include "data/image_readers.h"
#include "data/split_files.h"
#include "data/text_file.h"

/// Pictures as bytes, without a header, and their labels in a file beside them.
namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostLabels = size_t{1} << 31;

struct Planes {
  fs::path file;
  std::string labels;  // a byte a picture
};

Planes open_planes(const ImageGathering& gathering, const fs::path& folder, const std::string& stem) {
  Planes planes{folder / (stem + ".u8"), {}};
  const fs::path labels = folder / (stem + ".labels.u8");
  TORCH_CHECK(fs::exists(labels), "data: there are pictures in ", planes.file.string(), ", but no labels in ",
              labels.string());
  planes.labels = read_file(labels, kMostLabels);
  const int64_t picture = 3 * gathering.side() * gathering.side();
  const auto size = static_cast<int64_t>(fs::file_size(planes.file));
  TORCH_CHECK(size % picture == 0, "data: the length of ", planes.file.string(), " must be a multiple of ",
              picture, " bytes, those of a picture of ", gathering.side(), " x ", gathering.side(), ", got ",
              size, "; it is cut off, or its pictures are of another size");
  TORCH_CHECK(size / picture == std::ssize(planes.labels), "data: ", planes.file.string(), " has ",
              size / picture, " pictures, but ", labels.string(), " has ", planes.labels.size(), " labels");
  return planes;
}

void add_planes(ImageGathering& gathering, const Planes& planes, ImagePart part,
                const std::vector<bool>& dev) {
  std::ifstream stream = open_file(planes.file);
  std::vector<uint8_t> picture(static_cast<size_t>(3 * gathering.side() * gathering.side()));
  for (size_t i = 0; i < planes.labels.size(); ++i) {
    stream.read(reinterpret_cast<char*>(picture.data()), std::ssize(picture));
    TORCH_CHECK(stream, "data: ", planes.file.string(), " cannot be read beyond picture ", i,
                "; copy it again");
    gathering.add(!dev.empty() && dev[i] ? ImagePart::dev : part, picture,
                  static_cast<uint8_t>(planes.labels[i]),
                  planes.file.string() + ", picture " + std::to_string(i) + " (from 0 on)");
  }
}

}  // namespace

void read_image_planes(ImageGathering& gathering) {
  const auto& source = gathering.source();
  const fs::path folder = find_folder(source.reader, source.folder, {"", "cifar10"}, {"train.u8"});
  const Planes train = open_planes(gathering, folder, "train");
  int64_t classes = 0;
  for (const char label : train.labels) classes = std::max<int64_t>(classes, static_cast<uint8_t>(label) + 1);
  gathering.set_classes(read_class_names(folder / "classes.txt", classes));

  const auto stem = std::ranges::find_if(
      kDevStems, [&](const std::string& name) { return fs::exists(folder / (name + ".u8")); });
  const bool has_dev = stem != kDevStems.end();
  add_planes(gathering, train, ImagePart::train,
             held_out(std::ssize(train.labels), has_dev ? 0 : source.dev_share));
  if (has_dev) add_planes(gathering, open_planes(gathering, folder, *stem), ImagePart::dev, {});
  if (fs::exists(folder / "test.u8"))
    add_planes(gathering, open_planes(gathering, folder, "test"), ImagePart::test, {});
}

}  // namespace quatrain::data
