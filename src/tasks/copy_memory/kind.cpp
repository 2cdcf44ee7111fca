#include "tasks/copy_memory/kind.h"

#include "quatrain/nn/weights.h"
#include "tasks/copy_memory/data.h"
#include "tasks/data_folder.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

class CopyMemoryKind : public Kind {
 public:
  const About& about() const override {
    static const About about{
        .name = "copy_memory",
        .summary =
            "Symbols, recalled by a recurrent network after a lag (the copy memory task of QRNN's "
            "authors). `accuracy` is the share of the recalled symbols that are right; a guesser that "
            "remembers nothing has 1 / symbols.",
        .reads = "the digits to remember",
        .unit = "steps",
        .figures = {{"accuracy", "symbols recalled", Figure::Format::share, true, "", false, 0.01, &share_of},
                    {"loss", "loss"}},
        .facts = {},
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<CopyMemoryOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    if (!request.folder.empty()) throw nothing_to_read(recipe.name, "sequences");
    return std::make_unique<CopyMemoryData>(std::move(recipe));
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& checkpoint) const override {
    auto model = std::make_unique<CopyMemoryModel>(std::move(recipe));
    nn::load_weights(model->module(), checkpoint / "model.safetensors");
    return model;
  }
};

}  // namespace

const Kind& copy_memory() {
  static const CopyMemoryKind kind;
  return kind;
}

}  // namespace quatrain::tasks
