// metrics.jsonl: what stays in it when a run is resumed, when a bit has changed, when the disk is full.

#include "train/metrics.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "train/own_json.h"
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
  void log(int64_t from, int64_t to, int64_t every) const {
    Metrics metrics(folder_, from, from, every);
    for (int64_t step = from + 1; step <= to; ++step) {
      if (metrics.due(step)) metrics.training(step, 0, 1.0 / static_cast<double>(step), 0.1, 1, 100);
      if (step % 50 == 0) metrics.evaluation(step, "dev", {{"loss", 1}}, 0.5);
    }
    metrics.sync();
  }

  void overwrite(const std::string& text) const { std::ofstream(folder_ / "metrics.jsonl") << text; }
};

TEST_F(MetricsTest, ALineComesEachSoManySteps) {
  log(0, 200, 5);
  EXPECT_EQ(steps().size(), 40u);
  EXPECT_EQ(steps().front(), 5);
  EXPECT_EQ(steps("evaluation"), (std::vector<int64_t>{50, 100, 150, 200}));
}

TEST_F(MetricsTest, ItIsAFunctionOfTheStepHoweverOftenARunWasResumed) {
  log(0, 1000, 7);
  const std::string whole = text();
  for (const int64_t step : {0, 13, 28, 30, 31, 200, 997}) log(step, 1000, 7);  // each goes back
  EXPECT_EQ(text(), whole);
  std::filesystem::remove(folder_ / "metrics.jsonl");
  int64_t before = 0;
  for (const int64_t step : {3, 28, 29, 30, 31, 32, 200, 640, 1000}) {
    log(before, step, 7);
    before = step;
  }
  EXPECT_EQ(text(), whole);
}

TEST_F(MetricsTest, TornLinesAndLinesOfThingsElseGo) {
  log(0, 10, 5);
  const std::string whole = text();
  for (const std::string torn : {R"({"kind":"train)", "\n", "[1]\n",
                                 R"({"kind":5,"step":1})"
                                 "\n",
                                 "null\n", "[[[[\n"}) {
    std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << torn;
    const Metrics metrics(folder_, 10, 10, 5);
    EXPECT_EQ(text(), whole);
  }
}

// Its checksum says that it is whole.
TEST_F(MetricsTest, TheLastLineStaysWithoutItsEnd) {
  log(0, 20, 5);
  const std::string whole = text();
  overwrite(whole.substr(0, whole.size() - 1));
  EXPECT_EQ(whole_lines(folder_), std::nullopt);
  const Metrics metrics(folder_);
  EXPECT_EQ(metrics.lines(), 4);
  EXPECT_EQ(text(), whole);
}

// One that a flipped bit has hit costs no other.
TEST_F(MetricsTest, ADamagedLineAmongOthersGoesAlone) {
  log(0, 20, 5);
  const std::string whole = text();
  const size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1;
  overwrite(whole.substr(0, second) + "{\"kind\":\"tr}\n" + whole.substr(third));
  const Metrics metrics(folder_, 20, 20, 5);
  EXPECT_EQ(metrics.damaged(), 1);
  EXPECT_EQ(text(), whole.substr(0, second) + whole.substr(third));
}

// A number that is another number, too.
TEST_F(MetricsTest, EveryBitThatChangesIsNoticed) {
  log(0, 50, 25);
  const std::string whole = text();
  for (size_t i = 0; i + 1 < whole.size(); ++i)  // without its end the last line is a torn one
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      int damaged = 0;
      std::istringstream lines(changed);
      for (std::string line; std::getline(lines, line);)
        damaged += parse_record<nlohmann::json>(line).is_discarded();
      EXPECT_GT(damaged, 0) << i << " " << bit << ": " << changed;
    }
  const size_t loss = whole.find("loss") + 8;
  overwrite(whole.substr(0, loss) + "7" + whole.substr(loss + 1));
  const Metrics metrics(folder_, 50, 50, 25);
  EXPECT_EQ(metrics.damaged(), 1);
  EXPECT_EQ(metrics.lines(), 2);
}

TEST_F(MetricsTest, LinesOfOlderVersionsHaveNoChecksumAndStay) {
  const std::string old =
      "{\"kind\":\"training\",\"step\":5,\"epoch\":0,\"loss\":1.0,\"learning_rate\":0.1,\"gradient_norm\":1."
      "0,"
      "\"examples_per_second\":100.0}\n"
      "{\"kind\":\"skipped\",\"step\":7,\"epoch\":0,\"what\":\"loss nan\",\"batch\":\"batch 6 of epoch "
      "0\"}\n";
  overwrite(old);
  log(7, 20, 5);
  EXPECT_TRUE(text().starts_with(old));
  EXPECT_EQ(steps(), (std::vector<int64_t>{5, 10, 15, 20}));
  const Metrics metrics(folder_, 20, 20, 5);
  EXPECT_EQ(metrics.damaged(), 0);
  EXPECT_EQ(metrics.lines(), 5);
}

// A file that no more fits into: every write fails, and every one of them is tried again.
TEST_F(MetricsTest, LinesWaitForRoom) {
  std::filesystem::create_symlink("/dev/full", folder_ / "metrics.jsonl");
  EXPECT_THROW(Metrics(folder_, 0, -1, 1).sync(), std::runtime_error);
}

}  // namespace
}  // namespace quatrain::train
