#include "tasks/regression/options.h"

#include "quatrain/algebra.h"
#include "support/enum_names.h"
#include "tasks/recipe_keys.h"

namespace quatrain::tasks {
namespace {

constexpr EnumNames<Rule, 2> kRules{{{Rule::product, "product"}, {Rule::rotation, "rotation"}}};

}  // namespace

const char* name(Rule rule) {
  return name_of(kRules, rule);
}

void RegressionOptions::describe(train::Keys& keys) {
  keys.table("task", "What is learned, from which data.");
  keys.choice(
      "rule", rule, {Rule::product, Rule::rotation},
      "`product`: pairs (q, p) of hypercomplex numbers and their product q * p. `rotation`: vectors of "
      "the 3-D space and what one rotation makes of them.");
  keys.text("algebra", algebra, "Whose product it is: any fixed algebra.");
  keys.number("train", train, 1, 1e6, "Examples to train on.");
  keys.number("dev", dev, 1, 1e6, "Examples of the dev set, which selects the best checkpoint.");
  keys.number("test", test, 1, 1e6, "Examples of the test set, which is scored once, at the end.");
  keys.number("seed", seed, 0, 1e12, "Seed of the examples, and of the rotation.");

  keys.table(
      "model",
      "One linear layer. For `product` its input are all products of a component of p and one of q, for "
      "`rotation` the vector.");
  keys.algebra(
      "algebra", map.map_settings.algebra,
      "What the layer multiplies with. Where it learns an algebra of the product's dimension, as `phm(4)` "
      "does, its blocks S stay the unit vectors. Then A alone is learned, and A is the multiplication rule.");
  using I = nn::Initialiser;
  keys.choice("initialiser", map.map_settings.initialiser,
              {I::glorot, I::he, I::lecun, I::polar, I::polar_he, I::polar_paper, I::polar_paper_he},
              "How weights are drawn.");
}

int64_t RegressionOptions::outputs() const {
  constexpr int64_t kSpace = 3;
  return rule == Rule::product ? algebra::Spec::parse(algebra).n : kSpace;
}

void RegressionOptions::check(const Recipe& recipe) const {
  const auto refuse_algebra = [&](const std::string& rule) {
    recipe.refuse("task.algebra", rule + ", got '" + algebra + "'");
  };
  try {
    if (algebra::Spec::parse(algebra).learned) refuse_algebra("must be a fixed algebra");
  } catch (const std::invalid_argument& error) {
    if (dynamic_cast<const RecipeError*>(&error)) throw;
    recipe.refuse("task.algebra", std::string("cannot be read: ") + error.what());
  }
  const int64_t n = map.algebra().n;
  if (outputs() % n != 0)
    recipe.refuse("model.algebra", "must have an n that divides the " + std::to_string(outputs()) +
                                       " outputs of the rule, got n = " + std::to_string(n) + " (" +
                                       map.algebra().text() + ")");
}

}  // namespace quatrain::tasks
