#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// A wrong command line: exit code 2, one sentence, nothing on the standard output.
void expect_usage_error(const Workplace& place, const std::string& words, const std::string& sentence) {
  SCOPED_TRACE(words);
  const Outcome outcome = place.run(words);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.error, HasSubstr(sentence));
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  EXPECT_TRUE(outcome.error.starts_with("quatrain: ")) << outcome.error;
}

TEST(Usage, help_answers_everywhere) {
  const Workplace place;
  for (const std::string command : {"",
                                    "train",
                                    "average",
                                    "evaluate",
                                    "predict",
                                    "shortlist",
                                    "score",
                                    "runs",
                                    "check",
                                    "plot",
                                    "convert",
                                    "compare",
                                    "bench",
                                    "bench linear",
                                    "bench encoder",
                                    "bench recurrent",
                                    "bench pairs",
                                    "bench decoding",
                                    "bench model",
                                    "info",
                                    "info algebras",
                                    "recipes",
                                    "recipes show",
                                    "recipes document"}) {
    SCOPED_TRACE(command);
    const Outcome outcome = place.run(command + " --help");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Usage:"));
    EXPECT_THAT(outcome.error, IsEmpty());
    // Its own examples, not those of the program.
    const auto examples = outcome.out.find("Examples:");
    ASSERT_NE(examples, std::string::npos);
    EXPECT_THAT(outcome.out.substr(examples), HasSubstr("quatrain " + command.substr(0, command.find(' '))));
  }
  EXPECT_THAT(place.run("--version").out, StartsWith("quatrain " QUATRAIN_VERSION));
}

TEST(Usage, convert_names_every_program_that_runs_are_written_for) {
  const std::string help = Workplace().run("convert --help").out;
  for (const char* format : {"ctranslate2", "kaldi"}) EXPECT_THAT(help, HasSubstr(format));
}

TEST(Usage, mistyped_words_get_the_nearest) {
  const Workplace place;
  expect_usage_error(place, "trian agreement", "quatrain has no command 'trian' (did you mean train?)");
  expect_usage_error(place, "train agreement --ouput x",
                     "quatrain train has no option '--ouput' (did you mean --out?)");
  expect_usage_error(place, "info algebra", "(did you mean algebras?)");
  expect_usage_error(place, "train agreemnt", "no recipe or file 'agreemnt' (did you mean agreement?)");
  expect_usage_error(place, "train agreement --twin quaternoin", "did you mean quaternion?");
  expect_usage_error(place, "train agreement --set model.widht=64", "did you mean model.width?");
}

TEST(Usage, wrong_words_are_refused_before_anything_runs) {
  const Workplace place;
  place.make_data();
  expect_usage_error(place, "", "A subcommand is required");
  expect_usage_error(place, "train", "recipe is required");
  expect_usage_error(place, "train sentiment",
                     "needs the folder of its 'sst' data: pass --data FOLDER or set QUATRAIN_DATA");
  // One that would not be read is refused: its figures would not be of the data that were named.
  expect_usage_error(place, "train shapes --data data",
                     "recipe 'shapes' generates its data: --data has nothing to read; a folder is read by "
                     "task.data = ");
  expect_usage_error(place, "train sentiment --data nowhere", "Path does not exist: nowhere");
  expect_usage_error(place, "train agreement --set model.width=510 --set model.algebra=quaternion",
                     "model.width must be divisible by n * heads = 16");
  expect_usage_error(place, "train agreement --set model.width", "--set must be of the form table.key=value");
  expect_usage_error(place, "train agreement --seed x", "train.seed must be an integer, got 'x'");
  expect_usage_error(place, "train agreement --resume", "--resume needs the folder of the run");
  expect_usage_error(place, "train agreement --resume --overwrite --out x", "excludes");
  expect_usage_error(place, "train data", "is a folder that contains no run and no recipe.toml");
  expect_usage_error(place, "compare agreement --seeds 0", "1 to 1000 seeds");
  expect_usage_error(place, "compare agreement --seeds 1,x", "got 'x'");
  expect_usage_error(place, "compare agreement --seeds 1,1", "names 1 twice");
  expect_usage_error(place, "predict nowhere", "'nowhere' is not a run");
  expect_usage_error(place, "score a", "references is required");
  expect_usage_error(place, "score a b --tokenize intl", "intl");
  expect_usage_error(place, "evaluate nowhere", "'nowhere' is not a run");
  expect_usage_error(place, "check nowhere", "'nowhere' is not a run");
  expect_usage_error(place, "plot nowhere", "'nowhere' is not a run");
  expect_usage_error(place, "bench linaer", "quatrain bench has no command 'linaer' (did you mean linear?)");
  expect_usage_error(place, "bench linear --sizes 64,66", "divisible by n = 4, got 66 (nearest: 64, 68)");
  expect_usage_error(place, "bench linear --sizes 64x30", "divisible by n = 4, got 30");
  expect_usage_error(place, "bench linear --algebra 'phm(5)' --sizes 64", "divisible by n = 5, got 64");
  for (const std::string size : {"wide", "64x", "0", "99999999999999999999"})
    expect_usage_error(place, "bench linear --sizes=" + size, "got '" + size + "'");
  expect_usage_error(place, "bench linear --dtype int8", "int8");
  expect_usage_error(place, "bench linear --pass backward", "backward");
  expect_usage_error(place, "bench linear --batch 0", "--batch");
  expect_usage_error(place, "bench linear --threads 0", "--threads");
  expect_usage_error(place, "bench linear --algebra quaternions", "quaternion");
  expect_usage_error(place, "bench encoder --width 60 --heads 8", "divisible by n * heads = 32, got 60");
  expect_usage_error(place, "bench encoder --feed-forward 30", "divisible by n = 4, got 30");
  expect_usage_error(place, "bench model agreemnt", "did you mean agreement?");
  expect_usage_error(place, "bench model sentiment", "needs the folder of its");
  place.write("empty.toml", "[train]\nsteps = 0\n");
  expect_usage_error(place, "train empty.toml", "empty.toml:2: train.steps and train.epochs are both 0");
  place.write("alone.toml", "");
  expect_usage_error(place, "compare alone.toml", "has no twins to compare");
  EXPECT_FALSE(std::filesystem::exists(place.path("runs")));
}

TEST(Usage, failures_at_work_have_their_own_code) {
  const Workplace place;
  place.write("torn/stsa.binary.train", "1 fine\n");
  const Outcome missing = place.run("train sentiment --data torn");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.error, HasSubstr("stsa.binary.dev"));
  std::filesystem::create_directory(place.path("bare"));
  EXPECT_EQ(place.run("predict bare").code, 2);
}

TEST(Info, says_what_a_report_needs) {
  const Workplace place;
  const Outcome outcome = place.run("info");
  EXPECT_EQ(outcome.code, 0);
  for (const char* word :
       {"quatrain", "torch", "processor", "threads", "OpenMP", "devices", "cuda", "baseline"})
    EXPECT_THAT(outcome.out, HasSubstr(word));
  ::setenv("QUATRAIN_CPU_ISA", "baseline", 1);
  EXPECT_THAT(place.run("info").out, testing::ContainsRegex("quatrain computes with +baseline"));
  ::setenv("QUATRAIN_CPU_ISA", "abacus", 1);
  EXPECT_THAT(place.run("info").error, HasSubstr("got 'abacus'"));
  ::unsetenv("QUATRAIN_CPU_ISA");
  const Outcome algebras = place.run("info algebras");
  EXPECT_THAT(algebras.out, testing::ContainsRegex("quaternion +4 +8 +0.500 +associative, division"));
  EXPECT_THAT(algebras.out, testing::ContainsRegex("octonion +8 +26 +0.406"));
}

TEST(Bench, says_what_there_is) {
  const Outcome outcome = Workplace().run("bench");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.error, IsEmpty());
  for (const char* word : {"Usage: quatrain bench", "linear", "encoder", "model"})
    EXPECT_THAT(outcome.out, HasSubstr(word));
}

TEST(Recipes, are_listed_shown_and_documented) {
  const Workplace place;
  const Outcome list = place.run("recipes");
  EXPECT_EQ(list.code, 0);
  // Every recipe of the project came with the program, word for word.
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QUATRAIN_RECIPES)) {
    const std::string name = entry.path().stem().string();
    EXPECT_THAT(list.out, HasSubstr(name + "\n"));
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(place.run("recipes show " + name).out, text);
    ++count;
  }
  EXPECT_GE(count, 3);
  place.write("recipes/mine.toml", "description = 'my own'\n");
  EXPECT_THAT(place.run("recipes list").out, HasSubstr("mine\n    my own"));
}

TEST(Recipes, the_page_of_keys_is_up_to_date) {
  const Workplace place;
  std::ifstream file(QUATRAIN_RECIPES "/../docs/recipes.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(place.run("recipes document").out, text) << "run: quatrain recipes document > docs/recipes.md";
}

}  // namespace
}  // namespace quatrain::cli
