#include "quatrain/tasks/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace quatrain::tasks {
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
  EXPECT_EQ(find_value(recipe, "task.data"), "sst");
  EXPECT_EQ(find_value(recipe, "model.width"), "64");
  EXPECT_EQ(find_value(recipe, "model.dropout"), "0.0");
  EXPECT_EQ(find_value(recipe, "model.packed"), "true");
  EXPECT_EQ(recipe.train.optimizer.learning_rate, 5e-4);
  EXPECT_EQ(find_value(recipe, "model.layers"), find_value(Recipe{}, "model.layers"));
  EXPECT_EQ(find_value(recipe, "model.wings"), std::nullopt);
}

// A value that a key may have and has not.
train::Value other_value(const train::Key& key) {
  const train::Value now = key.get();
  if (const auto* flag = std::get_if<bool>(&now)) return !*flag;
  if (const auto* number = std::get_if<double>(&now))
    return *number == key.minimum ? key.maximum : key.minimum;
  if (const auto* number = std::get_if<int64_t>(&now))
    return static_cast<int64_t>(static_cast<double>(*number) == key.minimum ? key.maximum : key.minimum);
  for (const auto& value : key.values)
    if (value != std::get<std::string>(now)) return value;
  return std::string(key.full_name() == "task.split" ? "80/10/10" : "octonion");
}

// Each key has an option of its own, a description, and a default that its own rule allows.
TEST(Recipe, the_table_of_keys_is_sound) {
  Recipe recipe;
  const auto keys = keys_of(recipe);
  for (const auto& key : keys) {
    SCOPED_TRACE(key.full_name());
    EXPECT_STRNE(key.description, "");
    const bool number = key.get().index() == 1 || key.get().index() == 2;
    // A number without bounds would reach a layer unchecked.
    EXPECT_EQ(std::isfinite(key.minimum) && std::isfinite(key.maximum), number);
    if (key.full_name() == "task.kind") continue;
    const auto before = key.get();
    key.set(other_value(key));
    EXPECT_THAT(differing_keys(recipe, Recipe{}), ElementsAre(key.full_name()));
    key.set(before);
  }
  EXPECT_THAT(differing_keys(parse(to_toml(recipe)), recipe), IsEmpty());
}

// What runs of former versions have stored, whose tables were the same for all.
TEST(Recipe, a_stored_one_of_old_is_read) {
  const auto recipe = parse(R"toml(
[task]
kind = "text_classification"
data = "agreement"
[agreement]
train = 200
[model]
algebra = "phm(4)"
[train]
optimizer = "adamw"
rate = 0.001
batch = 16
label_smoothing = 0.25
precision = "bfloat16"
weights = ""
threads = 1
[compare]
seconds = 3.0
)toml");
  EXPECT_EQ(recipe.batch, 16);
  EXPECT_TRUE(recipe.train.bf16);
  EXPECT_EQ(find_value(recipe, "train.label_smoothing"), "0.25");
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
  EXPECT_EQ(twin_recipe(again, again.twins[1]).train.optimizer.learning_rate, 3e-4);
}

TEST(Recipe, settings_win_over_the_file) {
  const auto recipe = parse("[model]\nwidth = 64\n",
                            {Setting::parse("model.width=32"), Setting::parse("model.algebra = phm(2)"),
                             Setting::parse("task.data=\"sst\""), Setting::parse("task.folder=12"),
                             Setting::parse("model.packed=true"), Setting::parse("task.vectors=a=b.txt")});
  EXPECT_EQ(find_value(recipe, "model.width"), "32");
  EXPECT_EQ(find_value(recipe, "model.algebra"), "phm(2)");
  EXPECT_EQ(find_value(recipe, "task.data"), "sst");
  EXPECT_EQ(find_value(recipe, "task.folder"), "12");
  EXPECT_EQ(find_value(recipe, "model.packed"), "true");
  EXPECT_EQ(find_value(recipe, "task.vectors"), "a=b.txt");
}

// The default of the steps does not cut short what a recipe asks for.
TEST(Recipe, epochs_alone_have_no_limit_of_steps) {
  const auto ends = [](std::string_view text, const std::vector<std::string>& settings = {}) {
    std::vector<Setting> parsed;
    for (const auto& setting : settings) parsed.push_back(Setting::parse(setting));
    const Recipe recipe = parse(text, parsed);
    return std::pair(recipe.train.steps, recipe.train.epochs);
  };
  using Ends = std::pair<int64_t, int64_t>;
  EXPECT_EQ(ends(""), Ends(1000, 0));
  EXPECT_EQ(ends("[train]\nepochs = 40\n"), Ends(0, 40));
  EXPECT_EQ(ends("", {"train.epochs=40"}), Ends(0, 40));
  EXPECT_EQ(ends("[train]\nepochs = 40\nsteps = 70\n"), Ends(70, 40));
  EXPECT_EQ(ends("[train]\nepochs = 40\n", {"train.steps=70"}), Ends(70, 40));
  EXPECT_EQ(ends("[train]\nsteps = 70\n", {"train.epochs=40"}), Ends(70, 40));
  EXPECT_EQ(ends("[train]\nepochs = 40\n", {"train.epochs=0"}), Ends(1000, 0));
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
  EXPECT_EQ(find_value(twin_recipe(recipe, recipe.twins[1]), "model.scope"), "partial");
  EXPECT_THROW(find_twin(recipe, "rael"), RecipeError);
}

TEST(Recipe, unknown_names_say_the_nearest) {
  EXPECT_EQ(error_of("[model]\n\nwidht = 1\n"),
            "my.toml:3: a recipe has no key 'model.widht' (did you mean model.width?)");
  EXPECT_THAT(error_of("[model]\nrate = 1\n"), HasSubstr("did you mean train.rate?"));
  EXPECT_THAT(error_of("", {"train.lr=1e-3"}), HasSubstr("did you mean train.rate?"));
  EXPECT_THAT(error_of("[model]\nnhead = 8\n"), HasSubstr("did you mean model.heads?"));
  EXPECT_THAT(error_of("[model]\nalgebra = 'phm4'\n"), HasSubstr("did you mean phm(4)?"));
  EXPECT_THAT(error_of("[task]\nsplit = '80/20'\n"),
              HasSubstr("task.split: a split is three shares such as 80/10/10, got '80/20'"));
  EXPECT_THAT(error_of("[modle]\n"), HasSubstr("my.toml:1: a recipe has no table 'modle'"));
  EXPECT_THAT(error_of("[modle]\n"), HasSubstr("did you mean model?"));
  EXPECT_THAT(error_of("[model]\nscope = 'ful'\n"),
              HasSubstr("must be one of full, partial, got 'ful' (did you mean full?)"));
  EXPECT_THAT(error_of("[model]\nalgebra = 'quaternoin'\n"), HasSubstr("quaternion"));
  EXPECT_THAT(error_of("", {"train.stesp=5"}),
              HasSubstr("--set train.stesp=5: a recipe has no key 'train.stesp'"));
  EXPECT_THAT(error_of("[[twins]]\nname = 'a'\nalgebar = 'real'\n"),
              HasSubstr("my.toml:3: a recipe has no key 'model.algebar'"));
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
  EXPECT_THAT(error_of("[model\n"), HasSubstr("my.toml:1: this cannot be read as TOML"));
  EXPECT_THAT(error_of("[train]\nsteps = 0\n"),
              HasSubstr("my.toml:2: train.steps and train.epochs are both 0"));
  EXPECT_THAT(error_of("", {"model.width"}),
              HasSubstr("--set must be of the form table.key=value, got 'model.width'"));
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
              testing::AllOf(HasSubstr("n * heads = 24"), HasSubstr(", in the twin 'o'")));
}

TEST(Recipe, twins_need_good_names) {
  EXPECT_THAT(error_of("[[twins]]\nalgebra = 'real'\n"),
              HasSubstr("a twin's name, which is also its folder's"));
  EXPECT_THAT(error_of("[[twins]]\nname = '../x'\n"), HasSubstr("got '../x'"));
  EXPECT_THAT(error_of("[[twins]]\nname = 'a'\n[[twins]]\nname = 'a'\n"),
              HasSubstr("two twins have the name 'a'"));
  EXPECT_THAT(error_of("twins = 3\n"), HasSubstr("[[twins]]"));
  EXPECT_THAT(error_of("[[twins]]\nname = 'a'\ntask.data = 'sst'\n"),
              HasSubstr("keys of [model] and [train] only"));
}

// What is set for one run alone and would do nothing is a mistake; a file may hold keys of other twins.
TEST(Recipe, settings_that_do_nothing_are_refused) {
  const auto set = [](const std::string& text, const std::vector<std::string>& settings) {
    std::vector<Setting> all;
    for (const auto& one : settings) all.push_back(Setting::parse(one));
    try {
      parse_recipe(text, "a.toml", "a", all);
    } catch (const RecipeError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      set("", {"train.momentum=0.9"}),
      "--set train.momentum=0.9: train.momentum would do nothing: it needs train.optimizer = sgd or rmsprop");
  EXPECT_EQ(set("", {"train.momentum=0.9", "train.optimizer=sgd"}), "");
  EXPECT_EQ(set("[train]\nmomentum = 0.9\n", {}), "");
  EXPECT_THAT(set("", {"train.every=3"}), HasSubstr("train.schedule = step"));
  EXPECT_THAT(set("[train]\nwarmup_share = 0.1\n", {"train.warmup=3"}), HasSubstr("train.warmup_share = 0"));
  const std::string lines = "[task]\nkind = 'seq2seq'\n";
  EXPECT_THAT(set(lines, {"vocabulary.pieces=words", "vocabulary.byte_fallback=true"}),
              HasSubstr("vocabulary.pieces = unigram or bpe"));
  EXPECT_EQ(set(lines, {"vocabulary.pieces=bpe", "vocabulary.byte_fallback=true"}), "");
  EXPECT_THAT(set(lines, {"model.max_positions=128"}), HasSubstr("model.positions = learned"));
  EXPECT_THAT(set(lines, {"decode.reads=pair", "decode.scores=true"}), HasSubstr("decode.reads"));
  EXPECT_EQ(set(lines, {"decode.reads=pair", "decode.alignments=true"}), "");
  EXPECT_THAT(set(lines, {"reverse.seed=3"}), HasSubstr("task.data = reverse"));
  EXPECT_THAT(set(lines, {"task.data=parallel", "math.train=3"}), HasSubstr("task.data = math"));
  EXPECT_EQ(set(lines, {"task.data=reverse", "reverse.seed=3"}), "");
  for (const std::string key :
       {"task.folder=corpus", "task.source=de", "task.target=en", "task.skip_bad=true"}) {
    EXPECT_THAT(set(lines, {key}), HasSubstr("a task.data that reads files"));
    EXPECT_EQ(set(lines, {"task.data=parallel", key}), "");
  }
  const std::string text = "[task]\nkind = 'language_model'\n";
  for (const std::string key : {"generate.top_k=3", "generate.top_p=0.5", "generate.seed=3"}) {
    EXPECT_THAT(set(text, {"generate.temperature=0", key}), HasSubstr("generate.temperature above 0"));
    EXPECT_EQ(set(text, {key}), "");
  }
  for (const std::string key : {"generate.tokens=3", "generate.temperature=0", "generate.unknown=false"})
    EXPECT_THAT(set(text, {"generate.score=true", key}), HasSubstr("generate.score = false"));
  const std::string speech = "[task]\nkind = 'speech'\n";
  EXPECT_THAT(set(speech + "objective = 'utterance'\n", {"decode.beam=4"}),
              HasSubstr("task.objective = ctc"));
  EXPECT_EQ(set(speech + "objective = 'frames'\ndata = 'kaldi'\n", {"decode.insertion=-1"}), "");
  EXPECT_THAT(set(speech, {"features.band_masks=2", "features.widest_mask=0"}),
              HasSubstr("features.widest_mask must be above 0"));
  const std::string copy = "[task]\nkind = 'copy_memory'\n[model]\nforget_bias = 1\n";
  EXPECT_EQ(set(copy, {"model.chrono=30"}), "");
  EXPECT_THAT(set(copy, {"model.chrono=30", "model.forget_bias=2"}), HasSubstr("model.chrono = 0"));
  EXPECT_THAT(set(copy + "cell = 'rnn_tanh'\n", {"model.chrono=30"}), HasSubstr("a cell with gates"));
  EXPECT_THAT(set(copy, {"model.chrono=2"}), HasSubstr("at least 3, or 0 for none, got 2"));
  // It is enough that a twin uses it.
  const std::string twins = "[[twins]]\nname = 'real'\nalgebra = 'real'\n";
  EXPECT_THAT(set(twins, {"model.attention=real"}), HasSubstr("more than one component"));
  EXPECT_EQ(set(twins + "[[twins]]\nname = 'h'\nalgebra = 'quaternion'\n", {"model.attention=real"}), "");
}

// Figures that are compared must be of one way to search; predictions may have another.
TEST(Recipe, keys_of_answers_stay_while_a_run_goes_on) {
  Recipe recipe = parse("[task]\nkind = 'seq2seq'\n");
  std::map<std::string, std::pair<bool, bool>> kept;
  for (const auto& key : keys_of(recipe)) kept[key.full_name()] = {key.free, key.answers};
  EXPECT_EQ(kept.at("decode.longest"), std::pair(false, true));
  EXPECT_EQ(kept.at("decode.best"), std::pair(true, false));
  EXPECT_EQ(kept.at("train.rate"), std::pair(false, false));
}

TEST(Recipe, the_document_has_every_key) {
  const auto text = recipe_document();
  Recipe recipe;
  for (const auto& key : keys_of(recipe)) EXPECT_THAT(text, HasSubstr("| `" + key.name + "` | "));
}

TEST(Recipe, an_empty_file_is_a_recipe) {
  const std::string path = testing::TempDir() + "/empty.toml";
  std::ofstream(path).close();
  EXPECT_THAT(differing_keys(read_recipe(path), Recipe{}), IsEmpty());
  EXPECT_EQ(read_recipe(path).name, "empty");
  EXPECT_EQ(recipe_name("runs/mine/recipe.toml"), "mine");
  EXPECT_EQ(recipe_name("/recipe.toml"), "recipe");
}

TEST(Recipe, those_of_the_project_are_read) {
  for (const auto& entry : std::filesystem::directory_iterator(QUATRAIN_RECIPES)) {
    SCOPED_TRACE(entry.path());
    const auto recipe = read_recipe(entry.path().string());
    EXPECT_THAT(differing_keys(parse(to_toml(recipe)), recipe), IsEmpty());
  }
}

// A run that is gone on with may be longer, and its data may have been moved; its model stays.
TEST(Recipe, some_keys_may_change_while_a_run_goes_on) {
  const auto begun = parse(""),
             other = parse("[task]\nfolder = 'x'\n[model]\nwidth = 64\n[train]\nsteps = 7\n");
  EXPECT_THAT(differing_keys(begun, other), ElementsAre("task.folder", "model.width", "train.steps"));
  EXPECT_THAT(differing_keys(begun, other, [](const train::Key& key) { return !key.free; }),
              ElementsAre("model.width"));
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
}  // namespace quatrain::tasks
