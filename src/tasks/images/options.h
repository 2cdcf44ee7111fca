#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/data/image_loader.h"
#include "quatrain/models/resnet.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// What a recipe of kind images sets.
struct ImageOptions : Options {
  ImageOptions();

  data::ImageSource source;
  std::vector<std::string> classes;        ///< their names; empty: the data's own
  std::optional<data::ColourMode> colour;  ///< none: by the first convolution's algebra
  data::ImageAugmentation augmentation;
  models::ResNetOptions model{0, 0};  ///< its channels and classes come with colour and data
  bool mirrored = false;              ///< an answer is the mean over a picture and its mirror image
  double label_smoothing = 0;         ///< share of the target that is spread over all classes
  int64_t top = 1;                    ///< classes that an answer names

  std::unique_ptr<Options> clone() const override { return std::make_unique<ImageOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;

  /// Rows and columns of a picture.
  int64_t side() const;
  /// n of the first convolution.
  int64_t stem_n() const { return model.real_stem() ? 1 : model.algebra().n; }
  /// What the channels are: rgb, or four where n of the first convolution is 2 or 4, unless the recipe says
  /// so.
  data::ColourMode mode() const;
  /// The model with its sizes.
  models::ResNetOptions network(int64_t classes) const;
};

}  // namespace quatrain::tasks
