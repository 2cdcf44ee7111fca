#include <numeric>

#include "quatrain/algebra.h"
#include "quatrain/train/recipe.h"
#include "quatrain/train/session.h"

namespace quatrain::train {
namespace {

std::string where(const Recipe& recipe, const std::string& key) {
  const auto found = recipe.origins.find(key);
  return found == recipe.origins.end() ? "recipe '" + recipe.name + "'" : found->second;
}

std::string nearest_multiples(int64_t value, int64_t of) {
  const int64_t below = value / of * of;
  return (below > 0 ? std::to_string(below) + ", " : "") + std::to_string(below + of);
}

void check_model(const Recipe& recipe) {
  const auto& model = recipe.model;
  algebra::Spec spec;
  try {
    spec = algebra::Spec::parse(model.algebra);
  } catch (const std::invalid_argument& error) {
    std::string_view what = error.what();  // "algebra: ..."
    if (what.starts_with("algebra: ")) what.remove_prefix(std::string_view("algebra: ").size());
    throw RecipeError(where(recipe, "model.algebra") + ": model.algebra: " + std::string(what));
  }
  const std::string n = "n = " + std::to_string(spec.n) + " (" + model.algebra + ")";
  // Whichever key was written last is likeliest the wrong one; the width is what the rule is about.
  const bool inside = model.split == "inside";  // heads are cut inside each component
  const int64_t unit = inside ? spec.n * model.heads : std::lcm<int64_t>(spec.n, model.heads);
  if (model.width % unit != 0)
    throw RecipeError(where(recipe, "model.width") + ": model.width must be divisible by " +
                      (inside ? "n * heads = " : "n and heads: ") + std::to_string(unit) + " with " + n +
                      " and heads = " + std::to_string(model.heads) + ", got " + std::to_string(model.width) +
                      " (nearest: " + nearest_multiples(model.width, unit) + ")");
  if (model.scope == "full" && model.feed_forward % spec.n != 0)
    throw RecipeError(where(recipe, "model.feed_forward") + ": model.feed_forward must be divisible by " + n +
                      ", got " + std::to_string(model.feed_forward) +
                      " (nearest: " + nearest_multiples(model.feed_forward, spec.n) + ")");
  if (model.attention == "componentwise" && spec.learned && spec.n > 1)
    throw RecipeError(where(recipe, "model.attention") +
                      ": model.attention = 'componentwise' needs a fixed algebra, got " + model.algebra +
                      " (take 'real' or 'automatic')");
  if (model.attention == "componentwise" && !inside && spec.n > 1)
    throw RecipeError(where(recipe, "model.attention") +
                      ": model.attention = 'componentwise' needs model.split = 'inside', got 'printed' (take "
                      "'real' or 'automatic')");
  if (model.printed && model.norm == "pre")
    throw RecipeError(where(recipe, "model.printed") +
                      ": model.printed is a form of model.norm = 'post' or 'phydi', got 'pre'");
}

}  // namespace

void check(const Recipe& recipe) {
  check_model(recipe);
  try {
    parse_device(recipe.train.device);
  } catch (const std::invalid_argument& error) {
    throw RecipeError(where(recipe, "train.device") + ": train.device: " + error.what());
  }
  if (recipe.train.steps == 0 && recipe.train.epochs == 0)
    throw RecipeError(where(recipe, "train.steps") +
                      ": train.steps and train.epochs are both 0: set one of them");
  constexpr int64_t kOctonion = 8;
  if (const int64_t width = recipe.compare.layer_width; width % kOctonion != 0)
    throw RecipeError(where(recipe, "compare.layer_width") +
                      ": compare.layer_width must be divisible by 8, the octonions' n, got " +
                      std::to_string(width) + " (nearest: " + nearest_multiples(width, kOctonion) + ")");
  for (const auto& twin : recipe.twins) twin_recipe(recipe, twin);
}

}  // namespace quatrain::train
