#include <torch/types.h>

#include <filesystem>
#include <optional>

#include "cli/convert.h"
#include "cli/stop.h"
#include "quatrain/nn/weights.h"
#include "quatrain/tasks/run.h"
#include "support/atomic_file.h"
#include "support/atomic_folder.h"
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
  const auto model = tasks::load_run(arguments.in);
  const nn::AlgebraSpec algebra(tasks::find_value(model->recipe(), "model.algebra").value_or("real"));
  if (algebra.n > 1)
    throw UsageError("convert: the run '" + arguments.in + "' is hypercomplex already (" + algebra.text() +
                     "): name a real one");
  const auto twin = model->in_algebra(arguments.algebra);
  nn::ConversionReport report = nn::fill_nearest(model->module(), twin->module());
  check_converted(report, arguments.in);

  if (fs::exists(out / "last") || fs::exists(out / "result.json"))
    throw UsageError("convert: '" + arguments.out + "' holds a run that was trained: choose another folder");
  const HeldStop whole;  // nothing half-written is left
  std::optional<AtomicFolder> made;
  if (!fs::exists(out)) made.emplace(out);
  train::write_checkpoint(made ? made->path() : out, "best", 0, "", [&](const fs::path& folder) {
    nn::save_weights(twin->module(), folder / "model.safetensors");
    tasks::Recipe recipe = twin->recipe();
    recipe.weights = out.string();  // where training starts
    write_text(folder / "recipe.toml", tasks::to_toml(recipe));
    twin->store(folder);
  });
  if (made) made->commit();
  return report;
}

}  // namespace quatrain::cli
