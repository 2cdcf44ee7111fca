// runs, check, plot; and what train says of damaged checkpoints, stops and kills.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf, testing::HasSubstr, testing::Not;

// Changes one byte in the middle of a file.
void damage(const fs::path& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(file) / 2);
  stream.seekg(middle);
  const int byte = stream.get();
  stream.seekp(middle);
  stream.put(static_cast<char>(byte ^ 1));
}

// Counts how often files are opened from now on.
class Opened {
 public:
  explicit Opened(const std::vector<fs::path>& files) : fd_(::inotify_init1(IN_NONBLOCK)) {
    for (const auto& file : files) EXPECT_GE(::inotify_add_watch(fd_, file.c_str(), IN_OPEN), 0) << file;
  }
  ~Opened() { ::close(fd_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int64_t count() const {
    std::array<char, 1 << 14> events;
    const ssize_t bytes = ::read(fd_, events.data(), events.size());
    return bytes <= 0 ? 0 : bytes / static_cast<ssize_t>(sizeof(inotify_event));
  }

 private:
  int fd_;
};

const std::string kRun = "train agreement" + kSmall + " --set train.steps=12 --set train.evaluate_every=4";

TEST(Runs, are_listed_with_their_figures) {
  const Workplace place;
  EXPECT_EQ(place.run("runs").code, 2);
  ASSERT_EQ(place.run(kRun + " --out runs/one").code, 0);
  ASSERT_EQ(place.run(kRun + " --out runs/some/two --set model.algebra=quaternion").code, 0);
  ASSERT_EQ(place.run(kRun + " --out runs/some/three").code, 0);
  fs::resize_file(place.path("runs/some/three/last/training.safetensors"), 99);
  const Opened weights({place.path("runs/one/last/model.safetensors"),
                        place.path("runs/one/best/model.safetensors"),
                        place.path("runs/one/last/training.safetensors")});
  const Outcome outcome = place.run("runs");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(testing::ContainsRegex("runs/one +finished +real"),
                                 testing::ContainsRegex("runs/some/two +finished +quaternion"),
                                 testing::ContainsRegex("runs/some/three +damaged"),
                                 testing::ContainsRegex("[0-9]+\\.[0-9]+%")));
  EXPECT_EQ(weights.count(), 0);
  const json list = json::parse(place.run("runs runs/some --json -").out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]["algebra"], "quaternion");
  EXPECT_EQ(list[1]["step"], 12);
  EXPECT_EQ(list[1]["test"]["accuracy"],
            json::parse(place.read("runs/some/two/result.json"))["test"]["accuracy"]);
  fs::create_directory(place.path("empty"));
  fs::create_directory(place.path("links"));
  fs::create_symlink(place.path("runs/one"), place.path("links/elsewhere"));
  fs::create_symlink(place.path("links"), place.path("links/round"));
  EXPECT_EQ(json::parse(place.run("runs links --json -").out).size(), 1u);
  fs::create_directory(place.path("links/caf\xE9"));
  fs::copy(place.path("runs/one"), place.path("links/caf\xE9"), fs::copy_options::recursive);
  EXPECT_EQ(json::parse(place.run("runs links --json -").out).size(), 2u);
  EXPECT_THAT(place.run("runs empty").out, HasSubstr("no run in 'empty'"));
  fs::rename(place.path("links/caf\xE9"), place.path("links/mean.part.4711.0"));  // of a killed `average`
  for (const auto& [folder, whole] : {std::pair{"links", 1u}, {"links/mean.part.4711.0/", 0u}}) {
    const Outcome unfinished = place.run(std::string("runs ") + folder + " --json -");
    EXPECT_EQ(unfinished.code, 0);
    EXPECT_EQ(json::parse(unfinished.out).size(), whole);
    EXPECT_THAT(unfinished.error, HasSubstr("left out: 'links/mean.part.4711.0"));
  }
}

TEST(Check, names_what_is_damaged_and_train_offers_what_is_sound) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --keep 3 --out run").code, 0);
  const Outcome sound = place.run("check run");
  EXPECT_EQ(sound.code, 0) << sound.error;
  for (const char* part :
       {"best +sound: [0-9,]+ parameters of real", "last +sound: .*adam, step 12", "step-000004 +sound",
        "step-000008 +sound", "metrics.jsonl +sound: [0-9]+ lines",
        "result.json +sound: finished after 12 steps", "predictions.tsv +sound: 60 answers"})
    EXPECT_THAT(sound.out, testing::ContainsRegex(part));
  const std::string weights = place.read("run/last/model.safetensors");

  damage(place.path("run/last/model.safetensors"));
  std::ofstream(place.path("run/metrics.jsonl"), std::ios::app) << R"({"kind":"trai)";
  std::ofstream(place.path("run/predictions.tsv"), std::ios::app) << "1\n";
  const Outcome damaged = place.run("check run");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.error, HasSubstr("'run' is not as a trainer left it in 3 parts"));
  EXPECT_THAT(
      damaged.out,
      AllOf(HasSubstr("model.safetensors has changed since it was written"),
            HasSubstr("quatrain train run --resume --from step-000008"), HasSubstr("metrics.jsonl:"),
            HasSubstr("this line is not as a trainer wrote it"), HasSubstr("is not what a trainer wrote")));
  const Outcome refused = place.run("train run --resume --set train.steps=12");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("'run/last' is damaged"), HasSubstr("--from step-000008")));
  ASSERT_EQ(place.run("train run --resume --from step-000008").code, 0);
  EXPECT_EQ(place.read("run/last/model.safetensors"), weights);
  EXPECT_EQ(place.run("check run").code, 0);
  EXPECT_EQ(place.run("check nothing").code, 2);

  // Changed on purpose: accepted where it is good in itself.
  fs::copy_file(place.path("run/best/model.safetensors"), place.path("selected"));
  fs::copy_file(place.path("run/last/model.safetensors"), place.path("run/best/model.safetensors"),
                fs::copy_options::overwrite_existing);
  std::ofstream(place.path("run/best/recipe.toml"), std::ios::app) << "# mine\n";
  EXPECT_EQ(place.run("predict run", "the keys\n").code, 1);
  const Outcome accepted = place.run("check run --accept");
  EXPECT_EQ(accepted.code, 0) << accepted.out;
  EXPECT_THAT(accepted.out, testing::ContainsRegex("best +sound: .*changed, and accepted as it is"));
  EXPECT_EQ(place.run("predict run", "the keys\n").code, 0);
  // The run's figures are not theirs, and no training replaces them, until those it selected are back.
  EXPECT_THAT(place.run("check run").out, HasSubstr("its weights were accepted"));
  EXPECT_THAT(place.run("runs .").out, testing::ContainsRegex("run +finished .* - +- "));
  EXPECT_THAT(place.run("train run --resume").error, HasSubstr("quatrain evaluate run scores them"));
  const std::string accepted_weights = place.read("run/best/model.safetensors");
  const Outcome further = place.run("train run --resume --set train.steps=16");
  EXPECT_EQ(further.code, 1);
  EXPECT_THAT(further.error, AllOf(HasSubstr("training would replace them"),
                                   HasSubstr("quatrain train run --weights run --out NEW")));
  EXPECT_EQ(place.read("run/best/model.safetensors"), accepted_weights);
  fs::copy_file(place.path("selected"), place.path("run/best/model.safetensors"),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(place.run("check run --accept").code, 0);
  EXPECT_THAT(place.run("check run").out, testing::Not(HasSubstr("its weights were accepted")));
  EXPECT_EQ(place.run("train run --resume --set train.steps=16").code, 0);
  const std::string labels = place.read("run/best/labels.txt");
  for (const auto& [bad, why] : {std::pair{"same\nsame\n", "names \"same\" twice"},
                                 std::pair{"one\n", "must have two labels at least, one a line, got 1"}}) {
    place.write("run/best/labels.txt", bad);
    const Outcome outcome = place.run("check run --accept");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.out, HasSubstr(why));
  }
  place.write("run/best/labels.txt", labels);
  damage(place.path("run/best/vocabulary.txt"));
  std::ofstream(place.path("run/best/vocabulary.txt"), std::ios::app) << "more\nwords\n";
  EXPECT_EQ(place.run("check run --accept").code, 1);
  EXPECT_EQ(place.run("predict run", "the keys\n").code, 1);
}

// Any of their bits; a file of an older version has no checksum, and that is said.
TEST(Check, sees_a_flipped_bit_in_metrics_result_and_predictions) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --set train.log_every=4 --out run").code, 0);
  for (const std::string name : {"run/metrics.jsonl", "run/result.json", "run/predictions.tsv"}) {
    const std::string whole = place.read(name);
    for (size_t i = 3; i < whole.size(); i += 1 + whole.size() / 7) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      place.write(name, changed);
      const Outcome outcome = place.run("check run");
      EXPECT_EQ(outcome.code, 1) << name << " " << i;
      EXPECT_THAT(outcome.out, Not(HasSubstr("without a checksum")));
    }
    place.write(name, whole);
  }
  const std::string metrics = place.read("run/metrics.jsonl");
  place.write("run/metrics.jsonl", metrics.substr(metrics.find('\n') + 1));
  const Outcome fewer = place.run("check run");
  EXPECT_EQ(fewer.code, 1);
  EXPECT_THAT(fewer.out, HasSubstr("5 lines where the checkpoint 'last' had 6: some were deleted or lost"));
  std::string old;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    auto record = nlohmann::ordered_json::parse(line);
    record.erase("checksum");
    old += record.dump() + "\n";
  }
  place.write("run/metrics.jsonl", old);
  auto result = nlohmann::ordered_json::parse(place.read("run/result.json"));
  for (const char* key : {"checksum", "predictions", "figure"}) result.erase(key);
  place.write("run/result.json", result.dump(2) + "\n");
  const Outcome outcome = place.run("check run");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"6 lines, 6 of them without a checksum, of an older version",
                           "finished after 12 steps, without a checksum", "60 answers, without a checksum"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  EXPECT_THAT(place.run("runs .").out, testing::ContainsRegex("finished .*[0-9]%"));
}

TEST(Check, misses_what_is_not_there) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --out run").code, 0);
  for (const std::string part : {"best", "last", "metrics.jsonl", "predictions.tsv"}) {
    SCOPED_TRACE(part);
    fs::rename(place.path("run/" + part), place.path("away"));
    EXPECT_EQ(place.run("check run").code, 1);
    fs::rename(place.path("away"), place.path("run/" + part));
  }
  EXPECT_EQ(place.run("check run").code, 0);
  const std::string answers = place.read("run/predictions.tsv");
  fs::remove(place.path("run/result.json"));
  fs::remove(place.path("run/predictions.tsv"));
  const Outcome without = place.run("check run");
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.out, testing::ContainsRegex("result.json +missing, .*train run --resume"));
  ASSERT_EQ(place.run("train run --resume").code, 0);
  EXPECT_EQ(place.run("check run").code, 0);
  EXPECT_EQ(place.read("run/predictions.tsv"), answers);
  // Between two renames; and damaged then.
  fs::rename(place.path("run/last"), place.path("run/last.old"));
  EXPECT_EQ(place.run("check run").code, 0);
  damage(place.path("run/last.old/model.safetensors"));
  EXPECT_EQ(place.run("check run").code, 1);
  fs::remove(place.path("run/metrics.jsonl"));
  ASSERT_EQ(std::system(("mkfifo '" + place.path("run/metrics.jsonl").string() + "'").c_str()), 0);
  EXPECT_THAT(place.run("check run").out, HasSubstr("it is a pipe or a device"));
}

// What waits for ever or never ends is not opened.
TEST(Check, pipes_and_devices_are_refused) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --out run").code, 0);
  for (const std::string make : {"mkfifo ", "ln -s /dev/zero "})
    for (const std::string name : {"metrics.jsonl", "predictions.tsv", "result.json"}) {
      SCOPED_TRACE(make + name);
      const fs::path file = place.path("run/" + name);
      fs::rename(file, place.path("away"));
      ASSERT_EQ(std::system((make + "'" + file.string() + "'").c_str()), 0);
      EXPECT_EQ(place.run("check run").code, 1);
      if (name == "metrics.jsonl") {
        EXPECT_THAT(place.run("train run --resume --set train.steps=14").error,
                    HasSubstr("metrics.jsonl': it is a pipe or a device"));
      }
      fs::remove(file);
      fs::rename(place.path("away"), file);
    }
  EXPECT_EQ(place.run("check run").code, 0);
}

// Nothing is built by a stored recipe whose sizes are out of range.
TEST(Check, sizes_of_a_stored_recipe_are_bounded) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --out run").code, 0);
  const std::string recipe = place.read("run/best/recipe.toml");
  for (const auto& [line, rule] : {std::pair{"layers = 1000000000", "model.layers must be at most 1000"},
                                   std::pair{"width = 0", "model.width must be at least 1"}}) {
    const std::string key = "\n" + std::string(line).substr(0, std::string(line).find('=') + 1);
    const size_t begin = recipe.find(key) + 1;
    std::string changed = recipe;
    changed.replace(begin, recipe.find('\n', begin) - begin, line);
    place.write("run/best/recipe.toml", changed);
    EXPECT_EQ(place.run("predict run", "the keys\n").code, 1);
    const Outcome accepted = place.run("check run --accept");
    EXPECT_EQ(accepted.code, 1);
    EXPECT_THAT(accepted.out, HasSubstr(rule));
  }
}

TEST(Check, a_result_of_another_run_is_told) {
  const Workplace place;
  const std::string words = "train hamilton --set train.threads=1 --set train.steps=6 --out ";
  ASSERT_EQ(place.run(words + "one --seed 1").code, 0);
  ASSERT_EQ(place.run(words + "two --seed 2").code, 0);
  fs::copy_file(place.path("one/result.json"), place.path("two/result.json"),
                fs::copy_options::overwrite_existing);
  const Outcome wrong = place.run("check two");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("is of other weights than those of 'best'"),
                               HasSubstr("delete it and resume the run")));
  EXPECT_THAT(place.run("runs two").out, testing::ContainsRegex("two +damaged"));
  EXPECT_EQ(place.run("train two --resume").code, 1);
  EXPECT_EQ(place.run("check two --accept").code, 0);
  EXPECT_EQ(place.run("check two").code, 0);
}

// Reasons that even root is given.
TEST(Check, what_cannot_be_read_is_not_called_missing) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --keep 3 --out run").code, 0);
  const auto loop = [](const fs::path& file) {
    fs::remove_all(file);
    fs::create_symlink(file.filename(), file);
  };
  fs::copy(place.path("run"), place.path("manifest"), fs::copy_options::recursive);
  loop(place.path("manifest/last/checkpoint.json"));
  Outcome outcome = place.run("check manifest");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("checkpoint.json cannot be read: Too many levels"),
                                 Not(HasSubstr("is missing")), Not(HasSubstr("--from"))));
  fs::copy(place.path("run"), place.path("result"), fs::copy_options::recursive);
  loop(place.path("result/result.json"));
  EXPECT_THAT(place.run("check result").out + place.run("check result").error,
              AllOf(HasSubstr("Too many levels"), Not(HasSubstr("delete it"))));
  loop(place.path("run/last"));
  outcome = place.run("runs run");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("cannot use 'run/last': Too many levels"));
  outcome = place.run("runs .");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.error, HasSubstr("left out: cannot use './run/last': Too many levels"));
  outcome = place.run("check run");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("Too many levels"));
}

TEST(Train, a_finished_run_keeps_its_result_where_best_is_damaged) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --out run").code, 0);
  auto state = json::parse(place.read("run/last/training.json"));
  if (state["best_step"] == state["step"]) GTEST_SKIP() << "the last weights are the best here";
  const std::string result = place.read("run/result.json"), answers = place.read("run/predictions.tsv");
  fs::resize_file(place.path("run/best/recipe.toml"), fs::file_size(place.path("run/best/recipe.toml")) - 1);
  const Outcome outcome = place.run("train run --resume");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("'run/best' cannot be used (recipe.toml has"),
                                   HasSubstr("put them back, or delete result.json and resume")));
  EXPECT_EQ(place.read("run/result.json"), result);
  EXPECT_EQ(place.read("run/predictions.tsv"), answers);
}

TEST(Train, a_limit_of_file_sizes_is_told_as_a_full_disk_is) {
  const Workplace place;
  place.write("limited", "ulimit -f 60\nexec \"$@\"\n");
  const std::string words = kRun + " --set train.rate=0.001 --out run";
  const Outcome outcome = place.run_under("sh limited", words);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error,
              AllOf(HasSubstr("the run begins at step 0"), HasSubstr("File too large"),
                    HasSubstr("no checkpoint was written yet: make room, then start the run again"),
                    Not(HasSubstr("training continues"))));
  EXPECT_EQ(place.run(words).code, 0);  // there is no run that the command would have to resume
}

TEST(Train, a_loss_that_was_not_measured_is_not_shown) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --out run").code, 0);
  fs::remove(place.path("run/result.json"));
  const Outcome outcome = place.run("train run --resume");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("step 12/12"), Not(HasSubstr("loss 0.0000"))));
}

TEST(Train, weights_of_what_is_no_run_are_refused_as_that) {
  const Workplace place;
  const Outcome outcome = place.run(kRun + " --set train.weights=. --out run");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("train.weights: '"), HasSubstr("is not a run with a checkpoint"),
                                   Not(HasSubstr("start a new run"))));
}

TEST(Train, a_damaged_recipe_of_a_run_is_named_before_it_is_read) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --keep 3 --out run").code, 0);
  place.write("run/last/recipe.toml", "[tas");
  const Outcome outcome = place.run("train run --resume");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("'run/last' is damaged"), HasSubstr("--from step-000008")));
}

TEST(Plot, draws_the_curves) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --set train.log_every=1 --out it\\'s").code, 0);
  ASSERT_EQ(place.run(kRun + " --set train.log_every=1 --seed 2 --out two").code, 0);
  const Outcome outcome = place.run("plot it\\'s two");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "plot.svg\n");
  const std::string picture = place.read("plot.svg");
  EXPECT_THAT(picture,
              AllOf(HasSubstr("<svg"), HasSubstr("it's"), HasSubstr("two"), HasSubstr("training loss"),
                    HasSubstr("accuracy on the dev set"), HasSubstr("</svg>")));
  ASSERT_EQ(place.run("plot two --figure loss --out two.png").code, 0);
  EXPECT_TRUE(place.read("two.png").starts_with("\x89PNG"));
  ASSERT_EQ(place.run("plot two --log --out log.svg").code, 0);
  ASSERT_EQ(place.run("plot two --out 'a\tb\nc.svg'").code, 0);
  EXPECT_THAT(place.read("a\tb\nc.svg"), HasSubstr("</svg>"));
  EXPECT_NE(place.read("log.svg"), picture);
  EXPECT_THAT(place.run("plot two --out nowhere/two.svg").error, HasSubstr("there is no folder"));
  // A line that cannot be read is left out, and said.
  std::ofstream(place.path("two/metrics.jsonl"), std::ios::app) << "{\n";
  const Outcome without = place.run("plot two/ --out without.svg");
  EXPECT_EQ(without.code, 0);
  EXPECT_THAT(without.error, HasSubstr("left out: two/metrics.jsonl:"));
  EXPECT_THAT(place.read("without.svg"), HasSubstr("two"));
  // What fails leaves the picture before.
  EXPECT_THAT(place.run("plot two nothing").error, HasSubstr("'nothing' is not a run"));
  EXPECT_EQ(place.read("plot.svg"), picture);
  EXPECT_THAT(place.run("plot two --out two.pdf").error,
              HasSubstr("must end in .svg or .png, got 'two.pdf'"));
  EXPECT_THAT(place.run("plot two --figure beauty").error, HasSubstr("have accuracy"));
  for (const auto& entry : fs::directory_iterator(place.folder()))
    EXPECT_NE(entry.path().extension(), ".part");
}

TEST(Plot, says_how_to_get_gnuplot) {
  const Workplace place;
  ASSERT_EQ(place.run(kRun + " --out run").code, 0);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const Outcome outcome = place.run("plot run");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("apt-get install gnuplot-nox"));
  EXPECT_FALSE(fs::exists(place.path("plot.svg")));
}

// The real program, killed by the clock, again and again.
TEST(Train, a_run_that_is_killed_again_and_again_gives_the_same_bits) {
  const Workplace place;
  const std::string words =
      "train agreement" + kSmall +
      " --set train.steps=60 --set train.evaluate_every=20 --set train.checkpoint_every=3 --set "
      "train.log_every=1"
      " --twin phm4 --set train.optimizer=rmsprop --set train.rate=0.001 --set train.threads=2 --out ";
  ASSERT_EQ(place.run(words + "whole").code, 0);
  const std::string run = place.path("run").string();
  int killed = 0;
  for (const size_t bytes : {300u, 1500u, 4000u}) {
    const Background program(words + run + " --resume", place.path("background.error"));
    wait_for(place.path("run/metrics.jsonl"), bytes);
    program.signal(SIGKILL);
    killed += program.wait() == 128 + SIGKILL;
  }
  EXPECT_GT(killed, 0);
  const Outcome outcome = place.run(words + "run --resume");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* file :
       {"best/model.safetensors", "last/model.safetensors", "last/training.safetensors", "predictions.tsv"})
    EXPECT_EQ(place.read(std::string("run/") + file), place.read(std::string("whole/") + file)) << file;
}

TEST(Train, a_second_signal_ends_at_once_and_the_run_resumes) {
  const Workplace place;
  const std::string run = place.path("run").string();
  {
    const Background program("train agreement" + kSmall +
                                 " --set train.steps=1000000 --set train.log_every=1"
                                 " --set train.schedule=constant --set train.checkpoint_every=5 --out " +
                                 run,
                             place.path("background.error"));
    wait_for(place.path("run/metrics.jsonl"), 1500);
    program.signal(SIGINT);
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 130);
  }
  const auto made = json::parse(place.read("run/last/training.json"))["step"].get<int64_t>();
  const Outcome outcome = place.run("train run --resume --set train.steps=" + std::to_string(made + 3));
  EXPECT_EQ(outcome.code, 0) << outcome.error;
}

TEST(Train, the_same_seed_gives_the_same_bits_in_every_process) {
  const Workplace place;
  for (const char* threads : {"1", "2"}) {
    const std::string words = "train agreement" + kSmall + " --set train.steps=6 --set model.width=64" +
                              " --deterministic --set train.threads=" + threads + " --out ";
    ASSERT_EQ(place.run(words + "a" + threads).code, 0);
    ASSERT_EQ(place.run(words + "b" + threads).code, 0);
    EXPECT_EQ(place.read(std::string("a") + threads + "/last/model.safetensors"),
              place.read(std::string("b") + threads + "/last/model.safetensors"));
  }
}

TEST(Train, two_processes_do_not_train_in_one_folder) {
  const Workplace place;
  const std::string run = place.path("run").string();
  const Background program(
      "train agreement" + kSmall + " --set train.steps=1000000 --set train.log_every=1 --out " + run,
      place.path("background.error"));
  wait_for(place.path("run/metrics.jsonl"), 300);
  const Outcome second = place.run("train run --resume");
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.error, HasSubstr("another process trains in 'run'"));
  // Before data are looked for, of which there are none.
  EXPECT_THAT(place.run("train imdb --data . --out run --overwrite").error,
              HasSubstr("another process trains in 'run'"));
  EXPECT_THAT(place.run("runs .").out, testing::ContainsRegex("run +training"));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 143);
  EXPECT_THAT(place.run("runs .").out, testing::ContainsRegex("run +stopped"));
}

}  // namespace
}  // namespace quatrain::cli
