// Long runs. Minutes, so only with QUATRAIN_SOAK=1 (make soak).

#include <gmock/gmock.h>

#include <cstdlib>

#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;

int64_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  return 0;
}

using SoakTest = FolderTest;

TEST_F(SoakTest, MemoryAndFilesStaySmallOver100000StepsAnd1000Evaluations) {
  const char* wanted = std::getenv("QUATRAIN_SOAK");
  if (!wanted || std::string(wanted) == "0") GTEST_SKIP() << "takes minutes: make soak runs it";
  ToyTask task("phm(4)");
  task.test = false;
  TrainerOptions options;
  options.steps = 100'000;
  options.evaluate_every = 100;
  options.log_every = 20;
  options.optimizer.learning_rate = 1e-4;
  RunOptions run;
  run.folder = folder_ / "run";
  int64_t early = 0, step = 0;
  run.on_progress = [&](const Progress& p) {
    EXPECT_GE(p.step, step);
    step = p.step;
    if (p.step == 10'000) early = resident_kilobytes();
    task.asked.clear();  // what the task notes of itself
  };
  Trainer(task, options, run).run();
  EXPECT_EQ(task.evaluated.size(), 1000u);
  const int64_t late = resident_kilobytes();
  const auto log = static_cast<int64_t>(fs::file_size(folder_ / "run" / "metrics.jsonl"));
  std::printf("resident after 10,000 steps: %ld kB, after 100,000: %ld kB; metrics.jsonl: %ld bytes\n",
              static_cast<long>(early), static_cast<long>(late), static_cast<long>(log));
  EXPECT_LT(late - early, 4096);
  EXPECT_LT(log, 5000 * 250 + 1000 * 250);
}

}  // namespace
}  // namespace quatrain::train
