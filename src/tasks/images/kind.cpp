#include "tasks/images/kind.h"

#include <stdexcept>

#include "quatrain/nn/safetensors.h"
#include "tasks/images/data.h"
#include "tasks/images/model.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

/// Runs of Fixup lack two of its scalars where they were trained before they were added.
void check_fixup(const ImageModel& model, const std::filesystem::path& folder) {
  const auto file = folder / "model.safetensors";
  if (model.own().model.residual() == models::Residual::fixup &&
      !nn::read_safetensors(file).find("after_stem"))
    throw std::runtime_error("weights: '" + file.string() +
                             "' is of a Fixup network without the scalars after_stem and before_head, which "
                             "Quatrain's have had since: train it again");
}

class ImageKind : public Kind {
 public:
  const About& about() const override {
    using Format = Figure::Format;
    static const About about{
        .name = "images",
        .summary =
            "A class for each picture, by a residual network of convolutions (PHResNet): generated shapes, "
            "CIFAR, your own files.",
        .reads = "the path of a picture",
        .unit = "pictures",
        .figures = {{"accuracy", "accuracy", Format::share, true},
                    {"top5", "among the first five", Format::share, true, "", true},
                    {"f1", "F1", Format::share, true, "", true},
                    {"precision", "precision", Format::share, true, "", true},
                    {"loss", "loss", Format::number, false, "", true}},
        .facts = {{"encoder_parameters", "of the convolutions", Format::count}},
        .answers = true,
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<ImageOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    return load_images_of(std::move(recipe), request);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& folder) const override {
    // The scale comes with the weights.
    auto model = std::make_unique<ImageModel>(std::move(recipe), read_labels(folder / kClassesFile),
                                              data::PixelScale{});
    check_fixup(*model, folder);
    load_own_weights(model->module(), folder,
                     "recipe.toml and classes.txt (" + std::to_string(model->classes.size()) + " classes)");
    return model;
  }
};

}  // namespace

const Kind& images() {
  static const ImageKind kind;
  return kind;
}

}  // namespace quatrain::tasks
