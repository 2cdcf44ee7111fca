#include "quatrain/data/dataset.h"
#include "quatrain/nn/activation.h"
#include "quatrain/nn/attention.h"
#include "quatrain/nn/encoder.h"
#include "quatrain/nn/init.h"
#include "quatrain/train/optimizer.h"
#include "quatrain/train/recipe.h"
#include "quatrain/train/schedule.h"
#include "quatrain/train/trainer.h"

namespace quatrain::train {
namespace {

// The names of enumerators, from the rooms that define them.
template <typename... Enumerators>
std::vector<std::string> names(Enumerators... values) {
  return {name(values)...};
}

std::vector<std::string> reader_names() {
  std::vector<std::string> all;
  for (const auto& reader : data::readers()) all.push_back(reader.name);
  return all;
}

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> all{"automatic"};
  for (const auto tokenizer : data::kTokenizers) all.push_back(data::name(tokenizer));
  return all;
}

constexpr double kLargestSize = 1 << 20;
constexpr double kLargestCount = 1e12;

// One shape for all entries reads better than what fits on a line.
// clang-format off
std::vector<Key> make_keys() {
  using R = Recipe;
  using nn::AttentionKind, nn::HeadSplit, nn::Initialiser, nn::NormStyle, nn::Scope;
  return {
      {"task", "kind", [](R& r) -> Field { return &r.task.kind; },
       "What is learned: a label for each text.", {"text_classification"}},
      {"task", "data", [](R& r) -> Field { return &r.task.data; },
       "Where the texts come from: the reader of a format. `agreement` generates its sentences; with a "
       "folder it reads real ones there, as `sva` does.", reader_names()},
      {"task", "folder", [](R& r) -> Field { return &r.task.folder; },
       "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
       "counts."},
      {"task", "tokenizer", [](R& r) -> Field { return &r.task.tokenizer; },
       "How a text becomes words: `automatic` is the reader's own, `whitespace` takes the words between "
       "spaces, `lowercase` lowers them, `simple` also cuts punctuation off.", tokenizer_names()},
      {"task", "min_count", [](R& r) -> Field { return &r.task.min_count; },
       "Words seen less often in the training set become `<unk>`.", {}, 1, kLargestCount},
      {"task", "max_vocabulary", [](R& r) -> Field { return &r.task.max_vocabulary; },
       "Most words a model knows, the commonest first.", {}, 3, kLargestSize * 16},
      {"task", "max_length", [](R& r) -> Field { return &r.task.max_length; },
       "Longer texts lose their end; 0: none does.", {}, 0, kLargestSize},
      {"task", "vectors", [](R& r) -> Field { return &r.task.vectors; },
       "File of pretrained word vectors (`NAME.bf16` with `NAME.vocab` beside it, or GloVe's text "
       "format); empty: none. A relative path that is not here is looked for in the data folder."},
      {"task", "freeze_vectors", [](R& r) -> Field { return &r.task.freeze_vectors; },
       "Pretrained vectors stay as they are."},

      {"agreement", "train", [](R& r) -> Field { return &r.agreement.train; },
       "Generated sentences to train on.", {}, 10, 1e8},
      {"agreement", "dev", [](R& r) -> Field { return &r.agreement.dev; },
       "Generated sentences that select.", {}, 10, 1e8},
      {"agreement", "test", [](R& r) -> Field { return &r.agreement.test; },
       "Generated sentences that are scored once, at the end.", {}, 10, 1e8},
      {"agreement", "seed", [](R& r) -> Field { return &r.agreement.seed; },
       "Seed of the sentences.", {}, 0, kLargestCount},

      {"model", "algebra", [](R& r) -> Field { return &r.model.algebra; },
       "What the layers multiply with: `real`, `quaternion`, `octonion`, `clifford(2,1)` .. (`quatrain "
       "info algebras` lists them); `phm(4)` learns the algebra from a random start, `phm(quaternion)` "
       "from a table, `wkp(4)` with a weight for each summand."},
      {"model", "scope", [](R& r) -> Field { return &r.model.scope; },
       "Which linear maps are in the algebra: all of them, or those of the attention alone (QNLP's "
       "partial model).", names(Scope::full, Scope::partial)},
      {"model", "norm", [](R& r) -> Field { return &r.model.norm; },
       "Layer norm before or after each residual sum, or none and a learned scale instead (PHYDI).",
       names(NormStyle::pre, NormStyle::post, NormStyle::phydi)},
      {"model", "printed", [](R& r) -> Field { return &r.model.printed; },
       "Both sub-layers of an encoder layer in one residual sum, as PHYDI prints them: (4) with `norm = post`, "
       "(5) with `phydi`."},
      {"model", "norm_per_component", [](R& r) -> Field { return &r.model.norm_per_component; },
       "Layer norm of each component by itself."},
      {"model", "attention", [](R& r) -> Field { return &r.model.attention; },
       "Softmax over n component-wise score maps (QNLP) or over one real map (PHM); `automatic` is "
       "component-wise where the algebra is fixed and real where it is learned.",
       names(AttentionKind::automatic, AttentionKind::componentwise, AttentionKind::real)},
      {"model", "packed", [](R& r) -> Field { return &r.model.packed; },
       "One layer for query, key and value instead of three."},
      {"model", "split", [](R& r) -> Field { return &r.model.split; },
       "How heads are cut: inside each component, so that a head holds whole hypercomplex numbers, or by a plain "
       "split as PHM prints it (real attention only).", names(HeadSplit::inside, HeadSplit::printed)},
      {"model", "activation", [](R& r) -> Field { return &r.model.activation; },
       "Activation of the feed-forward layers, component by component.", nn::activation_names()},
      {"model", "initialiser", [](R& r) -> Field { return &r.model.initialiser; },
       "How weights are drawn: uniform or polar, with Glorot's or He's variance; `polar_paper` as QRNN "
       "prints it.",
       names(Initialiser::glorot, Initialiser::he, Initialiser::polar, Initialiser::polar_he, Initialiser::polar_paper, Initialiser::polar_paper_he)},
      {"model", "embedding_scale", [](R& r) -> Field { return &r.model.embedding_scale; },
       "Embeddings are multiplied by the square root of the width."},
      {"model", "width", [](R& r) -> Field { return &r.model.width; },
       "Width of the model; n times heads must divide it.", {}, 1, kLargestSize},
      {"model", "heads", [](R& r) -> Field { return &r.model.heads; },
       "Attention heads, each of whole hypercomplex numbers.", {}, 1, kLargestSize},
      {"model", "feed_forward", [](R& r) -> Field { return &r.model.feed_forward; },
       "Width inside the feed-forward layers; n must divide it.", {}, 1, kLargestSize},
      {"model", "layers", [](R& r) -> Field { return &r.model.layers; },
       "Encoder layers.", {}, 1, 1000},
      {"model", "dropout", [](R& r) -> Field { return &r.model.dropout; },
       "Share of values dropped: in the embeddings, the attention, after the activation and before each "
       "residual sum.", {}, 0, 0.99},
      {"model", "dropout_per_unit", [](R& r) -> Field { return &r.model.dropout_per_unit; },
       "Drop whole hypercomplex numbers instead of single values."},

      {"train", "optimizer", [](R& r) -> Field { return &r.train.optimizer; },
       "What moves the weights.", names(OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::adagrad, OptimizerKind::rmsprop)},
      {"train", "rate", [](R& r) -> Field { return &r.train.rate; },
       "Highest learning rate.", {}, 1e-12, 1e3},
      {"train", "weight_decay", [](R& r) -> Field { return &r.train.weight_decay; },
       "Weight decay of weights, not of biases, norms and learned algebras.", {}, 0, 1e3},
      {"train", "beta1", [](R& r) -> Field { return &r.train.beta1; },
       "adam, adamw: memory of the mean gradient.", {}, 0, 0.999999},
      {"train", "beta2", [](R& r) -> Field { return &r.train.beta2; },
       "adam, adamw, rmsprop: memory of the squared gradient.", {}, 0, 0.9999999},
      {"train", "momentum", [](R& r) -> Field { return &r.train.momentum; },
       "sgd, rmsprop: momentum.", {}, 0, 0.999999},
      {"train", "schedule", [](R& r) -> Field { return &r.train.schedule; },
       "How the learning rate goes after the warm-up: stays, falls with 1/sqrt(step), as a half cosine, "
       "by `factor` every `every` steps, or by `factor` whenever the dev set's figure does not improve.",
       names(ScheduleKind::constant, ScheduleKind::inverse_square_root, ScheduleKind::cosine, ScheduleKind::step, ScheduleKind::plateau)},
      {"train", "warmup", [](R& r) -> Field { return &r.train.warmup; },
       "Steps over which the learning rate rises to `rate`.", {}, 0, kLargestCount},
      {"train", "factor", [](R& r) -> Field { return &r.train.factor; },
       "step, plateau: what the learning rate is multiplied by.", {}, 0.000001, 1},
      {"train", "every", [](R& r) -> Field { return &r.train.every; },
       "step: steps between two reductions; 0: once an epoch.", {}, 0, kLargestCount},
      {"train", "plateau_patience", [](R& r) -> Field { return &r.train.plateau_patience; },
       "plateau: evaluations without a better figure that are forgiven before each reduction.",
       {}, 0, kLargestCount},
      {"train", "floor", [](R& r) -> Field { return &r.train.floor; },
       "cosine, plateau: least share of `rate`.", {}, 0, 1},
      {"train", "steps", [](R& r) -> Field { return &r.train.steps; },
       "Optimizer steps; 0: as many as `epochs` give.", {}, 0, kLargestCount},
      {"train", "epochs", [](R& r) -> Field { return &r.train.epochs; },
       "Passes over the training set; 0: as many as `steps` give. With both, the fewer steps.",
       {}, 0, kLargestCount},
      {"train", "batch", [](R& r) -> Field { return &r.train.batch; },
       "Texts in a batch.", {}, 1, kLargestSize},
      {"train", "accumulate", [](R& r) -> Field { return &r.train.accumulate; },
       "Batches whose gradients make one step.", {}, 1, kLargestSize},
      {"train", "clip", [](R& r) -> Field { return &r.train.clip; },
       "Largest norm of the gradient; 0: not clipped.", {}, 0, kLargestCount},
      {"train", "label_smoothing", [](R& r) -> Field { return &r.train.label_smoothing; },
       "Share of the target that is spread over all labels.", {}, 0, 0.99},
      {"train", "precision", [](R& r) -> Field { return &r.train.precision; },
       "Arithmetic of the layers; weights are float32 in both.", {"float32", "bfloat16"}},
      {"train", "evaluate_every", [](R& r) -> Field { return &r.train.evaluate_every; },
       "Steps between two looks at the dev set, each of which writes a checkpoint; 0: after each epoch.",
       {}, 0, kLargestCount},
      {"train", "patience", [](R& r) -> Field { return &r.train.patience; },
       "Evaluations without a better figure after which training stops; 0: never.", {}, 0, kLargestCount},
      {"train", "checkpoint_every", [](R& r) -> Field { return &r.train.checkpoint_every; },
       "Steps between two checkpoints beside those of the evaluations; 0: none.", {}, 0, kLargestCount},
      {"train", "keep", [](R& r) -> Field { return &r.train.keep; },
       "Checkpoints to go on from that are kept: the latest, and older ones in case it is damaged. `--keep` "
       "sets it.", {}, 1, 1000},
      {"train", "nonfinite", [](R& r) -> Field { return &r.train.nonfinite; },
       "What to do with a step whose loss or gradient is not finite: stop the run, or skip the step, which "
       "then changes no weight and is counted.", names(NonFinite::stop, NonFinite::skip)},
      {"train", "log_every", [](R& r) -> Field { return &r.train.log_every; },
       "Steps between two training lines in metrics.jsonl.", {}, 1, kLargestCount},
      {"train", "weights", [](R& r) -> Field { return &r.train.weights; },
       "What to start from: a run's folder (its best checkpoint) or a safetensors file of a model of the same "
       "make; empty: weights drawn anew. `--weights` sets it."},
      {"train", "seed", [](R& r) -> Field { return &r.train.seed; },
       "Seed of the weights, the order of the batches and the dropout.", {}, 0, kLargestCount},
      {"train", "threads", [](R& r) -> Field { return &r.train.threads; },
       "Threads to compute with; 0: as many as torch takes.", {}, 0, 1024},
      {"train", "deterministic", [](R& r) -> Field { return &r.train.deterministic; },
       "Operations of torch that may give other bits each time are errors. `--deterministic` sets it."},
      {"train", "device", [](R& r) -> Field { return &r.train.device; },
       "Where to compute: `cpu`, `cuda` or `cuda:N`. `--device` sets it."},

      {"compare", "seconds", [](R& r) -> Field { return &r.compare.seconds; },
       "About how long the twins' times are measured.", {}, 0, 1e5},
      {"compare", "layer_seconds", [](R& r) -> Field { return &r.compare.layer_seconds; },
       "About how long single layers are measured.", {}, 0, 1e5},
      {"compare", "layer_width", [](R& r) -> Field { return &r.compare.layer_width; },
       "Inputs and outputs of the single layers; a multiple of 8.", {}, 8, 16384},
  };
}
// clang-format on

}  // namespace

const std::vector<Key>& recipe_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

}  // namespace quatrain::train
