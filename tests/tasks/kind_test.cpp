// A kind that the library does not know, through everything that knows kinds: what the interface leaves out
// would show here.

#include "quatrain/tasks/kind.h"

#include <gmock/gmock.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "quatrain/nn/weights.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// Numbers that shall reach a goal; a line is answered by its length.
struct AimOptions : Options {
  double goal = 3;
  int64_t size = 4;
  std::string unit = "metres";

  std::unique_ptr<Options> clone() const override { return std::make_unique<AimOptions>(*this); }
  void describe(train::Keys& keys) override {
    keys.table("task", "What is aimed at.");
    keys.number("goal", goal, -100, 100, "Where the numbers shall be.");
    keys.text("unit", unit, "What they are called.").may_change();
    keys.table("model", "The numbers.");
    keys.number("size", size, 1, 100, "How many there are.");
  }
  void check(const Recipe& recipe) const override {
    if (goal == 13) recipe.refuse("task.goal", "must not be 13");
  }
};

struct AimImpl : torch::nn::Module {
  explicit AimImpl(int64_t size) : numbers(register_parameter("numbers", torch::randn({size}))) {}
  at::Tensor numbers;
};

class AimModel : public Model {
 public:
  explicit AimModel(Recipe recipe)
      : Model(std::move(recipe)), net(std::make_shared<AimImpl>(recipe_.own<AimOptions>().size)) {}
  torch::nn::Module& module() override { return *net; }
  at::Tensor forward(const std::vector<at::Tensor>& input) override { return net->numbers * input.at(0); }
  std::string line_problem(const std::string& line) const override { return line == "?" ? "it asks" : ""; }
  std::vector<std::string> predict(const std::vector<std::string>& lines) override {
    std::vector<std::string> answers;
    for (const auto& line : lines) answers.push_back(std::to_string(line.size()));
    // The last bad line first, as where all are read before the first is computed.
    for (size_t i = lines.size(); i-- > 0;)
      if (lines[i].starts_with("bad")) throw LineError(i, lines[i]);
    return answers;
  }
  void store(const fs::path& folder) const override { std::ofstream(folder / "unit.txt") << "m\n"; }

  std::shared_ptr<AimImpl> net;
};

class AimTask : public train::Task {
 public:
  explicit AimTask(std::shared_ptr<AimModel> model) : model_(std::move(model)) {}
  torch::nn::Module& model() override { return model_->module(); }
  int64_t batches() const override { return 3; }
  train::BatchLoss loss(int64_t, int64_t) override { return {distance(), 1}; }
  bool has(std::string_view split) const override { return split == "dev" || split == "test"; }
  train::Evaluation evaluate(std::string_view, const std::function<void()>&) override {
    const double value = distance().item<double>();
    return {{{"hits", value < 1 ? 1.0 : 0.0}, {"loss", value}, {"count", 1}}, {}, {}};
  }
  train::Selection selection() const override { return {"loss", false}; }
  void store(const fs::path& folder) const override { model_->store(folder); }
  std::string recipe() const override { return to_toml(model_->recipe()); }

 private:
  at::Tensor distance() const {
    return (model_->net->numbers - model_->recipe().own<AimOptions>().goal).square().mean();
  }
  std::shared_ptr<AimModel> model_;
};

class AimData : public Data {
 public:
  using Data::Data;
  bool has(std::string_view) const override { return true; }
  std::vector<Input> inputs(std::string_view, const Recipe&, int64_t size, int64_t count) const override {
    std::vector<Input> inputs;
    for (int64_t i = 0; i < count; ++i) inputs.push_back({{torch::ones({size, 1})}, size});
    return inputs;
  }
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override {
    return std::make_unique<AimModel>(recipe);
  }
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override {
    return std::make_unique<AimTask>(std::dynamic_pointer_cast<AimModel>(model));
  }
};

class Aim : public Kind {
 public:
  const About& about() const override {
    static const About about{.name = "aim",
                             .summary = "Numbers that reach a goal.",
                             .reads = "anything",
                             .unit = "throws",
                             .figures = {{"loss", "distance"}, {"hits", "hits", Figure::Format::share, true}},
                             .facts = {}};
    return about;
  }
  std::unique_ptr<Options> options() const override { return std::make_unique<AimOptions>(); }
  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest&) const override {
    return std::make_unique<AimData>(std::move(recipe));
  }
  std::unique_ptr<Model> load_model(Recipe recipe, const fs::path& checkpoint) const override {
    auto model = std::make_unique<AimModel>(std::move(recipe));
    nn::load_weights(model->module(), checkpoint / "model.safetensors");
    return model;
  }
};

constexpr const char* kRecipe = R"toml(
[task]
kind = "aim"
goal = 2.0
[train]
rate = 0.1
warmup = 0
steps = 150
evaluate_every = 50
[compare]
seconds = 0.01
layer_seconds = 0.01
layer_width = 8
[[twins]]
name = "four"
[[twins]]
name = "nine"
size = 9
)toml";

class MadeUpKind : public test::FolderTest {
 protected:
  static void SetUpTestSuite() {
    if (!find_about("aim")) add_kind(std::make_unique<Aim>());
  }
  void SetUp() override {
    test::FolderTest::SetUp();
    std::ofstream(folder_ / "aim.toml") << kRecipe;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  json read(const std::string& name) const { return json::parse(std::ifstream(folder_ / name)); }
  void train_run() const {
    cli::TrainArguments arguments;
    arguments.recipe = at("aim.toml");
    arguments.out = at("run");
    testing::internal::CaptureStdout();
    EXPECT_EQ(cli::train_command(arguments), 0);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("test distance"));
  }
};

std::string what_is_said(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(MadeUpKind, AnswersEndBeforeTheFirstBadLine) {
  train_run();
  const auto model = load_run(at("run"));
  const auto [answers, problem] = answer(*model, std::vector<std::string>{"a", "bad 1", "b", "bad 2"});
  EXPECT_THAT(answers, testing::ElementsAre("1"));
  EXPECT_EQ(problem, "bad 1");
}

TEST_F(MadeUpKind, IsTrainedScoredListedAndAsked) {
  train_run();
  EXPECT_LT(read("run/result.json")["test"]["loss"], 0.1);

  cli::EvaluateArguments evaluate;
  evaluate.run = at("run");
  evaluate.json = at("figures.json");
  testing::internal::CaptureStdout();
  EXPECT_EQ(cli::evaluate_command(evaluate), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::ContainsRegex("test set +examples +distance +hits\nall +1 +.* +100.00%"));
  EXPECT_EQ(read("figures.json")["figures"]["loss"], read("run/result.json")["test"]["loss"]);

  cli::RunsArguments runs;
  runs.folder = folder_.string();
  runs.json = at("runs.json");
  testing::internal::CaptureStdout();
  EXPECT_EQ(cli::runs_command(runs), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("loss "));
  EXPECT_EQ(read("runs.json")[0]["kind"], "aim");

  const auto model = load_run(folder_ / "run");
  EXPECT_FALSE(model->module().is_training());
  EXPECT_THAT(model->predict({"abc", ""}), testing::ElementsAre("3", "0"));
  EXPECT_TRUE(fs::exists(folder_ / "run/best/unit.txt"));
  cli::CheckArguments check;
  check.run = at("run");
  testing::internal::CaptureStdout();
  EXPECT_EQ(cli::check_command(check), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("4 parameters"));
}

TEST_F(MadeUpKind, IsCompared) {
  cli::CompareArguments arguments;
  arguments.recipe = at("aim.toml");
  arguments.out = at("both");
  arguments.seeds = "2";
  arguments.settings = {"train.steps=2"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(cli::compare_command(arguments), 0);
  const std::string table = testing::internal::GetCapturedStdout();
  for (const char* words : {"distance, test set", "hits, test set", "nine", "inference, batch 32"})
    EXPECT_THAT(table, HasSubstr(words));
  EXPECT_THAT(table, testing::Not(HasSubstr("points to")));
  const json all = read("both/compare.json");
  EXPECT_EQ(all["twins"][1]["parameters"], 9);
  EXPECT_TRUE(all["twins"][0]["loss"].contains("mean"));
}

TEST_F(MadeUpKind, HasKeysOfItsOwnAlone) {
  const Recipe recipe = read_recipe(at("aim.toml"));
  EXPECT_EQ(find_value(recipe, "task.goal"), "2.0");
  const std::string stored = to_toml(recipe);
  EXPECT_THAT(stored, HasSubstr("kind = 'aim'"));
  EXPECT_THAT(stored, testing::Not(testing::AnyOf(HasSubstr("tokenizer"), HasSubstr("[agreement]"))));
  EXPECT_EQ(to_toml(parse_recipe(stored, "stored", "aim")), stored);
  const auto error = [&](const std::string& text) {
    return what_is_said([&] { parse_recipe("[task]\nkind = 'aim'\n" + text, "a.toml", "a"); });
  };
  EXPECT_EQ(error("vectors = 'x'\n"),
            "a.toml:3: only recipes of kinds text_classification, text_pairs have the key 'task.vectors', "
            "and this recipe "
            "is of kind aim");
  EXPECT_EQ(error("[agreement]\ntrain = 10\n"),
            "a.toml:3: only recipes of kind text_classification have the table 'agreement', and this recipe "
            "is of kind aim");
  EXPECT_EQ(error("goal = 13\n"), "a.toml:3: task.goal must not be 13");
  EXPECT_EQ(what_is_said([] { parse_recipe("[task]\ngoal = 1\n", "a.toml", "a"); }),
            "a.toml:2: only recipes of kind aim have the key 'task.goal', and this recipe is of kind "
            "text_classification");
  EXPECT_THAT(what_is_said([] { parse_recipe("[task]\nkind = 'aimm'\n", "a.toml", "a"); }),
              HasSubstr("task.kind must be one of text_classification, "));
  EXPECT_THAT(what_is_said([] { parse_recipe("[task]\nkind = 'aimm'\n", "a.toml", "a"); }),
              HasSubstr("did you mean aim?"));
  // A setting may choose the kind.
  const auto chosen =
      parse_recipe("", "a.toml", "a", {Setting::parse("task.kind=aim"), Setting::parse("task.goal=5")});
  EXPECT_EQ(find_value(chosen, "task.goal"), "5.0");
  EXPECT_THAT(differing_keys(chosen, Recipe{}), testing::ElementsAre("task.kind"));
}

TEST_F(MadeUpKind, IsInTheDocument) {
  EXPECT_THAT(recipe_document(), HasSubstr("## kind = \"aim\""));
}

TEST(GroupsOf, AreByTheirNumbersThenByTheirNames) {
  const std::string large(30, '1');  // more than a number holds
  EXPECT_THAT(groups_of({{"count/n=10", 1},
                         {"count/n=9", 1},
                         {"count/n=a", 1},
                         {"count/n=" + large, 1},
                         {"count/n=", 1},
                         {"accuracy/n=8", 1}}),
              testing::ElementsAre("/n=9", "/n=10", "/n=", "/n=" + large, "/n=a"));
}

TEST_F(MadeUpKind, CannotBeConvertedWhereItHasNoOtherAlgebra) {
  train_run();
  const auto model = load_run(folder_ / "run");
  EXPECT_EQ(what_is_said([&] { model->in_algebra("quaternion"); }),
            "models of kind aim cannot be converted to another algebra");
}

TEST_F(MadeUpKind, NeedsANameOfItsOwn) {
  EXPECT_EQ(what_is_said([] { add_kind(std::make_unique<Aim>()); }),
            "add_kind: the name must be free, 'aim' is taken");
}

// Of a trained model's data only the split that is scored is made ready, with the model's own words.
TEST_F(MadeUpKind, EvaluationReadsNoMoreThanItScores) {
  Recipe recipe = parse_recipe(
      "[task]\ndata = 'agreement'\n[agreement]\ntrain = 40\ndev = 20\ntest = 20\n[model]\nwidth = 16\nheads "
      "= 1\n"
      "feed_forward = 16\nlayers = 1\n[train]\nsteps = 1\n",
      "a.toml", "a");
  const auto whole = load_data(recipe);
  const std::shared_ptr<Model> model = make_model(whole->recipe(), *whole);
  apply(recipe, Setting::parse("agreement.seed=7"));
  apply(recipe,
        Setting::parse("task.min_count=1000000000"));  // a vocabulary that were built would be an empty one
  const auto scored = load_data(recipe, {"", "dev", model.get()});
  EXPECT_TRUE(scored->has("dev"));
  EXPECT_FALSE(scored->has("train") || scored->has("test"));
  const auto task = scored->make_task(model);
  EXPECT_EQ(task->batches(), 0);
  const torch::NoGradGuard no_grad;
  model->module().eval();
  EXPECT_EQ(task->evaluate("dev", {}).figures.at("count"), 20);
}

}  // namespace
}  // namespace quatrain::tasks
