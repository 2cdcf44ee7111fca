#include "tasks/images/data.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <set>

#include "quatrain/data/image_set.h"
#include "support/numbers.h"
#include "support/telling.h"
#include "support/text.h"
#include "tasks/data_folder.h"
#include "tasks/images/model.h"
#include "tasks/images/task.h"
#include "train/checksum.h"

namespace quatrain::tasks {
namespace {

// Tells now and then how far reading is.
data::AfterImages telling(const DataRequest& request) {
  if (!request.tell) return {};
  return [telling = Telling(request.tell)](int64_t done) mutable {
    telling([&] { return grouped(done) + " pictures read"; });
  };
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

// What tells a set from all others: its pictures, their classes and these classes' names.
std::string checksum_of(const data::ImageSet& set, const std::vector<std::string>& classes) {
  std::string parts = train::checksum(bytes_of(set.images)) + train::checksum(bytes_of(set.labels));
  for (const auto& name : classes) parts += name + "\n";
  return train::checksum(parts);
}

// As the recipe has it. Files that hold a name a line need names of one line, and figures different ones.
void name_classes(const Recipe& recipe, std::vector<std::string>& classes) {
  const auto& names = recipe.own<ImageOptions>().classes;
  if (!names.empty() && names.size() != classes.size())
    recipe.refuse("task.classes", "must name the " + std::to_string(classes.size()) +
                                      " classes of the data, got " +
                                      counted(static_cast<int64_t>(names.size()), "name"));
  if (!names.empty()) classes = names;
  std::set<std::string> known;
  for (const auto& name : classes) {
    TORCH_CHECK(name.find_first_of("\t\r\n") == name.npos && find_bad_utf8(name) == name.npos,
                "images: the name of a class must be UTF-8 and have neither tabs nor line breaks, got ",
                quote(name), "; rename its folder");
    TORCH_CHECK(known.insert(name).second, "images: two classes are called ", quote(name),
                "; give each a name of its own with task.classes");
  }
}

// Of a set to score that is a share of a folder, where one may expect that all of it is scored.
std::optional<std::string> division_of(const data::ImageSplits& splits, const std::string& split,
                                       const std::filesystem::path& folder) {
  const bool of_dev = split == "dev", of_test = split == "test";
  if (!(of_dev && splits.divided_dev) && !(of_test && splits.divided_test)) return std::nullopt;
  const int64_t all = splits.train.size() + splits.dev.size() + splits.test.size() + splits.passed_over;
  return "the " + split + " set is " + std::to_string((of_dev ? splits.dev : splits.test).size()) +
         " of the " + counted(all, "picture") + ", chosen by their names, because there is no folder " +
         (folder / split).string() + ": put the classes' folders into it, and all their pictures are scored";
}

// Those of a run name its numbers; other data cannot be scored by it.
void require_same(const std::vector<std::string>& classes, const std::vector<std::string>& known) {
  if (classes != known)
    throw std::runtime_error("the classes of the pictures (" + shorten(join(classes)) +
                             ") differ from the run's (" + shorten(join(known)) +
                             "): use pictures of the run's classes, below FOLDER/test where some have none");
}

}  // namespace

data::ImageLoaderOptions loading(const Recipe& recipe, const data::PixelScale& scale, bool training) {
  const auto& own = recipe.own<ImageOptions>();
  data::ImageLoaderOptions options;
  // As many threads as the run has, each with a batch that waits; more would fill memory with batches.
  constexpr int64_t kMostThreads = 8;
  options.threads = std::min<int64_t>(at::get_num_threads(), kMostThreads);
  options.ahead = std::max(options.ahead, options.threads);
  options.batch_size = recipe.batch;
  options.shuffle = training;
  options.seed = recipe.train.seed;
  if (training) options.augmentation = own.augmentation;
  options.scale = scale;
  options.mode = own.mode();
  return options;
}

std::vector<Input> ImageData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                     int64_t count) const {
  auto options = loading(recipe, scale_, split == "train");
  options.batch_size = size;
  options.threads = 0;
  data::ImageLoader loader(sets_->find(split)->second, options);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < std::min(count, loader.batches()); ++i) {
    const data::ImageBatch batch = loader.batch(0, i);
    inputs.push_back({{batch.images}, batch.size()});
  }
  return inputs;
}

std::unique_ptr<Model> ImageData::make_model(const Recipe& recipe) const {
  return std::make_unique<ImageModel>(recipe, classes_, scale_);
}

std::unique_ptr<train::Task> ImageData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<ImageTask>(std::dynamic_pointer_cast<ImageModel>(std::move(model)), sets_,
                                     checksums_);
}

std::unique_ptr<Data> load_images_of(Recipe recipe, const DataRequest& request) {
  auto& own = recipe.own<ImageOptions>();
  settle_folder(own.source.reader, own.source.folder, data::image_readers(), request.folder, recipe.name);
  const auto* trained = dynamic_cast<const ImageModel*>(request.model);
  data::ImageSource source = own.source;
  source.only = request.split;
  if (trained) source.classes = trained->classes;
  data::ImageSplits splits = data::load_images(source, telling(request));
  name_classes(recipe, splits.classes);
  std::vector<std::string> notes = notes_of(splits.bad, "picture");
  note_head(notes, request, splits.classes, kClassesFile);
  if (trained) require_same(splits.classes, trained->classes);
  const data::PixelScale scale = trained                      ? trained->scale()
                                 : request.vocabulary.empty() ? data::measure_pixels(splits.train.images)
                                                              : ImageModel::stored_scale(request.vocabulary);
  const auto divided = division_of(splits, request.split, source.folder);
  ImageSets sets;
  Checksums checksums;
  for (const auto& [name, set] :
       {std::pair{"train", &splits.train}, std::pair{"dev", &splits.dev}, std::pair{"test", &splits.test}}) {
    if (set->size() == 0 || (!request.split.empty() && request.split != name)) continue;
    checksums[std::string(name) + ".pictures"] = checksum_of(*set, splits.classes);
    sets.emplace(name, std::move(*set));
  }
  if (!request.folder.empty() && divided) notes.push_back(*divided);
  return std::make_unique<ImageData>(std::move(recipe), std::move(sets), std::move(splits.classes), scale,
                                     std::move(notes), std::move(checksums));
}

}  // namespace quatrain::tasks
