#include "bench/harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/report.h"

namespace quatrain::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A subject of calls that only say that they were made; the first batch of a call counts as two.
Subject subject_of(std::vector<std::string>& made) {
  Subject subject;
  subject.title = "Nothing";
  subject.notes = "size: of nothing.\n";
  subject.timing = {.seconds = 0, .rounds = 5, .least = 1, .warmup = 1};
  for (const bool training : {false, true}) {
    Case one{.threads = 1, .training = training};
    one.make = [&made] {
      const auto says = [&made](const std::string& name) { return [&made, name] { made.push_back(name); }; };
      Contest contest;
      contest.candidates = {
          {"ours", says("ours"), 3, 2}, {"real", says("real"), 12}, {"other", says("other"), 1}};
      contest.contenders.push_back({.asked = {field("algebra", "quaternion"), hidden("in", int64_t{16})},
                                    .more = [](const Found& found) -> std::vector<Field> {
                                      return {column("size", std::to_string(found.size())),
                                              share_column("part", 3, 2),
                                              hidden("parts", Field::Parts{{"a", 0.5}})};
                                    }});
      contest.contenders.push_back(
          {.ours = "other", .asked = {field("algebra", "other"), hidden("in", int64_t{8})}});
      contest.contenders.back().more = contest.contenders.front().more;
      return contest;
    };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

TEST(Harness, CandidatesTakeTurnsAndBecomeRows) {
  std::vector<std::string> made;
  std::vector<Row> rows;
  std::vector<size_t> steps;
  Watch watch;
  watch.step = [&](size_t step, size_t of) {
    EXPECT_EQ(of, 2);
    steps.push_back(step);
  };
  measure(subject_of(made), rows, true, watch);
  EXPECT_THAT(steps, ElementsAre(0, 1));
  // One for what is kept, one to see how long it takes, then a round in which another begins each time.
  ASSERT_GE(made.size(), 9);
  EXPECT_THAT(std::vector(made.begin(), made.begin() + 9),
              ElementsAre("ours", "real", "other", "ours", "real", "other", "ours", "real", "other"));
  ASSERT_EQ(rows.size(), 4);
  EXPECT_FALSE(rows[0].training);
  EXPECT_TRUE(rows[3].training);
  EXPECT_EQ(rows[0].ours.parameters, 3);
  EXPECT_EQ(rows[0].real.parameters, 12);
  EXPECT_EQ(rows[1].ours.parameters, 1);
  EXPECT_EQ(rows[0].asked_for("in"), "16");
  EXPECT_THROW(rows[0].asked_for("out"), std::logic_error);
}

TEST(Harness, OneJsonAndOneTableForEverySubject) {
  std::vector<std::string> made;
  const Subject subject = subject_of(made);
  std::vector<Row> rows;
  measure(subject, rows, false);
  const auto json = to_json(rows);
  ASSERT_EQ(json.size(), 4);
  EXPECT_EQ(json[0]["algebra"], "quaternion");
  EXPECT_EQ(json[0]["in"], 16);
  EXPECT_EQ(json[0]["pass"], "inference");
  EXPECT_EQ(json[3]["pass"], "training");
  EXPECT_EQ(json[0]["threads"], 1);
  EXPECT_EQ(json[0]["parts"]["a"], 0.5);
  EXPECT_FALSE(json[0].contains("part")) << "a column alone";
  for (const char* key : {"us", "real_us", "ratio_real", "spread", "parameters", "real_parameters",
                          "prepared_bytes", "peak_bytes", "real_peak_bytes"})
    EXPECT_TRUE(json[0].contains(key)) << key;
  const std::string text = report(subject, rows, false);
  for (const char* words : {"Nothing\n\n", "algebra ", "to real", "size: of nothing.", "1.50"})
    EXPECT_THAT(text, HasSubstr(words));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(report(subject, rows, true), HasSubstr("\033[31m1.50"));
  EXPECT_EQ(report(subject, {}, false), "");
}

// What comes before a call is none of its time, however short the call: it is not repeated then.
TEST(Harness, SomethingMayComeBeforeEachCall) {
  std::vector<std::string> made;
  Subject subject;
  subject.timing = {.seconds = 0, .rounds = 2, .least = 2, .warmup = 1, .turn = 0.1};
  Case one;
  one.before = [&made] {
    made.emplace_back("before");
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
    while (std::chrono::steady_clock::now() < until) {
    }
  };
  one.make = [&made] {
    const auto says = [&made](const std::string& name) { return [&made, name] { made.push_back(name); }; };
    Contest contest;
    contest.candidates = {{"ours", says("ours")}, {"real", says("real")}};
    contest.contenders.emplace_back();
    return contest;
  };
  subject.cases.push_back(one);
  std::vector<Row> rows;
  measure(subject, rows, false);
  EXPECT_THAT(made, ElementsAre("ours", "real",                      // what is kept
                                "before", "ours", "before", "real",  // how long they take
                                "before", "ours", "before", "real",  // the rounds
                                "before", "real", "before", "ours"));
  EXPECT_LT(rows.at(0).ours.time.median, 4e-3);
}

// Times of a call in several equal parts are those of one.
TEST(Harness, ACallMayHoldSeveralParts) {
  Subject subject;
  subject.timing = {.seconds = 0, .rounds = 3, .least = 3, .warmup = 1};
  Case one;
  one.make = [] {
    const Call wait = [] {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
      while (std::chrono::steady_clock::now() < until) {
      }
    };
    Contest contest;
    contest.candidates = {{"ours", wait, 0, 4}, {"real", wait, 0, 1}};
    contest.contenders.emplace_back();
    return contest;
  };
  subject.cases.push_back(one);
  std::vector<Row> rows;
  measure(subject, rows, false);
  EXPECT_LT(rows.at(0).ratio_real(),
            0.75);  // 0.25 on a machine with nothing beside it, 1 if parts did not count
}

TEST(Harness, WhatWasMeasuredStays) {
  std::vector<std::string> made;
  std::vector<Row> rows;
  Watch watch;
  watch.step = [](size_t step, size_t) {
    if (step == 1) throw std::runtime_error("stopped");
  };
  EXPECT_THROW(measure(subject_of(made), rows, false, watch), std::runtime_error);
  EXPECT_EQ(rows.size(), 2);
  watch.step = [](size_t, size_t) {};
  watch.round = [] { throw std::runtime_error("stopped"); };
  EXPECT_THROW(measure(subject_of(made), rows, false, watch), std::runtime_error);
  EXPECT_EQ(rows.size(), 2);
}

}  // namespace
}  // namespace quatrain::bench
