#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/image_input.h"
#include "quatrain/models/resnet.h"
#include "quatrain/tasks/kind.h"
#include "tasks/images/options.h"

namespace quatrain::tasks {

/// A residual network with the names of its classes, and the mean and deviation of its training set's pixels
/// as buffers.
class ImageModel : public Model {
 public:
  ImageModel(Recipe recipe, std::vector<std::string> classes, const data::PixelScale& scale);

  torch::nn::Module& module() override { return *network; }
  /// {pictures (B, channels, side, side)}: logits (B, classes).
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  std::string line_problem(const std::string& line) const override;
  /// Paths of pictures in; the likeliest class or classes out, each with a tab and its probability.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  bool answers_the_rest() const override { return true; }
  size_t portion() const override { return static_cast<size_t>(std::min<int64_t>(64, recipe_.batch)); }
  void store(const std::filesystem::path& folder) const override;
  std::vector<std::string> keeps_own(const std::filesystem::path& checkpoint) const override;
  std::vector<int64_t> head_rows(const std::filesystem::path& checkpoint) const override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;

  const ImageOptions& own() const { return recipe_.own<ImageOptions>(); }
  /// Log-probabilities (B, classes) by which pictures are scored, float32: of each picture, or of the mean
  /// over it and its mirror image.
  at::Tensor score(const at::Tensor& images);
  /// That of the training set, as the network's buffers hold it.
  data::PixelScale scale() const;
  /// That which a checkpoint's weights go with.
  static data::PixelScale stored_scale(const std::filesystem::path& checkpoint);

  std::vector<std::string> classes;
  models::ResNet network{nullptr};
};

/// The names of the classes in a checkpoint.
inline constexpr const char* kClassesFile = "classes.txt";

}  // namespace quatrain::tasks
