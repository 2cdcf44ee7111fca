#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "quatrain/algebra.h"

namespace quatrain::algebra {
namespace {

// unital, commutative, associative, alternative, division, norm-multiplicative
std::string letters(const Properties& p) {
  std::string text;
  for (auto [holds, letter] : {std::pair{p.unital, 'u'},
                               {p.commutative, 'c'},
                               {p.associative, 'a'},
                               {p.alternative, 'l'},
                               {p.division, 'd'},
                               {p.norm_multiplicative, 'n'}}) {
    if (holds) text += letter;
  }
  return text;
}

TEST(Properties, AreThoseOfTheTextbooks) {
  const std::map<std::string, std::string> expected = {
      {"real", "ucaldn"},
      {"complex", "ucaldn"},
      {"quaternion", "ualdn"},
      {"octonion", "uldn"},
      {"sedenion", "u"},
      {"split_complex", "ucal"},
      {"dual", "ucal"},
      {"split_quaternion", "ual"},
      {"split_octonion", "ul"},
      {"tessarine", "ucal"},
      {"bicomplex", "ucal"},
      {"dual_complex", "ucal"},
      {"dual_quaternion", "ual"},
      {"biquaternion", "ual"},
      {"split_biquaternion", "ual"},
      {"mat2", "al"},
      {"cyclic(5)", "ucal"},
      {"negacyclic(4)", "ucal"},
      {"negacyclic(2)", "ucaldn"},
      {"group_z2(3)", "ucal"},
      {"clifford(0,2)", "ualdn"},
      {"clifford(2,0)", "ual"},
      {"clifford(3,0,1)", "ual"},
      {"clifford(0,3)", "ual"},
  };
  for (const auto& [name, text] : expected) EXPECT_EQ(letters(get(name).properties()), text) << name;
}

// The algebra over the basis f_i = sum_j change[i][j] e_j, given with the inverse of the change.
std::vector<double> over_basis(const Algebra& algebra, const std::vector<double>& change,
                               const std::vector<double>& inverse) {
  const int n = algebra.n();
  std::vector<double> table(static_cast<size_t>(n) * n * n);
  for (int i = 0; i < n; ++i) {
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        for (int j = 0; j < n; ++j) {
          for (int c = 0; c < n; ++c) {
            for (int d = 0; d < n; ++d) {
              table[(i * n + a) * n + b] +=
                  change[i * n + j] * change[b * n + d] * algebra.table(j, c, d) * inverse[c * n + a];
            }
          }
        }
      }
    }
  }
  return table;
}

TEST(Properties, OfQuaternionsInASkewBasis) {
  // 1, i, i + j, 2 k.
  const std::vector<double> change = {1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2};
  const std::vector<double> inverse = {1, 0, 0, 0, 0, 1, 0, 0, 0, -1, 1, 0, 0, 0, 0, 0.5};
  EXPECT_EQ(
      letters(add("properties_test_skew", 4, over_basis(get("quaternion"), change, inverse)).properties()),
      "uald");
  EXPECT_EQ(letters(add("properties_test_skew_split", 4, over_basis(get("split_quaternion"), change, inverse))
                        .properties()),
            "ual");
}

TEST(Properties, OfARotatedBasisSurviveRounding) {
  // The imaginary units turned about two axes: no entry of the table is a whole number.
  const double c = std::cos(0.7), s = std::sin(0.7), k = std::cos(1.1), t = std::sin(1.1);
  const std::vector<double> turn = {1, 0, 0, 0, 0, c, s * k, s * t, 0, -s, c * k, c * t, 0, 0, -t, k};
  std::vector<double> back(16);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) back[j * 4 + i] = turn[i * 4 + j];
  }
  EXPECT_EQ(letters(add("properties_test_turned", 4, over_basis(get("quaternion"), turn, back)).properties()),
            "ualdn");
}

TEST(Properties, OfTablesWithoutAnIdentity) {
  // conj(x) conj(y): |x y| = |x| |y| without an identity, and neither associative nor alternative.
  const std::vector<double> para_complex = {1, 0, 0, -1, 0, -1, -1, 0};
  EXPECT_EQ(letters(add("properties_test_para", 2, para_complex).properties()), "cdn");
  EXPECT_EQ(letters(add("properties_test_triple", 1, {3}).properties()), "cald");
  EXPECT_EQ(letters(add("properties_test_nil", 2, {0, 1, 0, 0, 0, 0, 0, 0}).properties()), "");
}

TEST(Properties, HashIsThatOfDimensionAndTable) {
  // The values are written down: they stand in weights files.
  EXPECT_EQ(get("real").hash().size(), 16u);
  EXPECT_EQ(get("quaternion").hash(), "224bb8264ff15741");
  EXPECT_EQ(get("clifford(4,1)").hash(), "f1cef935e449f5a5");
  EXPECT_NE(get("complex").hash(), get("split_complex").hash());
  std::vector<double> table = get("complex").table();
  for (double& value : table) {
    if (value == 0) value = -0.0;
  }
  EXPECT_EQ(add("properties_test_negative_zero", 2, table).hash(), get("complex").hash());
}

}  // namespace
}  // namespace quatrain::algebra
