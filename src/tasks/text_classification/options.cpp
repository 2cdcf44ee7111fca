#include "tasks/text_classification/options.h"

#include <numeric>

#include "quatrain/nn/activation.h"
#include "tasks/recipe_keys.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kAutomatic = "automatic";

std::vector<std::string> reader_names() {
  std::vector<std::string> all;
  for (const auto& reader : data::readers()) all.push_back(reader.name);
  return all;
}

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> all{kAutomatic};
  for (const auto tokenizer : data::kTokenizers) all.push_back(data::name(tokenizer));
  return all;
}

}  // namespace

TextOptions::TextOptions() {
  vocabulary.max_size = 50000;
  task.max_length = 256;
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void TextOptions::describe(train::Keys& keys) {
  constexpr double kLargestSize = 1 << 20;
  constexpr double kLargestCount = 1e12;
  using nn::AttentionKind, nn::HeadSplit, nn::NormStyle, nn::Scope;
  using I = nn::Initialiser;
  using train::Value;

  keys.table("task", "What is learned, from which data.");
  keys.text("data", source.reader,
            "The reader of the texts' format. `agreement` generates its sentences; where a folder is given, it "
            "reads real sentences there instead, as `sva` does.", reader_names());
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change();
  keys.add("split", [this] { return Value(split); },
           [this](const Value& value) {
             split = std::get<std::string>(value);
             source.shares.reset();
             if (!split.empty()) source.shares = data::Shares::parse(split);
           },
           "Shares of train, dev and test, such as `80/10/10`, where `folder` is one file of `tsv` data. The cut is the "
           "same each time; equal texts stay together. `--split` sets it.");
  keys.add("tokenizer",
           [this] { return Value(std::string(source.tokenizer ? data::name(*source.tokenizer) : kAutomatic)); },
           [this](const Value& value) {
             source.tokenizer.reset();
             if (const auto& name = std::get<std::string>(value); name != kAutomatic)
               source.tokenizer = data::parse_tokenizer(name);
           },
           "How a text becomes words: `automatic` is the reader's own, `whitespace` takes the words between "
           "spaces, `lowercase` lowers them, `simple` also cuts punctuation off.").values = tokenizer_names();
  keys.number("min_count", vocabulary.min_count, 1, kLargestCount,
              "Words seen less often in the training set become `<unk>`.");
  keys.number("max_vocabulary", vocabulary.max_size, 3, kLargestSize * 16,
              "Most words a model knows, the commonest first.");
  keys.number("max_length", task.max_length, 0, kLargestSize, "Longer texts are cut off after so many words; 0: no limit.");
  keys.text("vectors", vectors,
            "File of pretrained word vectors (`NAME.bf16` with `NAME.vocab` beside it, or GloVe's text "
            "format); empty: none. A relative path that is not here is looked for in the data folder.").may_change();
  keys.flag("freeze_vectors", model.freeze_pretrained(), "Pretrained vectors stay as they are.");

  keys.table("agreement", "Sizes of the generated sentences, where `task.data` is `agreement`.");
  keys.number("train", source.agreement.train, 10, 1e8, "Generated sentences to train on.");
  keys.number("dev", source.agreement.dev, 10, 1e8, "Generated sentences of the dev set, which selects the best checkpoint.");
  keys.number("test", source.agreement.test, 10, 1e8, "Generated sentences of the test set, which is scored once, at the end.");
  keys.number("seed", source.agreement.seed, 0, kLargestCount, "Seed of the sentences.");

  keys.table("model", "The Transformer. Models over other algebras are twins of the same recipe.");
  keys.algebra("algebra", model.map_settings.algebra,
               "What the layers multiply with: `real`, `quaternion`, `octonion`, `clifford(2,1)` .. (`quatrain "
               "info algebras` lists them); `phm(4)` learns the algebra from a random start, `phm(quaternion)` "
               "from a table, `wkp(4)` with a weight for each summand.");
  keys.choice("scope", model.block_settings.scope, {Scope::full, Scope::partial},
              "Which linear maps are in the algebra: all of them, or those of the attention alone (QNLP's "
              "partial model).");
  keys.choice("norm", model.block_settings.norm, {NormStyle::pre, NormStyle::post, NormStyle::phydi},
              "`pre`: layer norm before each sub-layer. `post`: after each residual sum. `phydi`: no layer norm; a learned scale, 0 at the start, in each residual sum.");
  keys.flag("printed", model.block_settings.printed,
            "Both sub-layers of an encoder layer in one residual sum, as PHYDI prints them: its equation (4) with "
            "`norm = post`, its equation (5) with `norm = phydi`.");
  keys.flag("norm_per_component", model.block_settings.norm_per_component, "Layer norm is applied to each component separately.");
  keys.choice("attention", model.head_settings.attention, {AttentionKind::automatic, AttentionKind::componentwise, AttentionKind::real},
              "Softmax over n component-wise score maps (QNLP) or over one real map (PHM); `automatic` is "
              "component-wise where the algebra is fixed and real where it is learned.");
  keys.flag("packed", model.head_settings.packed, "One layer for query, key and value instead of three.");
  keys.choice("split", model.head_settings.split, {HeadSplit::inside, HeadSplit::printed},
              "How heads are cut: inside each component, so that a head holds whole hypercomplex numbers, or by a plain "
              "split as PHM prints it (real attention only).");
  keys.text("activation", model.hidden_settings.activation, "Activation of the feed-forward layers, component by component.",
            nn::activation_names());
  keys.choice("initialiser", model.map_settings.initialiser, {I::glorot, I::he, I::lecun, I::polar, I::polar_he, I::polar_paper, I::polar_paper_he},
              "How weights are drawn: uniform or polar, with Glorot's or He's variance; `lecun`: normal, with variance 1/inputs; `polar_paper` as QRNN "
              "prints it.");
  keys.flag("embedding_scale", model.embedding_scale(), "Embeddings are multiplied by the square root of the width.");
  keys.number("width", model.block_settings.width, 1, kLargestSize, "Width of the model; n times heads must divide it.");
  keys.number("heads", model.block_settings.heads, 1, kLargestSize, "Attention heads, each of whole hypercomplex numbers.");
  keys.number("feed_forward", model.block_settings.feed_forward, 1, kLargestSize,
              "Width inside the feed-forward layers; n must divide it.");
  keys.number("layers", model.layers(), 1, 1000, "Encoder layers.");
  keys.number("dropout", model.drop_settings.dropout, 0, 0.99,
              "Share of values dropped: in the embeddings, the attention, after the activation and before each "
              "residual sum.");
  keys.flag("dropout_per_unit", model.hidden_settings.dropout_per_unit, "Drop whole hypercomplex numbers instead of single values.");

  keys.table("train", "How it is trained.");
  keys.number("label_smoothing", task.label_smoothing, 0, 0.99, "Share of the target that is spread over all labels.");
}
// clang-format on

void TextOptions::check(const Recipe& recipe) const {
  const nn::AlgebraSpec& algebra = model.algebra();
  const std::string n = "n = " + std::to_string(algebra.n) + " (" + algebra.text() + ")";
  const auto refuse_size = [&](const char* key, int64_t size, const std::string& by, int64_t unit) {
    recipe.refuse(key, "must be divisible by " + by + ", got " + std::to_string(size) +
                           " (nearest: " + nearest_multiples(size, unit) + ")");
  };
  // Whichever key was written last is likeliest the wrong one; the width is what the rule is about.
  const bool inside = model.split() == nn::HeadSplit::inside;  // heads are cut inside each component
  const int64_t unit = inside ? algebra.n * model.heads() : std::lcm<int64_t>(algebra.n, model.heads());
  if (model.width() % unit != 0)
    refuse_size("model.width", model.width(),
                (inside ? "n * heads = " : "n and heads: ") + std::to_string(unit) + " with " + n +
                    " and heads = " + std::to_string(model.heads()),
                unit);
  if (model.scope() == nn::Scope::full && model.feed_forward() % algebra.n != 0)
    refuse_size("model.feed_forward", model.feed_forward(), n, algebra.n);
  if (model.attention() == nn::AttentionKind::componentwise && algebra.learned && algebra.n > 1)
    recipe.refuse("model.attention", "= 'componentwise' needs a fixed algebra, got " + algebra.text() +
                                         " (use 'real' or 'automatic')");
  if (model.attention() == nn::AttentionKind::componentwise && !inside && algebra.n > 1)
    recipe.refuse(
        "model.attention",
        "= 'componentwise' needs model.split = 'inside', got 'printed' (use 'real' or 'automatic')");
  if (model.printed() && model.norm() == nn::NormStyle::pre)
    recipe.refuse("model.printed", "is a form of model.norm = 'post' or 'phydi', got 'pre'");
}

}  // namespace quatrain::tasks
