#include "tasks/copy_memory/options.h"

#include "tasks/recipe_keys.h"
#include "tasks/recurrent_keys.h"

namespace quatrain::tasks {

void CopyMemoryOptions::describe(train::Keys& keys) {
  keys.table("task", "What is to be remembered, and for how long.");
  keys.number("symbols", symbols, 2, 10,
              "How many symbols there are; `predict` writes them as digits from 0.");
  keys.number("recall", recall, 1, 1000, "Symbols of a sequence, which are to be recalled in their order.");
  keys.number("lag", lag, 0, 100000,
              "Blanks between the symbols and the delimiters, at which they are recalled.");
  keys.number("train", train, 1, 1e9, "Sequences of an epoch; they are drawn anew in each.");
  keys.number("dev", dev, 1, 1e6, "Sequences of the dev set, which selects the best checkpoint.");
  keys.number("test", test, 1, 1e6, "Sequences of the test set, which is scored once, at the end.");
  keys.number("seed", seed, 0, 1e12, "Seed of the sequences.");
  keys.table("model", "Recurrent layers, and a real linear layer that names a symbol at each step.");
  describe_recurrent(keys, model);
}

void CopyMemoryOptions::check(const Recipe& recipe) const {
  check_recurrent(recipe, model);
}

int64_t CopyMemoryOptions::inputs() const {
  const int64_t n = model.algebra().n;
  return (symbols + 2 + n - 1) / n * n;
}

models::RecurrentNetworkOptions CopyMemoryOptions::network() const {
  models::RecurrentNetworkOptions sized = model;
  sized.sizes.input = inputs();
  return sized.classes(classes());
}

}  // namespace quatrain::tasks
