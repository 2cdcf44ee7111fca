#include "quatrain/train/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "quatrain/train/trainer.h"

namespace quatrain::train {
namespace {

double scale(const ScheduleOptions& options, int64_t step, const PlateauState& state = {}) {
  return schedule_scale(options, step, /*steps=*/100, /*steps_per_epoch=*/10, state);
}

TEST(ScheduleTest, ConstantWarmsUpAndStays) {
  const ScheduleOptions plain;
  EXPECT_EQ(scale(plain, 1), 1);
  EXPECT_EQ(scale(plain, 100), 1);
  const ScheduleOptions warm{.warmup = 4};
  EXPECT_EQ(scale(warm, 1), 0.25);
  EXPECT_EQ(scale(warm, 3), 0.75);
  EXPECT_EQ(scale(warm, 4), 1);
  EXPECT_EQ(scale(warm, 5), 1);
}

TEST(ScheduleTest, TheWarmUpMayBeAShare) {
  const ScheduleOptions share{.kind = ScheduleKind::cosine, .warmup = 7, .warmup_share = 0.1};
  EXPECT_EQ(warmup_steps(share, 50), 5);
  EXPECT_EQ(warmup_steps({.warmup = 7}, 50), 7);
  EXPECT_EQ(schedule_scale(share, 1, 50, 10), 0.2);
  EXPECT_EQ(schedule_scale(share, 5, 50, 10), 1);
  EXPECT_EQ(schedule_scale(share, 50, 50, 10), 0);
}

TEST(ScheduleTest, InverseSquareRootIsTheTransformersSchedule) {
  const ScheduleOptions options{.kind = ScheduleKind::inverse_square_root, .warmup = 16};
  const double peak = std::pow(512.0 * 16, -0.5);
  for (const int64_t t : {1, 5, 15, 16, 17, 64, 100}) {
    const auto s = static_cast<double>(t);
    const double noam = std::pow(512.0, -0.5) * std::min(std::pow(s, -0.5), s * std::pow(16.0, -1.5));
    EXPECT_NEAR(peak * scale(options, t), noam, 1e-15) << t;
  }
  EXPECT_EQ(scale(options, 16), 1);
  EXPECT_EQ(scale(options, 64), 0.5);
  EXPECT_EQ(scale({.kind = ScheduleKind::inverse_square_root}, 4), 0.5);
}

TEST(ScheduleTest, CosineFallsToItsFloor) {
  const ScheduleOptions options{.kind = ScheduleKind::cosine, .warmup = 20, .floor = 0.1};
  EXPECT_EQ(scale(options, 10), 0.5);
  EXPECT_EQ(scale(options, 20), 1);
  EXPECT_NEAR(scale(options, 60), 0.55, 1e-15);
  EXPECT_NEAR(scale(options, 100), 0.1, 1e-15);
  EXPECT_NEAR(scale(options, 120), 0.1, 1e-15);
  EXPECT_NEAR(scale({.kind = ScheduleKind::cosine}, 100), 0, 1e-15);
}

TEST(ScheduleTest, StepFallsEverySoManyStepsOrEachEpoch) {
  const ScheduleOptions options{.kind = ScheduleKind::step, .factor = 0.5, .every = 3};
  EXPECT_EQ(scale(options, 3), 1);
  EXPECT_EQ(scale(options, 4), 0.5);
  EXPECT_EQ(scale(options, 6), 0.5);
  EXPECT_EQ(scale(options, 7), 0.25);
  const ScheduleOptions epochs{.kind = ScheduleKind::step, .factor = 0.9};
  EXPECT_EQ(scale(epochs, 10), 1);
  EXPECT_EQ(scale(epochs, 11), 0.9);
  EXPECT_NEAR(scale(epochs, 30), 0.81, 1e-15);
}

TEST(ScheduleTest, PlateauHalvesWhereNothingGetsBetter) {
  const ScheduleOptions options{.kind = ScheduleKind::plateau};
  PlateauState state;
  note_evaluation(state, options, 0.5, true);
  EXPECT_EQ(scale(options, 1, state), 1);
  note_evaluation(state, options, 0.5, true);  // equal is not better
  EXPECT_EQ(scale(options, 1, state), 0.5);
  note_evaluation(state, options, 0.6, true);
  EXPECT_EQ(scale(options, 1, state), 0.5);
  note_evaluation(state, options, std::nan(""), true);
  EXPECT_EQ(scale(options, 1, state), 0.25);
  EXPECT_EQ(*state.best, 0.6);
}

TEST(ScheduleTest, PlateauWaitsAsLongAsToldAndKeepsItsFloor) {
  const ScheduleOptions options{.kind = ScheduleKind::plateau, .factor = 0.1, .patience = 2, .floor = 0.05};
  PlateauState state;
  note_evaluation(state, options, 1.0, false);
  for (const double expected : {1.0, 1.0, 0.1, 0.1, 0.1, 0.05}) {
    note_evaluation(state, options, 2.0, false);
    EXPECT_DOUBLE_EQ(scale(options, 1, state), expected);
  }
}

TEST(ScheduleTest, BetterMeansBetter) {
  EXPECT_TRUE(is_better(std::nan(""), std::nullopt, true));
  EXPECT_TRUE(is_better(0.1, std::nan(""), true));
  EXPECT_FALSE(is_better(std::nan(""), std::nan(""), true));
  EXPECT_FALSE(is_better(std::nan(""), 0.1, false));
  EXPECT_TRUE(is_better(0.1, 0.2, false));
  EXPECT_FALSE(is_better(0.1, 0.2, true));
}

TEST(ScheduleTest, NamesTravel) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::inverse_square_root, ScheduleKind::cosine,
                          ScheduleKind::step, ScheduleKind::plateau})
    EXPECT_EQ(parse_schedule(name(kind)), kind);
  EXPECT_THAT([] { parse_schedule("linear"); },
              testing::ThrowsMessage<std::invalid_argument>(
                  testing::HasSubstr("schedule must be one of constant, ")));
}

TEST(ScheduleTest, AnyNumberOfEpochsHasAnEnd) {
  TrainerOptions o;
  o.steps = 0, o.epochs = 1000000000000;
  EXPECT_EQ(steps_of(o, 3), 3000000000000);
  EXPECT_EQ(steps_of(o, 1000000000000), std::numeric_limits<int64_t>::max());
  o.steps = 5;
  EXPECT_EQ(steps_of(o, 1000000000000), 5);
}

}  // namespace
}  // namespace quatrain::train
