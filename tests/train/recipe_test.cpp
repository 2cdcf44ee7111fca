#include "quatrain/train/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace quatrain::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Recipe parse(std::string_view text, const std::vector<Setting>& settings = {}) {
  return parse_recipe(text, "my.toml", "my", settings);
}

// The error's sentence, or "" where there is none.
std::string error_of(std::string_view text, const std::vector<std::string>& settings = {}) {
  try {
    std::vector<Setting> parsed;
    for (const auto& setting : settings) parsed.push_back(Setting::parse(setting));
    parse(text, parsed);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

TEST(Recipe, an_empty_one_has_the_defaults) {
  EXPECT_THAT(differing_keys(parse(""), Recipe{}), IsEmpty());
  EXPECT_EQ(parse("").name, "my");
}

TEST(Recipe, keys_reach_their_fields) {
  const auto recipe = parse(R"(
description = "Mine"
[task]
data = "sst"
[model]
width = 64
dropout = 0
packed = true
[train]
rate = 5e-4
)");
  EXPECT_EQ(recipe.description, "Mine");
  EXPECT_EQ(recipe.task.data, "sst");
  EXPECT_EQ(recipe.model.width, 64);
  EXPECT_EQ(recipe.model.dropout, 0.0);
  EXPECT_TRUE(recipe.model.packed);
  EXPECT_EQ(recipe.train.rate, 5e-4);
  EXPECT_EQ(recipe.model.layers, Recipe{}.model.layers);
}

// Each key has a field of its own, a description, and a default that its own rule allows.
TEST(Recipe, the_table_of_keys_is_sound) {
  std::set<const void*> fields;
  Recipe recipe;
  for (const auto& key : recipe_keys()) {
    SCOPED_TRACE(key.full_name());
    EXPECT_FALSE(key.description.empty());
    std::visit([&](auto* field) { EXPECT_TRUE(fields.insert(field).second); }, key.field(recipe));
    // A number without bounds would reach a layer unchecked.
    const auto kind = key.field(recipe).index();
    EXPECT_EQ(key.minimum.has_value() && key.maximum.has_value(), kind == 1 || kind == 2);
  }
  EXPECT_THAT(differing_keys(parse(to_toml(recipe)), recipe), IsEmpty());
}

TEST(Recipe, the_effective_recipe_reads_back) {
  const auto recipe = parse(R"toml(
description = "with \"quotes\""
[task]
folder = 'C:\data "x"'
[model]
dropout = 0.30000000000000004
[train]
rate = 1e-9
[[twins]]
name = "real"
algebra = "real"
[[twins]]
name = "phm4"
algebra = "phm(4)"
train.rate = 3e-4
)toml");
  const auto again = parse(to_toml(recipe));
  EXPECT_THAT(differing_keys(recipe, again), IsEmpty());
  EXPECT_EQ(again.description, recipe.description);
  ASSERT_EQ(again.twins.size(), 2);
  EXPECT_EQ(to_toml(again), to_toml(recipe));
  EXPECT_EQ(twin_recipe(again, again.twins[1]).train.rate, 3e-4);
}

TEST(Recipe, settings_win_over_the_file) {
  const auto recipe = parse("[model]\nwidth = 64\n",
                            {Setting::parse("model.width=32"), Setting::parse("model.algebra = phm(2)"),
                             Setting::parse("task.data=\"sst\""), Setting::parse("task.folder=12"),
                             Setting::parse("model.packed=true"), Setting::parse("task.vectors=a=b.txt")});
  EXPECT_EQ(recipe.model.width, 32);
  EXPECT_EQ(recipe.model.algebra, "phm(2)");
  EXPECT_EQ(recipe.task.data, "sst");
  EXPECT_EQ(recipe.task.folder, "12");
  EXPECT_TRUE(recipe.model.packed);
  EXPECT_EQ(recipe.task.vectors, "a=b.txt");
}

TEST(Recipe, twins_differ_where_they_say) {
  const auto recipe = parse(R"(
[model]
width = 64
[[twins]]
name = "real"
algebra = "real"
[[twins]]
name = "partial"
scope = "partial"
)");
  const auto real = twin_recipe(recipe, find_twin(recipe, "real"));
  EXPECT_THAT(differing_keys(real, recipe), ElementsAre("model.algebra"));
  EXPECT_EQ(real.name, "real");
  EXPECT_THAT(real.twins, IsEmpty());
  EXPECT_EQ(twin_recipe(recipe, recipe.twins[1]).model.scope, "partial");
  EXPECT_THROW(find_twin(recipe, "rael"), RecipeError);
}

TEST(Recipe, unknown_names_say_the_nearest) {
  EXPECT_EQ(error_of("[model]\n\nwidht = 1\n"),
            "my.toml:3: 'model.widht' is no key of a recipe (did you mean model.width?)");
  EXPECT_THAT(error_of("[model]\nrate = 1\n"), HasSubstr("did you mean train.rate?"));
  EXPECT_THAT(error_of("[modle]\n"), HasSubstr("my.toml:1: 'modle' is no table of a recipe"));
  EXPECT_THAT(error_of("[modle]\n"), HasSubstr("did you mean model?"));
  EXPECT_THAT(error_of("[model]\nscope = 'ful'\n"),
              HasSubstr("must be one of full, partial, got 'ful' (did you mean full?)"));
  EXPECT_THAT(error_of("[model]\nalgebra = 'quaternoin'\n"), HasSubstr("quaternion"));
  EXPECT_THAT(error_of("", {"train.stesp=5"}), HasSubstr("--set train.stesp=5: 'train.stesp'"));
  EXPECT_THAT(error_of("[[twins]]\nname = 'a'\nalgebar = 'real'\n"), HasSubstr("my.toml:3: 'model.algebar'"));
}

TEST(Recipe, wrong_types_and_ranges_are_named) {
  EXPECT_EQ(error_of("[model]\nwidth = 'wide'\n"), "my.toml:2: model.width must be an integer, got 'wide'");
  EXPECT_THAT(error_of("[model]\nwidth = 1.5\n"), HasSubstr("must be an integer, got 1.5"));
  EXPECT_THAT(error_of("[model]\npacked = 1\n"), HasSubstr("must be true or false, got 1"));
  EXPECT_THAT(error_of("[model]\nalgebra = 4\n"), HasSubstr("must be a string, got 4"));
  EXPECT_THAT(error_of("[model]\nheads = [1, 2]\n"), HasSubstr("must be an integer, got"));
  EXPECT_THAT(error_of("[model]\nheads = 0\n"),
              HasSubstr("my.toml:2: model.heads must be at least 1, got 0"));
  EXPECT_THAT(error_of("[train]\nrate = nan\n"), HasSubstr("train.rate must be at least 1e-12, got nan"));
  EXPECT_THAT(error_of("[model]\ndropout = 1.5\n"), HasSubstr("must be at most 0.99, got 1.5"));
  EXPECT_THAT(error_of("model = 3\n"), HasSubstr("must be a table"));
  EXPECT_THAT(error_of("[model\n"), HasSubstr("my.toml:1: this is no TOML"));
  EXPECT_THAT(error_of("[train]\nsteps = 0\n"),
              HasSubstr("my.toml:2: train.steps and train.epochs are both 0"));
  EXPECT_THAT(error_of("", {"model.width"}), HasSubstr("--set takes table.key=value, got 'model.width'"));
  EXPECT_THAT(error_of("", {"model.width=[1"}), HasSubstr("must be an integer, got"));
}

TEST(Recipe, sizes_must_go_together) {
  EXPECT_EQ(error_of("[model]\nalgebra = 'quaternion'\nwidth = 510\nheads = 1\n"),
            "my.toml:3: model.width must be divisible by n * heads = 4 with n = 4 (quaternion) and heads = "
            "1, got 510 "
            "(nearest: 508, 512)");
  EXPECT_THAT(error_of("[model]\nfeed_forward = 514\n"), HasSubstr("got 514 (nearest: 512, 516)"));
  EXPECT_EQ(error_of("[model]\nfeed_forward = 514\nscope = 'partial'\n"), "");
  EXPECT_EQ(error_of("[model]\nwidth = 510\nfeed_forward = 1\nheads = 2\nalgebra = 'real'\n"), "");
  EXPECT_THAT(error_of("[model]\nalgebra = 'phm(4)'\nattention = 'componentwise'\n"),
              HasSubstr("needs a fixed algebra"));
  EXPECT_EQ(error_of("[model]\nwidth = 20\nheads = 5\nsplit = 'printed'\n"), "")
      << "a plain split of 20 in 5";
  EXPECT_THAT(error_of("[model]\nwidth = 24\nheads = 5\nsplit = 'printed'\n"),
              HasSubstr("divisible by n and heads: 20 with n = 4 (quaternion) and heads = 5, got 24"));
  EXPECT_THAT(error_of("[model]\nattention = 'componentwise'\nsplit = 'printed'\n"),
              HasSubstr("needs model.split = 'inside'"));
  EXPECT_THAT(error_of("[model]\nprinted = true\n"), HasSubstr("a form of model.norm = 'post' or 'phydi'"));
  EXPECT_EQ(error_of("[model]\nprinted = true\nnorm = 'post'\nnorm_per_component = true\n"), "");
  // A twin is checked before anything runs.
  EXPECT_THAT(error_of("[[twins]]\nname = 'o'\nalgebra = 'octonion'\nheads = 3\n"),
              HasSubstr("n * heads = 24"));
}

TEST(Recipe, twins_need_good_names) {
  EXPECT_THAT(error_of("[[twins]]\nalgebra = 'real'\n"), HasSubstr("a twin needs a name"));
  EXPECT_THAT(error_of("[[twins]]\nname = '../x'\n"), HasSubstr("got '../x'"));
  EXPECT_THAT(error_of("[[twins]]\nname = 'a'\n[[twins]]\nname = 'a'\n"),
              HasSubstr("two twins are called 'a'"));
  EXPECT_THAT(error_of("twins = 3\n"), HasSubstr("[[twins]]"));
  EXPECT_THAT(error_of("[[twins]]\nname = 'a'\ntask.data = 'sst'\n"),
              HasSubstr("keys of [model] and [train] only"));
}

TEST(Recipe, the_document_has_every_key) {
  const auto text = recipe_document();
  for (const auto& key : recipe_keys()) EXPECT_THAT(text, HasSubstr("| `" + key.name + "` | "));
}

TEST(Recipe, an_empty_file_is_a_recipe) {
  const std::string path = testing::TempDir() + "/empty.toml";
  std::ofstream(path).close();
  EXPECT_THAT(differing_keys(read_recipe(path), Recipe{}), IsEmpty());
  EXPECT_EQ(read_recipe(path).name, "empty");
}

TEST(Recipe, a_missing_file_is_named) {
  EXPECT_THROW(
      try { read_recipe("/no/such.toml"); } catch (const RecipeError& error) {
        EXPECT_THAT(error.what(), HasSubstr("'/no/such.toml'"));
        throw;
      },
      RecipeError);
}

}  // namespace
}  // namespace quatrain::train
