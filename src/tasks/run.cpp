#include "quatrain/tasks/run.h"

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"
#include "support/shell_word.h"
#include "support/text.h"
#include "tasks/task_parts.h"
#include "train/run_files.h"
#include "train/state.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

// Said before a file is missed that only runs of this kind have. A recipe that cannot be read here, of
// another version perhaps, tells nothing: loading the weights does.
void require_kind(const Recipe& recipe, const std::string& weights, const fs::path& checkpoint) {
  const Kind* kind = recipe.kind;
  try {
    if (fs::exists(checkpoint / "recipe.toml"))
      kind = read_recipe((checkpoint / "recipe.toml").string()).kind;
  } catch (const RecipeError&) {
  }
  if (kind != recipe.kind)
    throw RecipeError("train.weights: the run '" + weights + "' is of kind " + kind->about().name +
                      ", and this recipe is of kind " + recipe.about().name + ": name a run of that kind");
}

// A run is used from other folders than that in which it was trained.
void make_paths_absolute(Recipe& recipe) {
  for (const train::Key& key : keys_of(recipe))
    if (const train::Value path = key.get(); key.path && !std::get<std::string>(path).empty())
      key.set(fs::absolute(std::get<std::string>(path)).lexically_normal().string());
}

// The checkpoint of the run that training starts from, or that a file of weights lies in; empty of another
// file.
fs::path start_of(const Recipe& recipe) {
  const std::string& weights = recipe.weights;
  if (!fs::exists(weights)) throw RecipeError("train.weights: there is no run or file '" + weights + "'");
  if (!fs::is_directory(weights)) {
    const fs::path folder = fs::absolute(weights).parent_path();
    if (fs::path(weights).filename() != "model.safetensors" || !fs::exists(folder / "checkpoint.json"))
      return {};
    require_kind(recipe, weights, folder);
    return folder;
  }
  if (!train::has_checkpoint(weights, "best"))
    throw RecipeError(
        "train.weights: '" + weights +
        "' is not a run with a checkpoint 'best': name the folder of such a run or a file of weights");
  const fs::path folder = train::find_checkpoint(weights, "best");
  require_kind(recipe, weights, folder);
  return folder;
}

void arrange_head(Model& model, const std::vector<int64_t>& rows) {
  if (rows.empty()) return;
  const torch::NoGradGuard no_grad;
  const at::Tensor order = torch::tensor(rows, torch::kInt64);
  for (const auto& item : model.module().named_parameters()) {
    if (!item.key().starts_with("head.")) continue;
    const at::Tensor& t = item.value();  // (labels), (labels, width) or (1, labels, width)
    at::Tensor(t).copy_(t.index_select(std::max<int64_t>(0, t.dim() - 2), order.to(t.device())));
  }
}

// Replaces the random weights by those of a model of the same structure, but of a head for other labels.
void start(Model& model) {
  const fs::path folder = start_of(model.recipe());
  if (folder.empty()) return nn::load_weights(model.module(), model.recipe().weights);
  nn::load_weights(model.module(), folder / "model.safetensors", model.keeps_own(folder));
  arrange_head(model, model.head_rows(folder));
}

std::string problem_of(const Model& model, const std::string& line) {
  // The name of a file may have any bytes.
  const bool is_name = model.answers_the_rest() && line.find('\0') == line.npos;
  const std::string problem = is_name ? "" : line_problem(line);
  return problem.empty() ? model.line_problem(line) : problem;
}

bool acts(const train::Key& key, Use use) {
  return acts_on_answers(key) && !(use == Use::scores && key.predicts);
}

void check_answers(const Recipe& recipe, const std::vector<Setting>& settings, Use use) {
  Recipe copy = recipe;  // options are reached through a mutable recipe
  const auto keys = keys_of(copy);
  for (const Setting& setting : settings) {
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const auto& one) { return one.full_name() == setting.key; });
    if (key == keys.end() || acts(*key, use)) continue;  // an unknown one is told when it is applied
    if (key->predicts)
      throw RecipeError(setting.origin + ": " + setting.key +
                        " would do nothing: it says what quatrain predict writes");
    std::vector<std::string> acting;
    for (const auto& one : keys)
      if (acts(one, use) && one.table != "train") acting.push_back(one.full_name());
    acting.emplace_back("train.threads");
    throw RecipeError(setting.origin + ": " + setting.key +
                      " cannot be changed in a run that is trained; these can: " + join(acting));
  }
}

}  // namespace

std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) {
  make_paths_absolute(recipe);
  DataRequest settled = request;
  // What is not there is told where weights are needed.
  if (!request.model && request.vocabulary.empty() && fs::exists(recipe.weights))
    settled.vocabulary = start_of(recipe);
  const Kind& kind = *recipe.kind;
  return kind.load_data(std::move(recipe), settled);
}

std::vector<std::string> notes_of_missing_sets(const Data& data) {
  std::vector<std::string> notes;
  if (!data.has("dev")) notes.emplace_back("there is no dev set: the last weights count as the best");
  if (!data.has("test")) notes.emplace_back("there is no test set: nothing is scored at the end");
  return notes;
}

std::unique_ptr<Model> make_model(const Recipe& recipe, const Data& data, bool with_weights) {
  torch::manual_seed(recipe.train.seed);
  auto model = data.make_model(recipe);
  if (with_weights && !recipe.weights.empty()) start(*model);
  return model;
}

std::unique_ptr<train::Task> make_task(const Recipe& recipe, const Data& data, bool with_weights) {
  return data.make_task(make_model(recipe, data, with_weights));
}

std::unique_ptr<Model> load_run(const fs::path& run, const std::vector<Setting>& settings, Use use) {
  if (!fs::is_directory(run))
    throw RecipeError("'" + run.string() + "' is not a run: name the folder of a run");
  if (!train::has_checkpoint(run, "best") && !train::has_checkpoint(run, "last"))
    throw RecipeError("'" + run.string() +
                      "' is not a run, because it contains no checkpoint: name the folder of a run");
  if (!train::has_checkpoint(run, "best") && !fs::exists(run / train::kResultFile))
    throw std::runtime_error("the run '" + run.string() +
                             "' has no evaluated checkpoint: continue it with quatrain train " +
                             shell_word(run) + " --resume");
  return load_checkpoint(train::find_checkpoint(run, "best"), settings, use);
}

std::unique_ptr<Model> load_checkpoint(const fs::path& folder, const std::vector<Setting>& settings,
                                       Use use) {
  nn::add_algebras(folder / "model.safetensors");  // before the recipe is read, which may name them
  const std::string file = (folder / "recipe.toml").string();
  if (!settings.empty()) check_answers(read_recipe(file), settings, use);
  Recipe recipe = read_recipe(file, settings);
  const Kind& kind = *recipe.kind;
  auto model = kind.load_model(std::move(recipe), folder);
  train::load_structures(model->module(), folder);
  model->module().eval();
  return model;
}

std::vector<std::string> changed_data(const Data& data, const fs::path& run) {
  return other_than_stored(data.checksums(), train::find_checkpoint(run, "best"));
}

Answers answer(Model& model, std::span<const std::string> lines) {
  Answers result;
  std::vector<std::string> good;
  for (const std::string& line : lines) {
    if (result.problem = problem_of(model, line); !result.problem.empty()) break;
    good.push_back(line);
  }
  for (;;) {  // what is left may have a problem of its own
    try {
      result.answers = model.predict(good);
      return result;
    } catch (const LineError& error) {
      if (error.line() >= good.size()) throw;
      result.problem = error.what();
      good.resize(error.line());
    }
  }
}

std::vector<at::Tensor> inputs_of(Model& model, const std::vector<std::string>& lines) {
  TORCH_CHECK_VALUE(!lines.empty(), "inputs: there must be at least one line");
  for (size_t i = 0; i < lines.size(); ++i)
    if (const std::string problem = problem_of(model, lines[i]); !problem.empty())
      throw LineError(i, problem);
  auto tensors = model.inputs(lines);
  for (const auto& parameter : model.module().parameters()) {
    if (!parameter.is_floating_point()) continue;
    for (auto& tensor : tensors)
      if (tensor.is_floating_point()) tensor = tensor.to(parameter.scalar_type());
    break;
  }
  return tensors;
}

void set_threads(const Recipe& recipe) {
  if (recipe.threads > 0) at::set_num_threads(static_cast<int>(recipe.threads));
}

}  // namespace quatrain::tasks
