#include "tasks/regression/kind.h"

#include "quatrain/nn/weights.h"
#include "tasks/data_folder.h"
#include "tasks/regression/data.h"

namespace quatrain::tasks {
namespace {

class RegressionKind : public Kind {
 public:
  const About& about() const override {
    static const About about{
        .name = "regression",
        .summary =
            "A multiplication rule, learned from examples of it by one layer: the product of an "
            "algebra, whose table the layer's A becomes, or a rotation of the 3-D space (PHM, figure 2). "
            "`structure_error` is the distance between the learned table and the algebra's own, divided by "
            "the norm of the algebra's own.",
        .reads = "the numbers of an example",
        .unit = "examples",
        .figures = {{"loss", "loss"}, {"structure_error", "structure error"}},
        .facts = {},
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<RegressionOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    if (!request.folder.empty()) throw nothing_to_read(recipe.name, "examples");
    return std::make_unique<RegressionData>(std::move(recipe), request.split);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& checkpoint) const override {
    auto model = std::make_unique<RegressionModel>(std::move(recipe));
    nn::load_weights(model->module(), checkpoint / "model.safetensors");
    return model;
  }
};

}  // namespace

const Kind& regression() {
  static const RegressionKind kind;
  return kind;
}

}  // namespace quatrain::tasks
