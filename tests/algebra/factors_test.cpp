#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "quatrain/algebra.h"

namespace quatrain::algebra {
namespace {

double largest_entry(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

TEST(Factors, GiveTheTableOfEveryListedAlgebra) {
  for (const auto& name : names()) {
    const Algebra& algebra = get(name);
    EXPECT_LE(factor_error(algebra.factors(), algebra.table()), 1e-13) << name;
    const auto nonzero =
        std::count_if(algebra.table().begin(), algebra.table().end(), [](double v) { return v != 0; });
    EXPECT_LE(algebra.factors().rank, nonzero) << name;
    EXPECT_EQ(algebra.has_fast_factors(), algebra.factors().rank < nonzero) << name;
  }
}

TEST(Factors, HaveTheKnownRanks) {
  const std::map<std::string, int> ranks = {
      {"real", 1},
      {"complex", 3},
      {"split_complex", 2},
      {"dual", 3},
      {"quaternion", 8},
      {"split_quaternion", 7},
      {"tessarine", 6},
      {"bicomplex", 6},
      {"dual_complex", 9},
      {"mat2", 7},
      {"octonion", 26},
      {"split_octonion", 24},
      {"dual_quaternion", 24},
      {"biquaternion", 21},
      {"split_biquaternion", 16},
      {"sedenion", 96},
      {"cyclic(1)", 1},
      {"cyclic(2)", 2},
      {"cyclic(3)", 4},
      {"cyclic(4)", 5},
      {"cyclic(5)", 7},
      {"cyclic(6)", 8},
      {"cyclic(8)", 11},
      {"cyclic(16)", 23},
      {"cyclic(31)", 46},
      {"negacyclic(1)", 1},
      {"negacyclic(3)", 4},
      {"negacyclic(4)", 6},
      {"negacyclic(8)", 12},
      {"group_z2(0)", 1},
      {"group_z2(3)", 8},
      {"group_z2(4)", 16},
      {"clifford(0,0)", 1},
      {"clifford(1,0)", 2},
      {"clifford(0,1)", 3},
      {"clifford(0,0,1)", 3},
      {"clifford(0,2)", 8},
      {"clifford(1,1)", 7},
      {"clifford(2,0)", 7},
      {"clifford(0,3)", 16},
      {"clifford(1,2)", 21},
      {"clifford(2,1)", 14},
      {"clifford(3,0)", 21},
      {"clifford(0,4)", 56},
      {"clifford(1,3)", 56},
      {"clifford(2,2)", 49},
      {"clifford(3,1)", 49},
      {"clifford(4,0)", 56},
      {"clifford(4,1)", 147},
      {"clifford(3,0,1)", 63},
      {"clifford(2,0,1)", 21},
      {"clifford(3,3)", 343},
  };
  for (const auto& [name, rank] : ranks) EXPECT_EQ(get(name).factors().rank, rank) << name;
}

TEST(Factors, GiveTheTableOfEveryCliffordAlgebraUpToFiveGenerators) {
  for (int p = 0; p <= 5; ++p) {
    for (int q = 0; p + q <= 5; ++q) {
      for (int r = 0; p + q + r <= 5; ++r) {
        const Algebra& algebra =
            get("clifford(" + std::to_string(p) + "," + std::to_string(q) + "," + std::to_string(r) + ")");
        EXPECT_LE(factor_error(algebra.factors(), algebra.table()), 1e-13) << algebra.name();
        EXPECT_EQ(algebra.has_fast_factors(), p + q > 0) << algebra.name();
      }
    }
  }
}

TEST(Factors, AreTrivialForATableNobodyKnows) {
  std::vector<double> table(27);
  table[5] = 2.5, table[11] = -1, table[26] = 1e-3;
  const Algebra& algebra = add("factors_test_sparse", 3, table);
  EXPECT_EQ(algebra.factors().rank, 3);
  EXPECT_FALSE(algebra.has_fast_factors());
  EXPECT_EQ(factor_error(algebra.factors(), table), 0);
}

TEST(Factors, OfAListedAlgebraAreTakenForTheSameTable) {
  const Algebra& mine = add("factors_test_quaternion", 4, get("quaternion").table());
  EXPECT_EQ(mine.factors().rank, 8);
  EXPECT_TRUE(mine.has_fast_factors());
}

TEST(Factors, StaySmall) {
  for (const auto& name : names()) {
    const Factors& factors = get(name).factors();
    EXPECT_LE(largest_entry(factors.U) * largest_entry(factors.V) * largest_entry(factors.W), 8.5) << name;
  }
}

TEST(Factors, AUsersFactorsAreChecked) {
  const Algebra& quaternion = get("quaternion");
  Factors factors = quaternion.factors();
  EXPECT_EQ(add("factors_test_given", 4, quaternion.table(), factors).factors().U, factors.U);
  factors.V[3] += 1e-9;
  EXPECT_THROW(add("factors_test_wrong", 4, quaternion.table(), factors), std::invalid_argument);
  factors.V[3] = NAN;
  EXPECT_THROW(add("factors_test_nan", 4, quaternion.table(), factors), std::invalid_argument);
  factors.V.pop_back();
  EXPECT_THROW(add("factors_test_short", 4, quaternion.table(), factors), std::invalid_argument);
  EXPECT_THROW(factor_error(quaternion.factors(), get("complex").table()), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain::algebra
