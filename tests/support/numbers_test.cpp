#include "support/numbers.h"

#include <gtest/gtest.h>

#include "support/text_table.h"

namespace quatrain {
namespace {

TEST(Numbers, AreWrittenForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(counted(1, "seed"), "1 seed");
  EXPECT_EQ(counted(1200, "seed"), "1,200 seeds");
  EXPECT_EQ(fixed(0.125, 2), "0.12");
  EXPECT_EQ(fixed(2.5, 0), "2");
  EXPECT_EQ(fixed(1e300, 1).size(), 303);
  EXPECT_EQ(short_number(0), "0.000");
  EXPECT_EQ(short_number(0.1234), "0.123");
  EXPECT_EQ(short_number(1.24e-7), "1.2e-07");
  EXPECT_EQ(percent(0.931), "93.1%");
  EXPECT_EQ(percent(0.936, 0), "94%");
  EXPECT_EQ(bytes(999), "999 B");
  EXPECT_EQ(bytes(1.63e6), "1.63 MB");
  EXPECT_EQ(bytes(20e9), "20.0 GB");
  EXPECT_EQ(seconds(12.34e-6), "12.3 us");
  EXPECT_EQ(seconds(4.56e-3), "4.56 ms");
  EXPECT_EQ(seconds(120), "120 s");
  EXPECT_EQ(duration(0.4), "0s");
  EXPECT_EQ(duration(59.6), "1m00s");
  EXPECT_EQ(duration(605), "10m05s");
  EXPECT_EQ(duration(36605), "10h10m");
  EXPECT_EQ(ratio(1, 4), "0.25x");
  EXPECT_EQ(ratio(1, 0), "-");
}

TEST(Table, AlignsCharactersNotBytes) {
  Table table("lrl");
  table.row({"name", "value", "note"});
  table.rule();
  table.row({"R/n\u00b2", painted("1", "32"), ""});
  table.row({"a", "1,000", "see below"});
  table.row({"last"});
  EXPECT_EQ(table.text(),
            "name  value  note\n"
            "----------------------\n"
            "R/n\u00b2      \033[32m1\033[0m\n"
            "a     1,000  see below\n"
            "last\n");
}

}  // namespace
}  // namespace quatrain
