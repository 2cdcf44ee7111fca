// Runs that die or find no room at any moment, and what is left of them. QUATRAIN_SOAK=1 tries every moment.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "crash/faults.h"
#include "quatrain/ops.h"
#include "quatrain/train/checkpoint.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using test::Ending, test::Fault, test::Plan, test::run_child;
using testing::HasSubstr;

bool soak() {
  const char* wanted = std::getenv("QUATRAIN_SOAK");
  return wanted && std::string(wanted) != "0";
}

TrainerOptions small() {
  TrainerOptions options;
  options.steps = 18;
  options.optimizer.learning_rate = 0.01;
  options.optimizer.weight_decay = 0.01;
  options.evaluate_every = 6;
  options.checkpoint_every = 4;
  options.log_every = 2;
  options.patience = 5;
  options.keep = 2;
  options.seed = 5;
  return options;
}

class CrashTest : public FolderTest {
 protected:
  // All training happens in children: a process that has computed with threads cannot fork safely.
  Ending train(const std::string& name, const TrainerOptions& options, const std::string& algebra,
               const Plan& plan, std::vector<std::string>* messages = nullptr) const {
    const fs::path told = folder_ / (name + ".messages");
    fs::remove(told);
    const Ending ending = run_child(plan, [&] {
      at::set_num_threads(1);
      const ops::WayGuard factored(ops::Way::factored);  // a learned A's factors are part of the state then
      ToyTask task(algebra);
      RunOptions run;
      run.folder = folder_ / name;
      run.existing = Existing::resume;
      std::string text;
      run.on_message = [&](const std::string& message) { text += message + "\n"; };
      std::string failure;
      try {
        Trainer(task, options, run).run();
      } catch (const std::exception& error) {
        failure = error.what();
      }
      test::end_faults();
      if (messages) std::ofstream(told) << text << failure << "\n";
      if (!failure.empty()) throw std::runtime_error(failure);
    });
    if (messages && !ending.killed) {
      std::ifstream file(told);
      for (std::string line; std::getline(file, line);) messages->push_back(line);
      EXPECT_FALSE(messages->empty());
    }
    return ending;
  }

  // Everything that a run leaves, but for what depends on the clock.
  std::string left_by(const std::string& name) const {
    const fs::path run = folder_ / name;
    std::string all;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(run))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      all += "== " + fs::relative(file, run).string() + "\n";
      if (file.filename() == "checkpoint.json") continue;  // has the checksum of training.json
      std::istringstream lines(contents(file));
      if (file.extension() == ".json" || file.extension() == ".jsonl") {
        const bool whole = file.extension() == ".json";
        for (std::string line; std::getline(lines, line, whole ? '\0' : '\n');) {
          auto json = nlohmann::json::parse(line);
          for (const char* key : {"seconds", "examples_per_second", "step_seconds_median", "checksum"})
            json.erase(key);
          all += json.dump() + "\n";
        }
      } else {
        all += lines.str();
      }
    }
    return all;
  }

  static std::mt19937 random_;
};

std::mt19937 CrashTest::random_{7};

TEST_F(CrashTest, ARunThatIsKilledAtAnyCallAndResumedLeavesTheSameBits) {
  const Ending whole = train("whole", small(), "phm(4)", {});
  ASSERT_EQ(whole.code, 0);
  const std::string expected = left_by("whole");
  ASSERT_GT(whole.calls, 150);
  const int64_t stride = soak() ? 1 : whole.calls / 25;
  int64_t deaths = 0;
  for (int64_t call = 1; call <= whole.calls; call += stride) {
    SCOPED_TRACE("killed at call " + std::to_string(call) + " of " + std::to_string(whole.calls));
    const std::string name = "killed" + std::to_string(call);
    EXPECT_TRUE(train(name, small(), "phm(4)", {call % 2 ? Fault::kill : Fault::torn, call}).killed);
    // And again on the way.
    for (int again = 0; again < 3; ++again)
      deaths +=
          train(name, small(), "phm(4)", {Fault::torn, 1 + static_cast<int64_t>(random_() % 80)}).killed;
    EXPECT_EQ(train(name, small(), "phm(4)", {}).code, 0);
    ASSERT_EQ(left_by(name), expected);
    fs::remove_all(folder_ / name);
  }
  EXPECT_GT(deaths, 10);
}

// Each optimizer with each kind of layer, each of them with each schedule.
TEST_F(CrashTest, EveryOptimizerScheduleAndLayerResumes) {
  const std::vector<std::string> algebras{"real", "quaternion", "phm(4)", "wkp(4)", "octonion"};
  const std::vector<OptimizerKind> optimizers{OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd,
                                              OptimizerKind::adagrad, OptimizerKind::rmsprop};
  const std::vector<ScheduleKind> schedules{ScheduleKind::constant, ScheduleKind::inverse_square_root,
                                            ScheduleKind::cosine, ScheduleKind::step, ScheduleKind::plateau};
  for (size_t a = 0; a < algebras.size(); ++a)
    for (size_t o = 0; o < optimizers.size(); ++o) {
      TrainerOptions options = small();
      options.optimizer.kind = optimizers[o];
      options.optimizer.momentum = a % 2 ? 0.9 : 0;
      options.schedule.kind = schedules[(a + o) % schedules.size()];
      options.schedule.warmup = 3;
      options.bf16 = o == 1;
      options.accumulate = 1 + static_cast<int64_t>(a) % 2;
      SCOPED_TRACE(algebras[a] + ", " + name(options.optimizer.kind) + ", " + name(options.schedule.kind));
      const std::string whole = "whole" + std::to_string(a) + std::to_string(o), killed = "killed" + whole;
      const Ending ending = train(whole, options, algebras[a], {});
      ASSERT_EQ(ending.code, 0);
      int64_t deaths = 0;
      for (int i = 0; i < 2; ++i)
        deaths += train(killed, options, algebras[a],
                        {Fault::torn, 1 + static_cast<int64_t>(random_() % (ending.calls / 2))})
                      .killed;
      EXPECT_GT(deaths, 0);
      EXPECT_EQ(train(killed, options, algebras[a], {}).code, 0);
      ASSERT_EQ(left_by(killed), left_by(whole));
    }
}

// A disk that is full for a while: the run says so, goes on, and loses nothing.
TEST_F(CrashTest, ADiskThatIsFullForAWhileLosesNothing) {
  const Ending whole = train("whole", small(), "quaternion", {});
  const std::string expected = left_by("whole");
  const int64_t stride = soak() ? 1 : whole.calls / 20;
  int64_t told = 0;
  for (int64_t call = 10; call < whole.calls - 30; call += stride) {
    const std::string name = "full" + std::to_string(call);
    SCOPED_TRACE(name);
    std::vector<std::string> messages;
    const Ending ending = train(name, small(), "quaternion", {Fault::full, call, 5}, &messages);
    for (const auto& message : messages)
      told += message.find("No space left on device") != message.npos && message.find("training continues");
    if (ending.code != 0) {  // full at the end: what is kept goes on
      EXPECT_EQ(train(name, small(), "quaternion", {}).code, 0);
    }
    // What older checkpoints there are depends on those that could be written.
    const auto without_older = [](const std::string& text) {
      std::string result;
      bool older = false;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("== ")) older = line.starts_with("== step-");
        if (!older) result += line + "\n";
      }
      return result;
    };
    ASSERT_EQ(without_older(left_by(name)), without_older(expected));
    fs::remove_all(folder_ / name);
  }
  EXPECT_GT(told, 5);
}

TEST_F(CrashTest, ADiskThatStaysFullEndsTheRunWithASentence) {
  const Ending whole = train("whole", small(), "quaternion", {});
  std::vector<std::string> messages;
  const Ending ending =
      train("full", small(), "quaternion", {Fault::full, whole.calls / 2, 1'000'000}, &messages);
  EXPECT_EQ(ending.code, 1);
  EXPECT_THAT(messages.back(),
              testing::AllOf(HasSubstr("the run ends at step 18"), HasSubstr("No space left on device"),
                             HasSubstr("is kept"), HasSubstr("make room, then resume the run")));
  EXPECT_FALSE(fs::exists(folder_ / "full" / "result.json"));
  EXPECT_EQ(train("full", small(), "quaternion", {}).code, 0);
  EXPECT_EQ(contents(folder_ / "full" / "best" / "model.safetensors"),
            contents(folder_ / "whole" / "best" / "model.safetensors"));
}

// A finished run that is told to train on: its result goes where other weights take the place of its own, and
// not before.
TEST_F(CrashTest, AFullDiskLeavesAFinishedRunItsResultOrOtherWeights) {
  ASSERT_EQ(train("whole", small(), "quaternion", {}).code, 0);
  TrainerOptions more = small();
  more.steps = 30, more.patience = 0;
  const auto begin = [&](const std::string& name) {
    fs::copy(folder_ / "whole", folder_ / name, fs::copy_options::recursive);
  };
  begin("further");
  const Ending further = train("further", more, "quaternion", {});
  ASSERT_EQ(further.code, 0);
  int kept = 0, dropped = 0, lost = 0;
  const int64_t stride = soak() ? 1 : std::max<int64_t>(1, further.calls / 30);
  for (int64_t call = 1; call < further.calls; call += stride) {
    const std::string name = "full" + std::to_string(call);
    SCOPED_TRACE(name);
    begin(name);
    std::vector<std::string> messages;
    if (train(name, more, "quaternion", {Fault::full, call, 1'000'000}, &messages).code == 0) continue;
    const auto same = [&](const char* which) {
      const auto weights = [&](const std::string& run) {
        return contents(find_checkpoint(folder_ / run, which) / "model.safetensors");
      };
      return weights(name) == weights("whole");
    };
    const bool is_there = fs::exists(folder_ / name / "result.json"), its = same("best") && same("last");
    EXPECT_TRUE(its || !is_there);
    ++(is_there ? kept : its ? lost : dropped);
    fs::remove_all(folder_ / name);
  }
  EXPECT_GT(kept, 2);
  EXPECT_GT(dropped, 2);
  EXPECT_LT(10 * lost, kept + dropped);  // where a folder could not be renamed
}

TEST_F(CrashTest, OneProcessTrainsInAFolderAtATime) {
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready) | ::pipe(done), 0);
  std::fflush(nullptr);
  const pid_t first = ::fork();
  if (first == 0) {
    ToyTask task;
    RunOptions run;
    run.folder = folder_ / "run";
    bool told = false;
    run.on_progress = [&](const Progress& p) {
      if (p.step < 5 || told) return;
      told = true;
      char byte = 0;
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(done[0], &byte, 1);  // waits to be killed
    };
    Trainer(task, small(), run).run();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(is_training(folder_ / "run"));
  std::vector<std::string> messages;
  EXPECT_EQ(train("run", small(), "quaternion", {}, &messages).code, 1);
  EXPECT_THAT(messages.back(), HasSubstr("another process trains in"));
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
  EXPECT_FALSE(is_training(folder_ / "run"));
  EXPECT_EQ(train("run", small(), "quaternion", {}).code, 0);
}

}  // namespace
}  // namespace quatrain::train
