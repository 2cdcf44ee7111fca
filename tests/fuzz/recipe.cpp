#include "quatrain/tasks/recipe.h"

#include "fuzz/support.h"

/// A recipe, and the same again as it is stored with a run.
QUATRAIN_FUZZ_TARGET(recipe)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  constexpr size_t kAlgebras = (16 << 20) / 200;  // tables of those that are named for the first time
  const auto text = fuzz::text_of(data, size);
  fuzz::read_or_refuse<tasks::RecipeError>(size + kAlgebras, 200, [&] {
    const auto recipe = tasks::parse_recipe(text, "recipe.toml", "recipe");
    const auto stored = tasks::to_toml(recipe);
    if (tasks::to_toml(tasks::parse_recipe(stored, "stored.toml", "recipe")) != stored)
      throw fuzz::Finding("the stored recipe reads otherwise: " + stored);
  });
  return 0;
}
