#include "cli/text_task.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>

#include "quatrain/data/vectors.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "quatrain/train/checkpoint.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLeastPositions = 512;

bool needs_folder(const std::string& reader) {
  for (const auto& known : data::readers())
    if (known.name == reader) return known.needs_folder;
  return false;
}

// Settles where the data come from.
void settle_source(train::Recipe& recipe, const std::string& folder) {
  auto& task = recipe.task;
  if (!recipe.train.weights.empty())
    recipe.train.weights = fs::absolute(recipe.train.weights).lexically_normal().string();
  if (!folder.empty()) task.folder = folder;
  if (task.data == "agreement" && !task.folder.empty()) task.data = "sva";
  if (!needs_folder(task.data)) return;
  const char* everywhere = std::getenv("QUATRAIN_DATA");
  if (task.folder.empty() && everywhere) task.folder = everywhere;
  if (task.folder.empty())
    throw train::RecipeError("recipe '" + recipe.name + "' reads '" + task.data +
                             "' data and needs their folder: pass --data FOLDER or set QUATRAIN_DATA");
  task.folder = fs::absolute(task.folder).lexically_normal().string();
}

// A path of the recipe as it is, or below the data folder.
fs::path find_vectors(const train::Recipe& recipe) {
  const fs::path path = recipe.task.vectors;
  const fs::path below = fs::path(recipe.task.folder) / path;
  return fs::exists(path) || !fs::exists(below) ? path : below;
}

// Weights of the same make in the place of those that were drawn. A run's stand for the words of its
// vocabulary.
void start_from(models::TextClassifier& model, const std::string& weights,
                const data::Vocabulary& vocabulary) {
  fs::path file = weights;
  if (!fs::exists(file)) throw train::RecipeError("train.weights: there is no run or file '" + weights + "'");
  if (fs::is_directory(file)) {
    const fs::path folder = train::find_checkpoint(file, "best");
    const auto known = data::Vocabulary::load(folder / "vocabulary.txt");
    bool same = known.size() == vocabulary.size();
    for (int64_t id = 0; same && id < known.size(); ++id) same = known.word(id) == vocabulary.word(id);
    if (!same)
      throw train::RecipeError("train.weights: the run '" + weights + "' knows other words (" +
                               std::to_string(known.size()) + ") than these data give (" +
                               std::to_string(vocabulary.size()) +
                               "): start from it with its own data and its settings of [task]");
    file = folder / "model.safetensors";
  }
  nn::load_weights(*model, file);
}

models::TextClassifierOptions model_options(const train::Recipe& recipe, int64_t vocabulary, int64_t classes,
                                            int64_t pretrained_width) {
  const auto& m = recipe.model;
  return models::TextClassifierOptions(vocabulary, classes)
      .width(m.width)
      .heads(m.heads)
      .feed_forward(m.feed_forward)
      .layers(m.layers)
      .dropout(m.dropout)
      .dropout_per_unit(m.dropout_per_unit)
      .algebra(m.algebra)
      .scope(nn::parse_scope(m.scope))
      .norm(nn::parse_norm_style(m.norm))
      .printed(m.printed)
      .norm_per_component(m.norm_per_component)
      .attention(nn::parse_attention_kind(m.attention))
      .packed(m.packed)
      .split(nn::parse_head_split(m.split))
      .activation(m.activation)
      .initialiser(nn::parse_initialiser(m.initialiser))
      .embedding_scale(m.embedding_scale)
      .max_length(std::max(kLeastPositions, recipe.task.max_length))
      .pretrained_width(pretrained_width)
      .freeze_pretrained(recipe.task.freeze_vectors);
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read '" + path.string() + "'");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TextData load_text(train::Recipe recipe, const std::string& folder) {
  settle_source(recipe, folder);
  if (!recipe.task.vectors.empty())
    recipe.task.vectors = fs::absolute(find_vectors(recipe)).lexically_normal().string();
  data::Source source;
  source.reader = recipe.task.data;
  source.folder = recipe.task.folder;
  source.agreement.train = recipe.agreement.train;
  source.agreement.dev = recipe.agreement.dev;
  source.agreement.test = recipe.agreement.test;
  source.agreement.seed = static_cast<uint64_t>(recipe.agreement.seed);
  if (recipe.task.tokenizer != "automatic") source.tokenizer = data::parse_tokenizer(recipe.task.tokenizer);
  data::Splits splits = data::load(source);
  recipe.task.tokenizer = data::name(splits.tokenizer);
  const data::VocabularyOptions options{recipe.task.min_count, recipe.task.max_vocabulary};
  data::Vocabulary vocabulary = data::Vocabulary::build(splits.train, splits.tokenizer, options);
  return {std::move(recipe), std::move(splits), std::move(vocabulary)};
}

models::TextClassifier make_model(const train::Recipe& recipe, const data::Vocabulary& vocabulary,
                                  int64_t classes) {
  torch::manual_seed(static_cast<uint64_t>(recipe.train.seed));
  at::Tensor vectors;
  if (!recipe.task.vectors.empty())
    vectors =
        data::load_vectors(recipe.task.vectors, vocabulary, static_cast<uint64_t>(recipe.train.seed)).values;
  models::TextClassifier model(
      model_options(recipe, vocabulary.size(), classes, vectors.defined() ? vectors.size(1) : 0));
  if (vectors.defined()) model->set_embeddings(vectors);
  if (!recipe.train.weights.empty()) start_from(model, recipe.train.weights, vocabulary);
  return model;
}

std::unique_ptr<train::TextClassification> make_task(const train::Recipe& recipe, const TextData& data) {
  const auto classes = static_cast<int64_t>(data.splits.labels.size());
  return make_task(recipe, data, make_model(recipe, data.vocabulary, classes));
}

std::unique_ptr<train::TextClassification> make_task(const train::Recipe& recipe, const TextData& data,
                                                     models::TextClassifier model) {
  train::TextClassificationOptions options;
  options.batch_size = recipe.train.batch;
  options.max_length = recipe.task.max_length;
  options.label_smoothing = recipe.train.label_smoothing;
  options.seed = static_cast<uint64_t>(recipe.train.seed);
  options.recipe = train::to_toml(recipe);
  return std::make_unique<train::TextClassification>(std::move(model), data.splits, data.vocabulary, options);
}

train::TrainerOptions trainer_options(const train::Recipe& recipe) {
  const auto& t = recipe.train;
  train::TrainerOptions options;
  options.optimizer.kind = train::parse_optimizer(t.optimizer);
  options.optimizer.learning_rate = t.rate;
  options.optimizer.weight_decay = t.weight_decay;
  options.optimizer.beta1 = t.beta1;
  options.optimizer.beta2 = t.beta2;
  options.optimizer.momentum = t.momentum;
  options.schedule.kind = train::parse_schedule(t.schedule);
  options.schedule.warmup = t.warmup;
  options.schedule.factor = t.factor;
  options.schedule.every = t.every;
  options.schedule.patience = t.plateau_patience;
  options.schedule.floor = t.floor;
  options.steps = t.steps;
  options.epochs = t.epochs;
  options.accumulate = t.accumulate;
  options.clip = t.clip;
  options.bf16 = t.precision == "bfloat16";
  options.evaluate_every = t.evaluate_every;
  options.patience = t.patience;
  options.checkpoint_every = t.checkpoint_every;
  options.keep = t.keep;
  options.log_every = t.log_every;
  options.nonfinite = train::parse_nonfinite(t.nonfinite);
  options.deterministic = t.deterministic;
  options.seed = static_cast<uint64_t>(t.seed);
  return options;
}

void set_threads(const train::Recipe& recipe) {
  if (recipe.train.threads > 0) at::set_num_threads(static_cast<int>(recipe.train.threads));
}

TrainedText load_trained(const fs::path& run) {
  if (!fs::is_directory(run))
    throw train::RecipeError("'" + run.string() + "' is no run: name a run's folder");
  if (!train::has_checkpoint(run, "best") && !train::has_checkpoint(run, "last"))
    throw train::RecipeError("'" + run.string() + "' is no run, it has no checkpoint: name a run's folder");
  if (!train::has_checkpoint(run, "best"))
    throw std::runtime_error("run '" + run.string() +
                             "' has no checkpoint that was evaluated: go on with quatrain train " +
                             run.string() + " --resume");
  return load_checkpoint(train::find_checkpoint(run, "best"));
}

TrainedText load_checkpoint(const fs::path& folder) {
  const fs::path weights = folder / "model.safetensors";
  nn::add_algebras(weights);  // before the recipe is checked, which may name them
  TrainedText trained;
  trained.recipe = train::read_recipe((folder / "recipe.toml").string());
  trained.vocabulary = data::Vocabulary::load(folder / "vocabulary.txt");
  trained.labels = read_lines(folder / "labels.txt");
  int64_t pretrained_width = 0;
  if (!trained.recipe.task.vectors.empty()) {
    const auto stored = nn::read_safetensors(weights);
    const auto* embedding = stored.find("embedding.weight");
    TORCH_CHECK(embedding && embedding->dim() == 2, weights.string(), " has no embeddings");
    pretrained_width = embedding->size(1);
  }
  trained.model =
      models::TextClassifier(model_options(trained.recipe, trained.vocabulary.size(),
                                           static_cast<int64_t>(trained.labels.size()), pretrained_width));
  try {
    nn::load_weights(*trained.model, weights);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(error.what()) + "; do recipe.toml, vocabulary.txt (" +
                             std::to_string(trained.vocabulary.size()) + " words) and labels.txt (" +
                             std::to_string(trained.labels.size()) + " labels) beside it belong to it?");
  }
  trained.model->eval();
  return trained;
}

}  // namespace quatrain::cli
