#include <torch/torch.h>

#include <algorithm>
#include <system_error>

#include "data/image_readers.h"
#include "data/in_threads.h"
#include "data/random.h"
#include "data/split_files.h"
#include "data/text_file.h"
#include "quatrain/data/image.h"

/// Pictures in files, those of a class in a folder.
namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct ImageFile {
  fs::path path;
  ImagePart part;
  int64_t label;
};

constexpr const char* kWhat = "a folder for each class, with its .png, .jpg or .jpeg files";
// Pictures that are decoded together, in as many threads as there are.
constexpr int64_t kAtOnce = 256, kBytesAtOnce = 1 << 26;

/// What is in a folder and does not begin with a dot, by the bytes of its name. A link that leads nowhere is
/// a file.
std::vector<fs::path> sorted_entries(const fs::path& folder, bool folders) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (std::error_code none;
        entry.is_directory(none) == folders && !entry.path().filename().string().starts_with('.'))
      entries.push_back(entry.path());
  TORCH_CHECK(!error, "data: the folder ", folder.string(), " cannot be read: ", error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_image(const fs::path& file) {
  const std::string ending = lower_case(file.extension().string());
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

std::vector<fs::path> images_of(const fs::path& folder) {
  auto files = sorted_entries(folder, /*folders=*/false);
  std::erase_if(files, [](const fs::path& file) { return !is_image(file); });
  return files;
}

/// Where a picture of the training folder goes.
ImagePart part_of(const fs::path& file, double dev_share, double test_share) {
  const std::string name = file.parent_path().filename().string() + "/" + file.filename().string();
  const double place = static_cast<double>(hash_of(name) >> 11) * 0x1p-53;
  return place < test_share               ? ImagePart::test
         : place < test_share + dev_share ? ImagePart::dev
                                          : ImagePart::train;
}

struct Layout {
  fs::path train, dev, test;  // empty: the set has no folder
};

Layout find_layout(const ImageSource& source) {
  check_folder(source.reader, source.folder, kWhat);
  // One of pictures alone is a class, whatever its name.
  const auto folder = [&](const std::string& name) {
    const fs::path here = source.folder / name;
    return fs::is_directory(here) &&
                   (!sorted_entries(here, /*folders=*/true).empty() || images_of(here).empty())
               ? here
               : fs::path();
  };
  Layout layout{folder("train"), {}, folder("test")};
  for (const auto& stem : kDevStems)
    if (layout.dev.empty()) layout.dev = folder(stem);
  if (!layout.train.empty()) return layout;
  TORCH_CHECK(layout.dev.empty() && layout.test.empty(), "data: there is a folder ",
              (layout.test.empty() ? layout.dev : layout.test).string(), " but no folder train beside it");
  return {source.folder, {}, {}};
}

void add_files(std::vector<ImageFile>& files, const fs::path& folder, ImagePart part,
               const std::vector<std::string>& classes) {
  for (const auto& entry : sorted_entries(folder, /*folders=*/true)) {
    const auto found = std::ranges::find(classes, entry.filename().string());
    TORCH_CHECK(found != classes.end(), "data: ", entry.string(),
                " is a class that the training set has not (", shorten(join(classes)), ")");
    for (auto& file : images_of(entry)) files.push_back({std::move(file), part, found - classes.begin()});
  }
}

/// The files of all sets, and the classes.
std::vector<ImageFile> list_files(const ImageSource& source, std::vector<std::string>& classes) {
  const Layout layout = find_layout(source);
  const double dev_share = layout.dev.empty() ? source.dev_share : 0;
  const double test_share = layout.test.empty() ? source.test_share : 0;
  std::vector<ImageFile> files;
  for (const auto& folder : sorted_entries(layout.train, /*folders=*/true)) {
    const auto images = images_of(folder);
    TORCH_CHECK(!images.empty(), "data: the class ", folder.string(),
                " has no picture (.png, .jpg or .jpeg); remove the folder, or put pictures there");
    for (const auto& image : images)
      files.push_back({image, part_of(image, dev_share, test_share), std::ssize(classes)});
    classes.push_back(folder.filename().string());
  }
  TORCH_CHECK(!classes.empty(), "data: there is no folder of a class in ", layout.train.string(),
              "; the folders format needs ", kWhat);
  if (!layout.dev.empty()) add_files(files, layout.dev, ImagePart::dev, classes);
  if (!layout.test.empty()) add_files(files, layout.test, ImagePart::test, classes);
  return files;
}

}  // namespace

void read_image_folders(ImageGathering& gathering) {
  std::vector<std::string> classes;
  const auto files = list_files(gathering.source(), classes);
  gathering.set_classes(std::move(classes));
  const auto at_once = static_cast<size_t>(
      std::clamp<int64_t>(kBytesAtOnce / (3 * gathering.side() * gathering.side()), 1, kAtOnce));
  for (size_t begin = 0; begin < files.size(); begin += at_once) {
    const size_t count = std::min(at_once, files.size() - begin);
    std::vector<at::Tensor> images(count);
    std::vector<std::string> problems(count);
    for_each_in_threads(static_cast<int64_t>(count), [&](int64_t number) {
      const auto i = static_cast<size_t>(number);
      try {
        images[i] = fit_image(read_image(files[begin + i].path), gathering.side());
      } catch (const c10::Error& error) {
        problems[i] = error.what_without_backtrace();
      }
    });
    for (size_t i = 0; i < count; ++i) {
      const auto& [path, part, label] = files[begin + i];
      if (!problems[i].empty())
        gathering.refuse(part, "the file cannot be read as a picture", path.string(), problems[i]);
      else
        gathering.add(part, {images[i].data_ptr<uint8_t>(), static_cast<size_t>(images[i].numel())}, label,
                      path.string());
    }
  }
}

}  // namespace quatrain::data
