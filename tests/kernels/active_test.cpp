// Which table is used: the best one, a forced one, the one that the environment names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {
namespace {

std::string all_names() {
  std::string names;
  for (const Table* const* table = available(); *table; ++table)
    names += std::string(names.empty() ? "" : ", ") + (*table)->name;
  return names;
}

/// Says what a fresh process with this environment uses, on the standard error.
[[noreturn]] void report(const char* environment) {
  ::setenv("QUATRAIN_CPU_ISA", environment, 1);
  try {
    std::fprintf(stderr, "uses %s.", active().name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s", error.what());
    std::exit(1);
  }
  std::exit(0);
}

class Active : public testing::Test {
 protected:
  Active() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }  // children start anew, not as copies
  ~Active() override { force(nullptr); }
};
using ActiveDeathTest = Active;

TEST_F(Active, EveryMachineHasTheBaseline) {
  const Table* last = nullptr;
  for (const Table* const* table = available(); *table; ++table) last = *table;
  ASSERT_NE(last, nullptr);
  EXPECT_STREQ(last->name, "baseline");
}

TEST_F(Active, ForcingSwitches) {
  for (const Table* const* table = available(); *table; ++table) {
    EXPECT_TRUE(force((*table)->name));
    EXPECT_STREQ(active().name, (*table)->name);
    EXPECT_EQ(active().combine_f_f, (*table)->combine_f_f);
  }
  EXPECT_TRUE(force(nullptr));
  EXPECT_EQ(&active(), available()[0]);
}

TEST_F(Active, TablesAreDifferentCode) {
  for (const Table* const* a = available(); *a; ++a)
    for (const Table* const* b = available(); b != a; ++b) {
      EXPECT_STRNE((*a)->name, (*b)->name);
      EXPECT_NE((*a)->combine_f_f, (*b)->combine_f_f);
      EXPECT_NE((*a)->transpose_f_f, (*b)->transpose_f_f);
      EXPECT_NE((*a)->dots_f, (*b)->dots_f);
      EXPECT_NE((*a)->stream_f, (*b)->stream_f);
    }
}

TEST_F(Active, AnUnknownNameChangesNothing) {
  EXPECT_TRUE(force("baseline"));
  EXPECT_FALSE(force("altivec"));
  EXPECT_FALSE(force(""));
  EXPECT_STREQ(active().name, "baseline");
}

TEST_F(ActiveDeathTest, TheEnvironmentDecides) {
  for (const Table* const* table = available(); *table; ++table)
    EXPECT_EXIT(report((*table)->name), testing::ExitedWithCode(0),
                "uses " + std::string((*table)->name) + "\\.");
  EXPECT_EXIT(report(""), testing::ExitedWithCode(0), "uses " + std::string(available()[0]->name) + "\\.");
}

TEST_F(ActiveDeathTest, AnUnknownNameInTheEnvironmentIsAnErrorThatListsTheKnown) {
  EXPECT_EXIT(report("altivec"), testing::ExitedWithCode(1),
              testing::HasSubstr("QUATRAIN_CPU_ISA: this machine has " + all_names() + ", got 'altivec'"));
}

}  // namespace
}  // namespace quatrain::kernels::cpu
