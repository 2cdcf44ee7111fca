// metrics.jsonl: what stays in it when a run is resumed, when it grows long, when the disk is full.

#include "train/metrics.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "train/toy_task.h"

namespace quatrain::train {
namespace {

class MetricsTest : public FolderTest {
 protected:
  std::string text() const { return contents(folder_ / "metrics.jsonl"); }

  std::vector<int64_t> steps(const std::string& kind = "training") const {
    std::vector<int64_t> result;
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json["kind"] == kind) result.push_back(json["step"]);
    }
    return result;
  }

  // Trains from one step to another as a trainer does.
  void log(int64_t from, int64_t to, int64_t every, int64_t most) const {
    Metrics metrics(folder_, from, from, every, most);
    for (int64_t step = from + 1; step <= to; ++step) {
      if (metrics.due(step)) metrics.training(step, 0, 1.0 / static_cast<double>(step), 0.1, 1, 100);
      if (step % 50 == 0) metrics.evaluation(step, "dev", {{"loss", 1}}, 0.5);
    }
    metrics.sync();
  }
};

TEST_F(MetricsTest, ALongRunKeepsAFewLines) {
  log(0, 100'000, 5, 20);
  EXPECT_LE(steps().size(), 20u);
  EXPECT_GE(steps().size(), 10u);
  EXPECT_EQ(steps("evaluation").size(), 2000u);
  const int64_t spacing = steps()[1] - steps()[0];
  for (size_t i = 0; i < steps().size(); ++i)
    EXPECT_EQ(steps()[i], spacing * static_cast<int64_t>(i + 1));  // evenly, from the start
}

TEST_F(MetricsTest, ItIsAFunctionOfTheStepHoweverOftenARunWasResumed) {
  log(0, 1000, 2, 7);
  const std::string whole = text();
  std::filesystem::remove(folder_ / "metrics.jsonl");
  for (const int64_t step : {0, 13, 28, 30, 31, 200, 997}) log(step, 1000, 2, 7);  // each goes back
  EXPECT_EQ(text(), whole);
  std::filesystem::remove(folder_ / "metrics.jsonl");
  int64_t before = 0;
  for (const int64_t step : {3, 28, 29, 30, 31, 32, 200, 640, 1000}) {
    log(before, step, 2, 7);
    before = step;
  }
  EXPECT_EQ(text(), whole);
}

TEST_F(MetricsTest, TornLinesAndLinesOfThingsElseGo) {
  log(0, 10, 5, 100);
  const std::string whole = text();
  for (const std::string torn : {R"({"kind":"train)", "\n", "[1]\n",
                                 R"({"kind":5,"step":1})"
                                 "\n",
                                 "null\n", "[[[[\n"}) {
    std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << torn;
    const Metrics metrics(folder_, 10, 10, 5, 100);
    EXPECT_EQ(text(), whole);
  }
}

// One that a flipped bit has hit costs no other.
TEST_F(MetricsTest, ADamagedLineAmongOthersGoesAlone) {
  log(0, 20, 5, 100);
  const std::string whole = text();
  const size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1;
  std::ofstream(folder_ / "metrics.jsonl") << whole.substr(0, second) << "{\"kind\":\"tr}\n"
                                           << whole.substr(third);
  const Metrics metrics(folder_, 20, 20, 5, 100);
  EXPECT_EQ(metrics.damaged(), 1);
  EXPECT_EQ(text(), whole.substr(0, second) + whole.substr(third));
}

// A file that no more fits into: every write fails, and every one of them is tried again.
TEST_F(MetricsTest, LinesWaitForRoom) {
  std::filesystem::create_symlink("/dev/full", folder_ / "metrics.jsonl");
  EXPECT_THROW(Metrics(folder_, 0, -1, 1, 100).sync(), std::runtime_error);
}

}  // namespace
}  // namespace quatrain::train
