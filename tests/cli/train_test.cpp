#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/program.h"
#include "quatrain/train/recipe.h"

extern char** environ;

namespace quatrain::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json result_of(const Workplace& place, const std::string& run) {
  return json::parse(place.read(run + "/result.json"));
}

// Every recipe and every twin of it makes two steps and is scored.
TEST(Train, every_recipe_runs) {
  const Workplace place;
  const std::string data = " --data " + place.make_data();
  for (const auto& entry : std::filesystem::directory_iterator(QUATRAIN_RECIPES)) {
    const auto recipe = train::read_recipe(entry.path().string());
    const bool generated = recipe.task.data == "agreement";
    std::vector<std::string> variants{""};
    for (const auto& twin : recipe.twins) variants.push_back(twin.name);
    for (const auto& variant : variants) {
      SCOPED_TRACE(recipe.name + " " + variant);
      const std::string run = recipe.name + "-" + variant;
      const Outcome outcome =
          place.run("train " + recipe.name + kSmall + " --set train.steps=2 --out " + run +
                    (generated ? "" : data) + (variant.empty() ? "" : " --twin " + variant));
      ASSERT_EQ(outcome.code, 0) << outcome.error;
      EXPECT_THAT(outcome.out, HasSubstr("quatrain predict " + run));
      const json result = result_of(place, run);
      EXPECT_EQ(result["steps"], 2);
      EXPECT_TRUE(result["test"].contains("accuracy"));
    }
  }
}

TEST(Train, the_run_stores_the_effective_recipe) {
  const Workplace place;
  const std::string data = place.make_data();
  ASSERT_EQ(
      place.run("train sentiment" + kSmall + " --set train.steps=1 --seed 7 --data data --out run").code, 0);
  const auto stored = train::read_recipe(place.path("run/best/recipe.toml").string());
  EXPECT_EQ(stored.train.seed, 7);
  EXPECT_EQ(stored.model.width, 32);
  EXPECT_EQ(stored.task.folder, std::filesystem::canonical(place.path(data)).string());
  EXPECT_NE(stored.task.tokenizer, "automatic");
}

TEST(Train, a_folder_that_holds_a_run_is_safe) {
  const Workplace place;
  const std::string words = "train agreement" + kSmall + " --set train.steps=1 --out run";
  ASSERT_EQ(place.run(words).code, 0);
  const std::string before = place.read("run/result.json");
  const Outcome again = place.run(words);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.error, HasSubstr("'run' holds a run already"));
  EXPECT_EQ(place.read("run/result.json"), before);
  const Outcome other = place.run("train agreement --set model.width=64 --resume --out run");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("they differ in"));
  EXPECT_THAT(other.error, HasSubstr("model.width"));
  EXPECT_EQ(place.run(words + " --overwrite --seed 5").code, 0);
  EXPECT_EQ(result_of(place, "run")["seed"], 5);
}

// The program in the background.
class Background {
 public:
  Background(const Workplace& place, std::vector<std::string> words) {
    words.insert(words.begin(), QUATRAIN_PROGRAM);
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string error = place.path("background.error").string();
    posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT_EQ(posix_spawn(&process_, QUATRAIN_PROGRAM, &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  void signal(int number) const { kill(process_, number); }
  std::string environment() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/environ", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int wait() const {
    int status = 0;
    waitpid(process_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t process_ = 0;
};

std::vector<std::string> split(const std::string& words) {
  std::istringstream stream(words);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Train, a_stopped_run_goes_on) {
  for (const auto& [number, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const Workplace place;
    const std::string run = place.path("run").string();
    const Background program(place, split("train agreement" + kSmall +
                                          " --set train.steps=1000000 --set train.schedule=constant"
                                          " --set train.log_every=1 --out " +
                                          run));
    const auto begin = std::chrono::steady_clock::now();
    while (place.read("run/metrics.jsonl").size() < 1000 &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(60))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    // Threads that wait do not keep others from the processor, whatever OpenMP's own default is.
    EXPECT_THAT(program.environment(), HasSubstr("GOMP_SPINCOUNT="));
    program.signal(number);
    EXPECT_EQ(program.wait(), code);
    const std::string error = place.read("background.error");
    EXPECT_THAT(error, HasSubstr("go on with: quatrain train " + run + " --resume"));
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

TEST(Evaluate, gives_the_figures_of_the_run_again) {
  const Workplace place;
  place.make_data();
  ASSERT_EQ(place.run("train sentiment" + kSmall + " --set train.steps=5 --data data --out run").code, 0);
  const Outcome outcome = place.run("evaluate run --json figures.json");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("accuracy"));
  EXPECT_EQ(json::parse(place.read("figures.json"))["figures"]["accuracy"],
            result_of(place, "run")["test"]["accuracy"]);
  const Outcome dev = place.run("evaluate run --split dev --data data --json -");
  EXPECT_EQ(json::parse(dev.out)["figures"]["accuracy"], result_of(place, "run")["dev"]["accuracy"]);
  // Data with other labels are not this run's.
  place.write("data/stsa.binary.test", "5 what\n");
  EXPECT_EQ(place.run("evaluate run").code, 1);
}

}  // namespace
}  // namespace quatrain::cli
