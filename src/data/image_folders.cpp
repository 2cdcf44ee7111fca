#include <torch/types.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
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

/// Of a class: its good pictures to train on, the bad ones, and those of dev and test.
struct ClassCount {
  int64_t train = 0, bad = 0, held_out = 0;
};

constexpr std::array kEndings{".png", ".jpg", ".jpeg", ".jpe", ".jfif"};
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
  return std::ranges::find(kEndings, lower_case(file.extension().string())) != kEndings.end();
}

/// All endings, for messages. `last`: the word before the last one.
std::string endings_of_images(const std::string& last) {
  std::string text = kEndings[0];
  for (size_t i = 1; i < kEndings.size(); ++i)
    text += (i + 1 < kEndings.size() ? ", " : " " + last + " ") + kEndings[i];
  return text;
}

std::string other_ending() {
  return "they end in neither " + endings_of_images("nor");
}

std::string needed_files() {
  return "a folder for each class, with its " + endings_of_images("or") + " files";
}

/// The pictures that lie in the folder itself.
std::vector<fs::path> images_in(const fs::path& folder) {
  auto files = sorted_entries(folder, /*folders=*/false);
  std::erase_if(files, [](const fs::path& file) { return !is_image(file); });
  return files;
}

void add_files_below(std::vector<fs::path>& files, const fs::path& folder, std::set<fs::path>& seen) {
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  TORCH_CHECK(!error, "data: the folder ", folder.string(), " cannot be read: ", error.message());
  if (!seen.insert(place).second) return;
  std::ranges::move(sorted_entries(folder, /*folders=*/false), std::back_inserter(files));
  for (const auto& sub : sorted_entries(folder, /*folders=*/true)) add_files_below(files, sub, seen);
}

/// The files of a class, in its folder and the folders below. A folder is read once, and none that the class
/// lies in: links may lead there.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code error;
  fs::path above = fs::canonical(folder.parent_path(), error);
  std::set<fs::path> seen{above.root_path()};
  for (; above.has_relative_path(); above = above.parent_path()) seen.insert(above);
  std::vector<fs::path> files;
  add_files_below(files, folder, seen);
  return files;
}

/// Where a picture of a training class goes.
ImagePart part_of(const fs::path& file, const fs::path& folder, double dev_share, double test_share) {
  const std::string name = (folder.filename() / file.lexically_relative(folder)).string();
  const double place = fraction_of(name);
  return place < test_share               ? ImagePart::test
         : place < test_share + dev_share ? ImagePart::dev
                                          : ImagePart::train;
}

struct Layout {
  fs::path train, dev, test;  // empty: the set has no folder
};

fs::path Layout::*folder_of(ImagePart part) {
  return part == ImagePart::train ? &Layout::train : part == ImagePart::dev ? &Layout::dev : &Layout::test;
}

/// Folders of pictures below others are parts of a class, so that a set under another name would become one.
void check_classes(const fs::path& folder) {
  for (const auto& entry : sorted_entries(folder, /*folders=*/true))
    TORCH_CHECK(!lower_case(entry.filename().string()).starts_with("train") || !images_in(entry).empty() ||
                    sorted_entries(entry, /*folders=*/true).empty(),
                "data: ", entry.string(),
                " has folders, but no picture of its own; call it train if it is the training set, "
                "otherwise give the class another name");
}

Layout find_layout(ImageGathering& gathering) {
  const ImageSource& source = gathering.source();
  check_folder(source.reader, source.folder, needed_files());
  // One of pictures alone is a class, whatever its name.
  const auto folder = [&](const std::string& name) {
    const fs::path here = source.folder / name;
    return fs::is_directory(here) &&
                   (!sorted_entries(here, /*folders=*/true).empty() || images_in(here).empty())
               ? here
               : fs::path();
  };
  const auto part = wanted(source);
  if (part && folder("train").empty())
    if (const fs::path found = find_one(stems_of(kImageParts[static_cast<size_t>(*part)]), folder);
        !found.empty()) {
      gathering.read_alone(*part);
      Layout one;
      one.*folder_of(*part) = found;
      return one;
    }
  const Layout layout{folder("train"), find_one(kDevStems, folder), folder("test")};
  if (!layout.train.empty()) return layout;
  TORCH_CHECK(layout.dev.empty() && layout.test.empty(), "data: there is a folder ",
              (layout.test.empty() ? layout.dev : layout.test).string(), " but no folder train beside it");
  check_classes(source.folder);
  return {source.folder, {}, {}};
}

/// Counts the pictures that are in no class, though they lie where one may take them to be in one.
void count_others(ImageGathering& gathering, const Layout& layout) {
  for (const auto& [part, folder] : {std::pair{ImagePart::train, layout.train},
                                     {ImagePart::dev, layout.dev},
                                     {ImagePart::test, layout.test}})
    if (!folder.empty() && gathering.reads(part))
      for (const auto& image : images_in(folder))
        gathering.leave_out(part, "they are in no folder of a class", image.string());
  const fs::path& whole = gathering.source().folder;
  if (layout.train.empty() || layout.train == whole || !gathering.reads(ImagePart::train)) return;
  constexpr const char* kBeside = "they are beside train, and not in it";
  for (const auto& image : images_in(whole)) gathering.leave_out(ImagePart::train, kBeside, image.string());
  for (const auto& folder : sorted_entries(whole, /*folders=*/true)) {
    std::error_code error;
    const fs::directory_iterator readable(folder, error);
    if (error || folder == layout.train || folder == layout.dev || folder == layout.test) continue;
    for (const auto& file : files_of(folder))
      if (is_image(file)) gathering.leave_out(ImagePart::train, kBeside, file.string());
  }
}

void add_files(std::vector<ImageFile>& files, ImageGathering& gathering, const fs::path& folder,
               ImagePart part, const std::vector<std::string>& classes) {
  if (folder.empty() || !gathering.reads(part)) return;
  const std::string whose = gathering.needed() == ImagePart::train ? "the training set" : "the model";
  for (const auto& entry : sorted_entries(folder, /*folders=*/true)) {
    const auto found = std::ranges::find(classes, entry.filename().string());
    for (auto& file : files_of(entry))
      if (!is_image(file))
        gathering.leave_out(part, other_ending(), file.string());
      else if (found != classes.end())
        files.push_back({std::move(file), part, found - classes.begin()});
      else
        gathering.refuse(part, whose + " has not their class", file.string(),
                         "data: " + entry.string() + " is a class that " + whose + " has not (" +
                             shorten(join(classes)) + ")");
  }
}

/// The files of a set that is read alone, and the classes.
std::vector<ImageFile> list_files(ImageGathering& gathering, const Layout& layout,
                                  std::vector<std::string>& classes) {
  const ImagePart part = gathering.needed();
  const fs::path& folder = layout.*folder_of(part);
  classes = gathering.source().classes;
  if (classes.empty())
    for (const auto& entry : sorted_entries(folder, /*folders=*/true))
      classes.push_back(entry.filename().string());
  std::vector<ImageFile> files;
  add_files(files, gathering, folder, part, classes);
  count_others(gathering, layout);
  return files;
}

/// The files of all sets, and the classes.
std::vector<ImageFile> list_files(ImageGathering& gathering, std::vector<std::string>& classes) {
  const ImageSource& source = gathering.source();
  const Layout layout = find_layout(gathering);
  if (layout.train.empty()) return list_files(gathering, layout, classes);
  gathering.read_wanted();
  gathering.divide(layout.dev.empty(), layout.test.empty());
  const double dev_share = layout.dev.empty() ? source.dev_share : 0;
  const double test_share = layout.test.empty() ? source.test_share : 0;
  std::vector<ImageFile> files;
  for (const auto& folder : sorted_entries(layout.train, /*folders=*/true)) {
    bool empty = true;
    for (auto& file : files_of(folder)) {
      const ImagePart part = part_of(file, folder, dev_share, test_share);
      if (is_image(file)) {
        empty = false;
        files.push_back({std::move(file), part, std::ssize(classes)});
      } else if (gathering.reads(part)) {
        gathering.leave_out(part, other_ending(), file.string());
      }
    }
    TORCH_CHECK(!empty, "data: the class ", folder.string(), " has no picture (", endings_of_images("or"),
                "); remove the folder, or put pictures there");
    classes.push_back(folder.filename().string());
  }
  TORCH_CHECK(!classes.empty(), "data: there is no folder of a class in ", layout.train.string(),
              "; the folders format needs ", needed_files());
  add_files(files, gathering, layout.dev, ImagePart::dev, classes);
  add_files(files, gathering, layout.test, ImagePart::test, classes);
  count_others(gathering, layout);
  gathering.pass_over(std::erase_if(files, [&](const auto& file) { return !gathering.reads(file.part); }));
  return files;
}

/// A class that has lost its pictures to train on is no better than one that never had any.
void check_counts(const std::vector<ClassCount>& counts, const std::vector<std::string>& classes,
                  const fs::path& folder) {
  for (size_t i = 0; i < counts.size(); ++i)
    TORCH_CHECK(counts[i].train > 0, "data: the class ", quote(classes[i]), " in ", folder.string(),
                " has no picture left to train on (", counts[i].bad, " bad, ", counts[i].held_out,
                " in dev or test); remove its folder, or put more pictures there");
}

}  // namespace

void read_image_folders(ImageGathering& gathering) {
  std::vector<std::string> classes;
  const auto files = list_files(gathering, classes);
  gathering.set_classes(classes);
  std::vector<ClassCount> counts(classes.size());
  const auto at_once = static_cast<size_t>(
      std::clamp<int64_t>(kBytesAtOnce / (3 * gathering.side() * gathering.side()), 1, kAtOnce));
  for (size_t begin = 0; begin < files.size(); begin += at_once) {
    const size_t count = std::min(at_once, files.size() - begin);
    std::vector<at::Tensor> images(count);
    std::vector<std::string> problems(count);
    for_each_in_threads(static_cast<int64_t>(count), [&](int64_t number) {
      const auto i = static_cast<size_t>(number);
      try {
        const fs::path& path = files[begin + i].path;
        images[i] = fit_image(read_image(path), gathering.side(), path.string());
      } catch (const c10::Error& error) {
        problems[i] = error.what_without_backtrace();
      }
    });
    for (size_t i = 0; i < count; ++i) {
      const auto& [path, part, label] = files[begin + i];
      ClassCount& count_of = counts[static_cast<size_t>(label)];
      ++(part != ImagePart::train ? count_of.held_out : problems[i].empty() ? count_of.train : count_of.bad);
      if (!problems[i].empty())
        gathering.refuse(part, "the file cannot be read as a picture", path.string(), problems[i]);
      else
        gathering.add(part, {images[i].data_ptr<uint8_t>(), static_cast<size_t>(images[i].numel())}, label,
                      path.string(), path.lexically_relative(gathering.source().folder).string());
    }
  }
  // Of the other sets the classes' pictures are not known to be good.
  if (gathering.reads_all()) check_counts(counts, classes, gathering.source().folder);
}

}  // namespace quatrain::data
