#include <torch/torch.h>

#include <filesystem>

#include "cli/convert.h"
#include "cli/text_task.h"
#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"
#include "support/atomic_file.h"
#include "train/checkpoint.h"

namespace quatrain::cli {

namespace fs = std::filesystem;

nn::ConversionReport convert_run(const ConvertArguments& arguments) {
  if (!arguments.where.empty() || !arguments.except.empty() || arguments.heads > 0)
    throw UsageError(
        "convert: --where, --except and --heads are for weights files; a run is converted as its "
        "recipe's model.scope says");
  const fs::path out = fs::absolute(arguments.out).lexically_normal();
  if (fs::exists(out) && fs::equivalent(out, arguments.in))
    throw UsageError("convert: OUT is the run IN itself: choose another folder");
  TrainedText trained = load_trained(arguments.in);
  if (const auto& algebra = trained.model->options.algebra(); algebra.n > 1)
    throw UsageError("convert: the run '" + arguments.in + "' is hypercomplex already (" + algebra.text() +
                     "): name a real one");

  // The weights of component-wise attention mean something else than those of real attention.
  train::Recipe recipe = trained.recipe;
  recipe.model.algebra = nn::AlgebraSpec(arguments.algebra).text();
  recipe.model.attention = "real";
  recipe.train.weights = out.string();
  recipe.twins.clear();
  recipe.origins.clear();
  train::check(recipe);
  auto options = trained.model->options;
  models::TextClassifier twin(options.algebra(recipe.model.algebra).attention(nn::AttentionKind::real));
  nn::ConversionReport report = nn::fill_nearest(*trained.model, *twin);
  check_converted(report, arguments.in);

  const fs::path from = train::find_checkpoint(arguments.in, "best");
  if (fs::exists(out / "last") || fs::exists(out / "result.json"))
    throw UsageError("convert: '" + arguments.out + "' holds a run that was trained: choose another folder");
  fs::create_directories(out);
  train::write_checkpoint(out, "best", 0, [&](const fs::path& folder) {
    nn::save_weights(*twin, folder / "model.safetensors");
    write_text(folder / "recipe.toml", train::to_toml(recipe));
    for (const char* name : {"vocabulary.txt", "labels.txt"}) fs::copy_file(from / name, folder / name);
  });
  return report;
}

}  // namespace quatrain::cli
