#include "tasks/transformer_keys.h"

#include <numeric>

#include "quatrain/nn/activation.h"
#include "tasks/recipe_keys.h"

namespace quatrain::tasks {

// One shape for all entries reads better than what fits on a line.
// clang-format off
void describe_transformer(train::Keys& keys, const TransformerSettings& t) {
  constexpr double kLargestSize = 1 << 20;
  using nn::AttentionKind, nn::HeadSplit, nn::NormStyle, nn::Scope;
  using I = nn::Initialiser;
  constexpr const char* kComponents = "an algebra of more than one component";
  const auto has_components = [&algebra = t.map.algebra] { return algebra.n > 1; };
  keys.algebra("algebra", t.map.algebra,
               "What the layers multiply with: `real`, `quaternion`, `octonion`, `clifford(2,1)` .. (`quatrain "
               "info algebras` lists them); `phm(4)` learns the algebra from a random start, `phm(quaternion)` "
               "from a table, `wkp(4)` with a weight for each summand.");
  keys.choice("scope", t.block.scope, {Scope::full, Scope::partial},
              "Which linear maps are in the algebra: all of them, or those of the attention alone (QNLP's "
              "partial model).").only(kComponents, has_components);
  keys.choice("norm", t.block.norm, {NormStyle::pre, NormStyle::post, NormStyle::phydi},
              "`pre`: layer norm before each sub-layer. `post`: after each residual sum. `phydi`: no layer norm; a learned scale, 0 at the start, in each residual sum.");
  keys.flag("printed", t.block.printed,
            "Both sub-layers of an encoder layer in one residual sum, as PHYDI prints them: its equation (4) with "
            "`norm = post`, its equation (5) with `norm = phydi`.");
  keys.flag("norm_per_component", t.block.norm_per_component, "Layer norm is applied to each component separately.").only(kComponents, has_components);
  keys.choice("attention", t.heads.attention, {AttentionKind::automatic, AttentionKind::componentwise, AttentionKind::real},
              "Softmax over n component-wise score maps (QNLP) or over one real map (PHM); `automatic` is "
              "component-wise where the algebra is fixed and real where it is learned.").only(kComponents, has_components);
  keys.flag("packed", t.heads.packed, "One layer for query, key and value instead of three.");
  keys.choice("split", t.heads.split, {HeadSplit::inside, HeadSplit::printed},
              "How heads are cut: inside each component, so that a head holds whole hypercomplex numbers, or by a plain "
              "split as PHM prints it (real attention only).");
  keys.text("activation", t.hidden.activation, "Activation of the feed-forward layers, component by component.",
            nn::activation_names());
  keys.choice("initialiser", t.map.initialiser, {I::glorot, I::he, I::lecun, I::polar, I::polar_he, I::polar_paper, I::polar_paper_he},
              "How weights are drawn: uniform or polar, with Glorot's or He's variance; `lecun`: normal, with variance 1/inputs; `polar_paper` as QRNN "
              "prints it.");
  keys.number("width", t.block.width, 1, kLargestSize, "Width of the model; n times heads must divide it.");
  keys.number("heads", t.block.heads, 1, kLargestSize, "Attention heads, each of whole hypercomplex numbers.");
  keys.number("feed_forward", t.block.feed_forward, 1, kLargestSize,
              "Width inside the feed-forward layers; n must divide it.");
  keys.number("dropout", t.drop.dropout, 0, 0.99,
              "Share of values dropped: in the embeddings, the attention, after the activation and before each "
              "residual sum.");
  keys.flag("dropout_per_unit", t.hidden.dropout_per_unit, "Drop whole hypercomplex numbers instead of single values.").only(kComponents, has_components);
}
// clang-format on

void check_attention(const Recipe& recipe, nn::AttentionKind attention, const nn::AlgebraSpec& algebra,
                     nn::HeadSplit split) {
  const std::string problem = nn::attention_problem(attention, algebra, split, "model.");
  if (!problem.empty())
    recipe.refuse("model.attention", "= 'componentwise' " + problem + " (use 'real' or 'automatic')");
}

void check_transformer(const Recipe& recipe, const nn::MapSettings& map, const nn::BlockSettings& block,
                       const nn::HeadSettings& heads) {
  const nn::AlgebraSpec& algebra = map.algebra;
  const std::string n = "n = " + std::to_string(algebra.n) + " (" + algebra.text() + ")";
  const auto refuse_size = [&](const char* key, int64_t size, const std::string& by, int64_t unit) {
    recipe.refuse(key, "must be divisible by " + by + ", got " + std::to_string(size) +
                           " (nearest: " + nearest_multiples(size, unit) + ")");
  };
  // Whichever key was written last is likeliest the wrong one; the width is what the rule is about.
  const bool inside = heads.split == nn::HeadSplit::inside;  // heads are cut inside each component
  const int64_t unit = inside ? algebra.n * block.heads : std::lcm<int64_t>(algebra.n, block.heads);
  if (block.width % unit != 0)
    refuse_size("model.width", block.width,
                (inside ? "n * heads = " : "n and heads: ") + std::to_string(unit) + " with " + n +
                    " and heads = " + std::to_string(block.heads),
                unit);
  if (block.scope == nn::Scope::full && block.feed_forward % algebra.n != 0)
    refuse_size("model.feed_forward", block.feed_forward, n, algebra.n);
  check_attention(recipe, heads.attention, algebra, heads.split);
  if (block.printed && block.norm == nn::NormStyle::pre)
    recipe.refuse("model.printed", "is a form of model.norm = 'post' or 'phydi', got 'pre'");
}

}  // namespace quatrain::tasks
