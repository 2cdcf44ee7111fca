#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/image_loader.h"
#include "quatrain/tasks/kind.h"
#include "tasks/images/options.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

using ImageSets = std::map<std::string, data::ImageSet, std::less<>>;

/// Pictures, their classes, and the scale of the training set or of a trained model.
class ImageData : public Data {
 public:
  ImageData(Recipe recipe, ImageSets sets, std::vector<std::string> classes, const data::PixelScale& scale,
            std::vector<std::string> notes, Checksums checksums)
      : Data(std::move(recipe)),
        sets_(std::make_shared<ImageSets>(std::move(sets))),
        classes_(std::move(classes)),
        scale_(scale),
        notes_(std::move(notes)),
        checksums_(std::move(checksums)) {}

  bool has(std::string_view split) const override { return sets_->contains(split); }
  /// {pictures (B, channels, side, side)}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
  std::vector<std::string> notes() const override { return notes_; }
  Checksums checksums() const override { return checksums_; }

 private:
  std::shared_ptr<const ImageSets> sets_;
  std::vector<std::string> classes_;
  data::PixelScale scale_;
  std::vector<std::string> notes_;
  Checksums checksums_;  // of each set's pictures
};

/// See Kind::load_data.
std::unique_ptr<Data> load_images_of(Recipe recipe, const DataRequest& request);

/// How batches are made: of a training set shuffled and augmented, of another one neither.
data::ImageLoaderOptions loading(const Recipe& recipe, const data::PixelScale& scale, bool training);

}  // namespace quatrain::tasks
