// What check advises: it must put the run right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/program.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr, testing::Not;

const std::string kFinished = "train agreement" + kSmall +
                              " --set train.steps=12 --set train.evaluate_every=4 --set train.log_every=4"
                              " --keep 3 --out run";

TEST(CheckAdvice, resuming_a_finished_run_mends_its_metrics) {
  const Workplace place;
  ASSERT_EQ(place.run(kFinished).code, 0);
  const std::string metrics = place.read("run/metrics.jsonl"), result = place.read("run/result.json"),
                    last = place.read("run/last/checkpoint.json");
  const auto first = metrics.find('\n') + 1;
  std::string flipped = metrics;
  flipped[first + 9] ^= 1;
  struct Case {
    std::string text, said, told;  // of check, and of train
    bool loses = true;             // a line that the last checkpoint had
  };
  const Case cases[] = {{flipped, "resume the run, which drops it", "damaged and are dropped: 1"},
                        {metrics.substr(first), "resume the run, which goes on without them",
                         "metrics.jsonl: lines that are missing: 1"},
                        {metrics + "{\"kind\":", "resume the run, which drops it", "", false},
                        {"", "'run/metrics.jsonl' is missing: its lines cannot be made again",
                         "metrics.jsonl: lines that are missing: 6"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.said);
    const Workplace other;
    fs::copy(place.path("run"), other.path("run"), fs::copy_options::recursive);
    other.write("run/metrics.jsonl", one.text);
    if (one.text.empty()) fs::remove(other.path("run/metrics.jsonl"));
    const Outcome damaged = other.run("check run");
    EXPECT_EQ(damaged.code, 1);
    EXPECT_THAT(damaged.out, HasSubstr(one.said));
    const Outcome resumed = other.run("train run --resume");
    EXPECT_EQ(resumed.code, 0);
    EXPECT_THAT(resumed.error, HasSubstr(one.told));
    const Outcome mended = other.run("check run");
    EXPECT_EQ(mended.code, 0) << mended.out;
    EXPECT_THAT(mended.out, AllOf(HasSubstr("step-000004"), HasSubstr("step-000008")));
    EXPECT_EQ(other.read("run/result.json"), result);
    EXPECT_EQ(other.read("run/last/checkpoint.json") == last, !one.loses);
    EXPECT_EQ(other.read("run/last/training.safetensors"), place.read("run/last/training.safetensors"));
  }
  // Where nothing is wrong nothing is written.
  const auto written = fs::last_write_time(place.path("run/metrics.jsonl"));
  ASSERT_EQ(place.run("train run --resume").code, 0);
  EXPECT_EQ(fs::last_write_time(place.path("run/metrics.jsonl")), written);
  EXPECT_EQ(place.read("run/last/checkpoint.json"), last);
}

TEST(CheckAdvice, a_file_that_is_gone_is_called_missing) {
  const Workplace place;
  place.make_data();
  ASSERT_EQ(place.run("train agreement" + kSmall + " --set train.steps=4 --out run").code, 0);
  fs::remove(place.path("run/predictions.tsv"));
  const Outcome missing = place.run("check run");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.out, AllOf(HasSubstr("'run/predictions.tsv' is missing: delete result.json, then"),
                                 Not(HasSubstr("what a trainer wrote"))));
  fs::remove(place.path("run/result.json"));
  ASSERT_EQ(place.run("train run --resume").code, 0);
  EXPECT_EQ(place.run("check run").code, 0);

  // Files that only some kinds leave.
  ASSERT_EQ(place
                .run("train entailment_generated --data answers --set task.data=wikiqa --set model.width=40"
                     " --set model.word_width=40 --set train.steps=2"
                     " --set train.evaluate_every=0 --set train.threads=1 --out ranks")
                .code,
            0);
  for (const std::string file : {"map.counts.tsv", "test.ranking.tsv"}) {
    fs::rename(place.path("ranks/" + file), place.path("away"));
    EXPECT_THAT(place.run("check ranks").out,
                HasSubstr("'ranks/" + file + "' is missing: delete result.json, then resume the run"));
    fs::rename(place.path("away"), place.path("ranks/" + file));
  }
  EXPECT_EQ(place.run("check ranks").code, 0);
}

TEST(CheckAdvice, checkpoints_of_another_run_are_told) {
  const Workplace place;
  ASSERT_EQ(place.run(kFinished).code, 0);
  fs::rename(place.path("run"), place.path("other"));
  ASSERT_EQ(place.run(kFinished + " --seed 2").code, 0);
  fs::rename(place.path("run/best"), place.path("away"));
  fs::copy(place.path("other/best"), place.path("run/best"));
  const Outcome mixed = place.run("check run");
  EXPECT_EQ(mixed.code, 1);
  EXPECT_THAT(mixed.out, HasSubstr("it is of another run than 'best' beside it: put back what belongs to"));
  for (const std::string words : {"train run --resume", "average run --out mean"})
    EXPECT_THAT(place.run(words).error, HasSubstr("is of another run than 'best'"));
  fs::remove_all(place.path("run/best"));
  fs::rename(place.path("away"), place.path("run/best"));
  EXPECT_EQ(place.run("check run").code, 0);

  fs::copy(place.path("run/step-000008"), place.path("run/step-000009"));
  EXPECT_THAT(place.run("check run").out, HasSubstr("its name is not that of its step, 8"));
  EXPECT_THAT(place.run("average run --out mean").error, HasSubstr("its name is not that of its step, 8"));
  EXPECT_THAT(place.run("check run --accept").out, HasSubstr("its name is not that of its step, 8"));
  fs::remove_all(place.path("run/step-000009"));

  fs::remove(place.path("run/result.json"));
  fs::rename(place.path("run/last"), place.path("run/last.old"));
  fs::resize_file(place.path("run/best/model.safetensors"), 100);
  EXPECT_THAT(place.run("predict run hello").error, HasSubstr("train run --resume --from last.old"));
  EXPECT_EQ(place.run("train run --resume --from last.old --set train.steps=16").code, 0);
  EXPECT_EQ(place.run("check run").code, 0);
}

TEST(CheckAdvice, a_folder_that_may_not_be_read_is_named) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const Workplace place;
  ASSERT_EQ(place.run(kFinished).code, 0);
  fs::permissions(place.path("run/best"), fs::perms::none);
  const Outcome outcome = place.run("check run");
  fs::permissions(place.path("run/best"), fs::perms::owner_all);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("cannot use 'run/best': Permission denied"));
}

}  // namespace
}  // namespace quatrain::cli
