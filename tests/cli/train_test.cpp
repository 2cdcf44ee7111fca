#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json result_of(const Workplace& place, const std::string& run) {
  return json::parse(place.read(run + "/result.json"));
}

// It needs torch's CUDA libraries and a device; without them nothing is begun.
TEST(Train, a_device_that_is_not_there_is_refused) {
  const Workplace place;
  for (const std::string device : {"cuda", "cuda:77"}) {
    const Outcome outcome = place.run("train agreement" + kSmall + " --device " + device + " --out run");
    if (outcome.code == 0 && device == "cuda") continue;  // it is there
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error,
                testing::AllOf(HasSubstr("quatrain: --device cuda:"), HasSubstr("; use cpu\n")));
    EXPECT_THAT(outcome.error, testing::Not(HasSubstr("make the session first")));
    EXPECT_FALSE(std::filesystem::exists(place.path("run")));
  }
  const Outcome outcome = place.run("train agreement --device gpu");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("train.device: the device must be cpu, cuda or cuda:N, got 'gpu'"));
  const Outcome compared = place.run("compare agreement --device cuda:77 --out both");
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.error,
              testing::AllOf(HasSubstr("quatrain: --device cuda:77: "), HasSubstr("; use cpu\n")));
  EXPECT_FALSE(std::filesystem::exists(place.path("both")));
  place.write("two.toml",
              "[task]\nkind = \"text_classification\"\ndata = \"agreement\"\n[[twins]]\nname = \"a\"\n"
              "[[twins]]\nname = \"b\"\ntrain.device = \"cuda\"\n");
  const Outcome two = place.run("compare two.toml --out both");
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.error, HasSubstr("train.device of the twin 'b' is cuda, the recipe's cpu"));
}

TEST(Train, memory_that_there_is_not_is_refused) {
  const Workplace place;
  // A quaternion weight of 2^20 x 2^20, behind the vectors of a few words.
  const Outcome outcome = place.run(
      "train reverse --out big --set model.width=1048576 --set reverse.symbols=2"
      " --set reverse.dev=10 --set reverse.test=10 --set model.positions=learned --set "
      "model.max_positions=32");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.error,
            "quatrain: out of memory: 1100 GB were asked for at once; take a smaller model (the sizes in "
            "[model]) or smaller batches\n");
}

TEST(Train, the_run_stores_the_effective_recipe) {
  const Workplace place;
  const std::string data = place.make_data();
  ASSERT_EQ(place.run("train text" + kSmall + " --set train.steps=1 --seed 7 --data data --out run").code, 0);
  const auto stored = tasks::read_recipe(place.path("run/best/recipe.toml").string());
  EXPECT_EQ(stored.train.seed, 7);
  EXPECT_EQ(tasks::find_value(stored, "model.width"), "32");
  EXPECT_EQ(tasks::find_value(stored, "task.folder"), std::filesystem::canonical(place.path(data)).string());
  EXPECT_EQ(tasks::find_value(stored, "task.tokenizer"), "simple");  // the reader's own, by its name
}

// With a folder, agreement is learned from its sentences.
TEST(Train, epochs_that_end_before_the_steps_are_told) {
  const Workplace place;
  const std::string train = "train agreement" + kSmall + " --set train.epochs=1 --set train.batch=25";
  const Outcome both = place.run(train + " --out both --set train.steps=5000");
  EXPECT_EQ(both.code, 0) << both.error;
  const int64_t steps = result_of(place, "both")["steps"];
  EXPECT_THAT(both.error, HasSubstr("train.epochs = 1 ends the run at step " + std::to_string(steps) +
                                    ", before train.steps = 5000\n"));
  EXPECT_THAT(place.run(train + " --out alone --set train.steps=0").error,
              testing::Not(HasSubstr("ends the run")));
}

TEST(Train, agreement_reads_real_sentences) {
  const Workplace place;
  place.make_data();
  ASSERT_EQ(place.run("train agreement" + kSmall + " --set train.steps=1 --data data --out run").code, 0);
  EXPECT_EQ(tasks::find_value(tasks::read_recipe(place.path("run/best/recipe.toml").string()), "task.data"),
            "sva");
  EXPECT_EQ(result_of(place, "run")["facts"]["train_examples"], 48);
  EXPECT_THAT(place.run("evaluate run").out, HasSubstr("attractors=1"));
  EXPECT_THAT(place.run("predict run", "the keys to the cabinet\n").out,
              testing::AnyOf(testing::StartsWith("plural\t"), testing::StartsWith("singular\t")));
}

TEST(Train, a_folder_that_holds_a_run_is_safe) {
  const Workplace place;
  const std::string words = "train agreement" + kSmall + " --set train.steps=1 --out run";
  ASSERT_EQ(place.run(words).code, 0);
  const std::string before = place.read("run/result.json");
  const Outcome again = place.run(words);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.error, HasSubstr("'run' already contains a run"));
  EXPECT_EQ(place.read("run/result.json"), before);
  const Outcome other = place.run("train agreement --set model.width=64 --resume --out run");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("different: "));
  EXPECT_THAT(other.error, HasSubstr("model.width"));
  EXPECT_EQ(place.run(words + " --overwrite --seed 5").code, 0);
  EXPECT_EQ(result_of(place, "run")["seed"], 5);
  for (const std::string out : {"/best", "/last/other"}) {
    const Outcome inside = place.run(words + out);
    EXPECT_EQ(inside.code, 2);
    EXPECT_THAT(inside.error, HasSubstr("a checkpoint, which training replaces as a whole"));
  }
  EXPECT_EQ(place.run("train agreement --out ''").code, 2);
}

TEST(Train, a_run_without_a_checkpoint_asks_for_its_recipe) {
  const Workplace place;
  const std::string words = "train agreement" + kSmall + " --set train.steps=1 --out run";
  place.write("run/metrics.jsonl", "");
  const Outcome outcome = place.run("train run --resume");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("as in quatrain train RECIPE --out run --resume"));
  EXPECT_EQ(place.run(words + " --resume").code, 0);
}

TEST(Train, files_that_are_no_runs_are_not_replaced) {
  const Workplace place;
  const std::string words = "train agreement" + kSmall + " --set train.steps=1 --out mine";
  place.write("mine/notes.txt", "notes");
  place.write("mine/predictions.tsv", "mine");
  for (const std::string resume : {"", " --resume"}) {
    const Outcome outcome = place.run(words + resume);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error, HasSubstr("'mine/predictions.tsv' is no run's"));
  }
  EXPECT_EQ(place.read("mine/predictions.tsv"), "mine");
  ASSERT_EQ(place.run(words + " --overwrite").code, 0);
  EXPECT_EQ(place.read("mine/notes.txt"), "notes");
}

// Threads that wait do not keep others from the processor, whatever OpenMP's own default is.
TEST(Train, openmp_waits_as_it_should) {
  const Workplace place;
  const auto shown = [&](const std::string& variables, bool bench = false) {
    const std::string launcher =
        "env -u _ -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose " + variables;
    const Outcome outcome = place.run_under(
        launcher, bench ? "bench linear --sizes 8 --batch 1 --seconds 0.001"
                        : "train agreement" + kSmall + " --set train.steps=1 --out run --overwrite");
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    std::vector<std::string> counts;
    const std::string name = "GOMP_SPINCOUNT = '";
    for (size_t at = 0; (at = outcome.error.find(name, at)) != outcome.error.npos;) {
      at += name.size();
      counts.push_back(outcome.error.substr(at, outcome.error.find('\'', at) - at));
    }
    return counts;
  };
  EXPECT_THAT(shown("_=shell"), ElementsAre("10000"));
  EXPECT_THAT(shown(""), ElementsAre(testing::_, "10000"));  // it has started itself again
  EXPECT_THAT(shown("_=shell GOMP_SPINCOUNT=7"), ElementsAre("7"));
  EXPECT_THAT(shown("_=shell", /*bench=*/true), ElementsAre(testing::Not("10000")));
}

TEST(Train, a_stopped_run_goes_on) {
  for (const auto& [number, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const Workplace place;
    const std::string run = place.path("run").string();
    const Background program("train agreement" + kSmall +
                                 " --set train.steps=1000000 --set train.schedule=constant"
                                 " --set train.log_every=1 --out " +
                                 run,
                             place.path("background.error"));
    wait_for(place.path("run/metrics.jsonl"), 1000);
    program.signal(number);
    EXPECT_EQ(program.wait(), code);
    const std::string error = place.read("background.error");
    EXPECT_THAT(error, HasSubstr("continue with: quatrain train " + run + " --resume"));
    const int64_t made = json::parse(place.read("run/last/checkpoint.json"))["step"];
    ASSERT_GE(made, 1);
    const std::string more = std::to_string(made + 2);
    const Outcome outcome = place.run("train run --resume --set train.steps=" + more);
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_EQ(result_of(place, "run")["steps"], made + 2);
    // Nothing is left to do: the stored result is told again.
    EXPECT_EQ(place.run("train run --resume --set train.steps=" + more).code, 0);
  }
}

// What the small recipes leave alone: pretrained vectors, kept as they are; bfloat16; another optimizer and
// schedule; and the data folder from the environment.
TEST(Train, vectors_precision_and_schedules) {
  const Workplace place;
  place.make_data();
  place.write("data/small.txt", "good 1 0 1\nbad 0 1 0\nfilm 0 0 1\n");
  place.write("mine.toml", R"toml(
[task]
data = "sst"
vectors = "small.txt"
freeze_vectors = true
[model]
width = 16
heads = 1
feed_forward = 16
layers = 1
norm = "phydi"
printed = true
packed = true
split = "printed"
initialiser = "polar"
dropout_per_unit = true
[train]
optimizer = "sgd"
momentum = 0.9
schedule = "plateau"
precision = "bfloat16"
label_smoothing = 0.1
accumulate = 2
steps = 0
epochs = 2
)toml");
  setenv("QUATRAIN_DATA", place.path("data").c_str(), 1);
  const Outcome outcome = place.run("train mine.toml --out run");
  unsetenv("QUATRAIN_DATA");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto stored = tasks::read_recipe(place.path("run/best/recipe.toml").string());
  EXPECT_EQ(tasks::find_value(stored, "task.folder"), place.path("data").string());
  EXPECT_EQ(json::parse(place.run("evaluate run --json -").out)["figures"]["accuracy"],
            result_of(place, "run")["test"]["accuracy"]);
  EXPECT_EQ(place.run("predict run", "good film\n").code, 0);
}

// Of the twins only what is trained is checked, and a check of all names the one that fails.
TEST(Train, another_twin_whose_width_does_not_fit_is_no_obstacle) {
  const Workplace place;
  place.write("mine.toml", R"toml(
[task]
kind = "text_classification"
data = "agreement"
[[twins]]
name = "four"
algebra = "quaternion"
[[twins]]
name = "five"
algebra = "phm(5)"
)toml");
  const std::string words = " mine.toml" + kSmall + " --set train.steps=1 --out ";
  EXPECT_EQ(place.run("train" + words + "one --twin four").code, 0);
  EXPECT_EQ(place.run("train" + words + "two").code, 0);
  const Outcome other = place.run("train" + words + "three --twin five");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("in the twin 'five'"));
  const Outcome both = place.run("compare" + words + "both");
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.error, testing::AllOf(HasSubstr("must be divisible by"), HasSubstr("in the twin 'five'")));
  EXPECT_FALSE(std::filesystem::exists(place.path("both")));
}

TEST(Train, weights_of_a_run_of_another_kind_are_refused_as_that) {
  const Workplace place;
  ASSERT_EQ(place.run("train hamilton --set train.steps=2 --set train.threads=1 --out numbers").code, 0);
  const Outcome outcome = place.run("train agreement" + kSmall + " --weights numbers --out words");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("numbers' is of kind regression, and this recipe is of kind "
                                       "text_classification: name a run of that kind"));
}

// A log whose reader goes away, standard files that are closed: the run ends as if nothing were.
TEST(Train, goes_on_without_its_standard_files) {
  const Workplace place;
  const std::string words = "train agreement" + kSmall + " --set train.steps=4 --out ";
  place.run(words + "whole");
  place.run(words + "piped 2>&1 | head -c 1");
  EXPECT_EQ(place.run(words + "closed <&- 2>&- >&-; echo $?").out, "0\n");
  for (const std::string run : {"piped", "closed"}) {
    EXPECT_TRUE(place.read(run + "/best/model.safetensors") == place.read("whole/best/model.safetensors"))
        << run;
    EXPECT_EQ(place.run("check " + run).code, 0);
  }
  // What could not be printed is not passed over.
  EXPECT_EQ(place.run("recipes document >/dev/full; echo $?").out, "1\n");
  EXPECT_EQ(place.run("runs . --json - >/dev/full; echo $?").out, "1\n");
}

TEST(Train, a_terminal_that_is_closed_stops_and_saves_unless_nohup_says_otherwise) {
  for (const bool nohup : {false, true}) {
    const Workplace place;
    const std::string run = place.path("run").string();
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    if (nohup) sigaction(SIGHUP, &ignore, &before);
    const Background program("train agreement" + kSmall + " --set train.log_every=1 --set train.steps=" +
                                 (nohup ? "300" : "1000000") + " --out " + run,
                             place.path("background.error"));
    if (nohup) sigaction(SIGHUP, &before, nullptr);
    wait_for(place.path("run/metrics.jsonl"), 1000);
    program.signal(SIGHUP);
    EXPECT_EQ(program.wait(), nohup ? 0 : 128 + SIGHUP);
    EXPECT_EQ(std::filesystem::exists(place.path("run/result.json")), nohup);
    EXPECT_GE(json::parse(place.read("run/last/checkpoint.json"))["step"], 1);
    if (!nohup) continue;
    // While it stops, a closed terminal still means nothing.
    sigaction(SIGHUP, &ignore, &before);
    const Background stopped(
        "train agreement" + kSmall + " --set train.log_every=1 --set train.steps=1000000 --out " + run + "2",
        place.path("background.error"));
    sigaction(SIGHUP, &before, nullptr);
    wait_for(place.path("run2/metrics.jsonl"), 1000);
    stopped.signal(SIGTERM);
    for (int i = 0; i < 100; ++i) stopped.signal(SIGHUP);
    EXPECT_EQ(stopped.wait(), 128 + SIGTERM);
  }
}

TEST(Train, paths_of_a_run_hold_from_everywhere) {
  const Workplace place;
  place.make_data();
  place.write("small.txt", "good 1 0 1 1\nbad 0 1 0 1\nfilm 0 0 1 1\n");
  ASSERT_EQ(place
                .run("train sentiment" + kSmall +
                     " --data data --set task.vectors=small.txt --set train.steps=2 --out run/")
                .code,
            0);
  const std::string run = place.path("run").string();
  const Outcome outcome = Workplace().run("train " + run + "/ --resume --set train.steps=4");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("training run ("));
  EXPECT_EQ(result_of(place, "run")["steps"], 4);
}

TEST(Evaluate, refuses_to_write_files_where_there_are_none) {
  const Workplace place;
  ASSERT_EQ(place.run("train hamilton --set train.steps=2 --set train.threads=1 --out run").code, 0);
  const Outcome outcome = place.run("evaluate run --out files");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("test set"));  // the table comes first
  EXPECT_THAT(outcome.error, HasSubstr("of this run makes figures and no files: leave out --out"));
  EXPECT_FALSE(std::filesystem::exists(place.path("files")));
  const Outcome figures = place.run("evaluate run --out files --json -");
  EXPECT_EQ(figures.code, 1);
  EXPECT_TRUE(json::parse(figures.out)["figures"].is_object());
}

TEST(Evaluate, gives_the_figures_of_the_run_again) {
  const Workplace place;
  place.make_data();
  ASSERT_EQ(place.run("train sentiment" + kSmall + " --set train.steps=5 --data data --out run").code, 0);
  const Outcome outcome = place.run("evaluate run --json figures.json");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("accuracy"));
  EXPECT_EQ(json::parse(place.read("figures.json"))["figures"]["accuracy"],
            result_of(place, "run")["test"]["accuracy"]);
  EXPECT_TRUE(json::parse(place.read("figures.json"))["notes"].is_array());
  const Outcome dev = place.run("evaluate run --split dev --data data --json -");
  EXPECT_EQ(json::parse(dev.out)["figures"]["accuracy"], result_of(place, "run")["dev"]["accuracy"]);
  EXPECT_THAT(place.run("evaluate run --split train").out, testing::ContainsRegex("train set +examples"));
  EXPECT_EQ(place.run("evaluate run --out scored").code, 0);
  EXPECT_EQ(place.read("scored/test.confusions.tsv"), place.read("run/test.confusions.tsv"));
  // A file that cannot be made is told before anything is scored, and one that cannot be filled takes the
  // table from nobody.
  const Outcome refused = place.run("evaluate run --json nowhere/figures.json");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, testing::IsEmpty());
  const Outcome lost = place.run("evaluate run --json /dev/full");
  EXPECT_EQ(lost.code, 1);
  EXPECT_THAT(lost.out, HasSubstr("accuracy"));
  // A test set of the run's labels needs no training set.
  ASSERT_EQ(
      place.run("train sentiment" + kSmall + " --set train.steps=5 --set task.data=tsv --data data --out own")
          .code,
      0);
  place.write("more/test.tsv", place.read("data/test.tsv"));
  const Outcome more = place.run("evaluate own --data more --json -");
  EXPECT_EQ(json::parse(more.out)["figures"]["accuracy"], result_of(place, "own")["test"]["accuracy"])
      << more.error;
  place.write("more/test.tsv", "good\tfilm\n");
  EXPECT_EQ(place.run("evaluate own --data more").code, 0);
  EXPECT_EQ(place.run("evaluate own --data more --split dev").code, 1);
  // Nor does one of a run whose sets were cut out of one file.
  ASSERT_EQ(
      place
          .run("train sentiment" + kSmall +
               " --set train.steps=5 --set task.data=tsv --data data/train.tsv --split 80/10/10 --out cut")
          .code,
      0);
  EXPECT_THAT(place.run("evaluate cut --data more").out, HasSubstr("accuracy"));
  // The run's own data are compared with what it was trained with, others are not.
  const Outcome own = place.run("evaluate own");
  EXPECT_THAT(own.error, testing::Not(HasSubstr("trained with")));
  place.write("data/test.tsv", place.read("data/test.tsv") + "good\tfilm\n");
  const std::string note = "test.texts is not what this run was trained with";
  const Outcome changed = place.run("evaluate own --json -");
  EXPECT_EQ(changed.code, 0);
  EXPECT_THAT(changed.error, HasSubstr(note));
  EXPECT_THAT(json::parse(changed.out)["notes"],
              testing::ElementsAre(testing::ResultOf([](const json& one) { return one.get<std::string>(); },
                                                     HasSubstr(note))));
  EXPECT_THAT(place.run("evaluate own --split dev").error, testing::Not(HasSubstr(note)));
  EXPECT_THAT(place.run("evaluate own --data data").error, testing::Not(HasSubstr(note)));
  // Data with other labels are not this run's.
  place.write("data/stsa.binary.test", "5 what\n");
  EXPECT_EQ(place.run("evaluate run").code, 1);
}

}  // namespace
}  // namespace quatrain::cli
