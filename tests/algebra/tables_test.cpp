#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "quatrain/algebra.h"

namespace quatrain::algebra {
namespace {

using Element = std::vector<double>;

Element product(const Algebra& algebra, const Element& x, const Element& y) {
  Element result(algebra.n());
  for (int i = 0; i < algebra.n(); ++i) {
    for (int a = 0; a < algebra.n(); ++a) {
      for (int b = 0; b < algebra.n(); ++b) result[a] += algebra.table(i, a, b) * x[i] * y[b];
    }
  }
  return result;
}

double squared_norm(const Element& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return sum;
}

Element random_element(int n, std::mt19937& random) {
  Element x(n);
  for (double& value : x) value = std::uniform_int_distribution<int>(-9, 9)(random);  // exact products
  return x;
}

Element unit(int n, int index, double sign = 1) {
  Element x(n);
  x[index] = sign;
  return x;
}

// e_i e_j as {index, sign}.
void expect_product(const std::string& name, int i, int j, int index, double sign) {
  const Algebra& algebra = get(name);
  EXPECT_EQ(product(algebra, unit(algebra.n(), i), unit(algebra.n(), j)), unit(algebra.n(), index, sign))
      << name << ": e" << i << " e" << j;
}

TEST(Tables, QuaternionIsTheHamiltonProduct) {
  const Algebra& algebra = get("quaternion");
  std::mt19937 random(0);
  for (int trial = 0; trial < 20; ++trial) {
    const Element p = random_element(4, random), q = random_element(4, random);
    const Element hamilton = {p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
                              p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
                              p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
                              p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0]};
    EXPECT_EQ(product(algebra, p, q), hamilton);
  }
  // A[i, row, column]: the left matrix of i, (S_1 in PHM (3.5)).
  EXPECT_EQ(algebra.table(1, 0, 1), -1);
  EXPECT_EQ(algebra.table(1, 1, 0), 1);
  EXPECT_EQ(algebra.table(1, 2, 3), -1);
  EXPECT_EQ(algebra.table(1, 3, 2), 1);
}

TEST(Tables, HaveTheirDefiningProducts) {
  expect_product("complex", 1, 1, 0, -1);
  expect_product("split_complex", 1, 1, 0, 1);
  EXPECT_EQ(product(get("dual"), unit(2, 1), unit(2, 1)), Element(2));
  expect_product("split_quaternion", 1, 1, 0, -1);
  expect_product("split_quaternion", 2, 2, 0, 1);
  expect_product("split_quaternion", 1, 2, 3, 1);
  expect_product("tessarine", 1, 1, 0, -1);
  expect_product("tessarine", 2, 2, 0, 1);
  expect_product("tessarine", 1, 2, 3, 1);
  expect_product("tessarine", 2, 1, 3, 1);
  expect_product("bicomplex", 1, 1, 0, -1);
  expect_product("bicomplex", 2, 2, 0, -1);
  expect_product("bicomplex", 1, 2, 3, 1);
  expect_product("bicomplex", 3, 3, 0, 1);
  expect_product("dual_quaternion", 4, 1, 5, 1);
  expect_product("dual_quaternion", 1, 2, 3, 1);
  EXPECT_EQ(product(get("dual_quaternion"), unit(8, 5), unit(8, 4)), Element(8));
  expect_product("biquaternion", 1, 2, 3, 1);
  expect_product("biquaternion", 4, 4, 0, -1);
  expect_product("split_biquaternion", 4, 4, 0, 1);
  expect_product("octonion", 1, 6, 7, -1);
  expect_product("octonion", 2, 5, 7, 1);
  expect_product("split_octonion", 4, 4, 0, 1);
  expect_product("split_octonion", 3, 3, 0, -1);
  expect_product("mat2", 1, 2, 0, 1);  // e12 e21 = e11
  expect_product("cyclic(5)", 3, 4, 2, 1);
  expect_product("negacyclic(4)", 3, 2, 1, -1);
  expect_product("group_z2(3)", 5, 6, 3, 1);
  expect_product("clifford(2,1)", 2, 1, 3, -1);
  expect_product("clifford(2,1)", 4, 4, 0, -1);
  expect_product("clifford(2,0,1)", 3, 3, 0, -1);
}

TEST(Tables, AgreeWhereTwoNamesMeanOneAlgebra) {
  const std::vector<std::array<std::string, 2>> pairs = {
      {"clifford(0,2)", "quaternion"},    {"clifford(0,1)", "complex"},
      {"clifford(1,0)", "split_complex"}, {"clifford(0,0,1)", "dual"},
      {"clifford(0,0)", "real"},          {"cyclic(1)", "real"},
      {"cyclic(2)", "split_complex"},     {"group_z2(1)", "split_complex"},
      {"negacyclic(2)", "complex"},       {"clifford(3,0,0)", "clifford(3,0)"}};
  for (const auto& [one, other] : pairs) EXPECT_EQ(get(one).hash(), get(other).hash()) << one;
}

TEST(Tables, MatricesMultiplyAsMatrices) {
  std::mt19937 random(1);
  const Element x = random_element(4, random), y = random_element(4, random);
  const Element expected = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3], x[2] * y[0] + x[3] * y[2],
                            x[2] * y[1] + x[3] * y[3]};
  EXPECT_EQ(product(get("mat2"), x, y), expected);
}

TEST(Tables, SplitQuaternionsAreTheMatrices) {
  // 1, i, j, k as e11 + e22, e12 - e21, e11 - e22, -(e12 + e21).
  const std::vector<Element> images = {{1, 0, 0, 1}, {0, 1, -1, 0}, {1, 0, 0, -1}, {0, -1, -1, 0}};
  const Algebra& split = get("split_quaternion");
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      Element expected(4);
      for (int a = 0; a < 4; ++a) {
        for (int c = 0; c < 4; ++c) expected[c] += split.table(i, a, j) * images[a][c];
      }
      EXPECT_EQ(product(get("mat2"), images[i], images[j]), expected) << i << j;
    }
  }
}

TEST(Tables, OctonionsMultiplyNormsAndSedenionsHaveZeroDivisors) {
  std::mt19937 random(2);
  const Algebra& octonion = get("octonion");
  const Element x = random_element(8, random), y = random_element(8, random);
  EXPECT_EQ(squared_norm(product(octonion, x, y)), squared_norm(x) * squared_norm(y));

  const Algebra& sedenion = get("sedenion");
  int divisors = 0;  // of the form (e_i + e_j)(e_k +- e_l) = 0
  for (int i = 1; i < 16; ++i) {
    for (int j = i + 1; j < 16; ++j) {
      for (int k = 1; k < 16; ++k) {
        for (int l = k + 1; l < 16; ++l) {
          Element left = unit(16, i), right = unit(16, k);
          left[j] = right[l] = 1;
          divisors += squared_norm(product(sedenion, left, right)) == 0;
        }
      }
    }
  }
  EXPECT_GT(divisors, 0);
}

TEST(Tables, ConjugationReversesProducts) {
  for (const char* name :
       {"complex", "split_complex", "dual", "quaternion", "split_quaternion", "tessarine", "bicomplex",
        "dual_complex", "octonion", "split_octonion", "sedenion", "dual_quaternion", "biquaternion",
        "split_biquaternion", "clifford(2,1)", "clifford(3,0)", "clifford(3,0,1)", "clifford(1,3)"}) {
    const Algebra& algebra = get(name);
    const int n = algebra.n();
    const auto& sign = algebra.conjugation();
    for (int i = 0; i < n; ++i) {
      for (int a = 0; a < n; ++a) {
        for (int b = 0; b < n; ++b) {  // conj(e_i e_b) = conj(e_b) conj(e_i)
          ASSERT_EQ(sign[a] * algebra.table(i, a, b), sign[b] * sign[i] * algebra.table(b, a, i)) << name;
        }
      }
    }
  }
  EXPECT_EQ(get("dual_quaternion").conjugation(), (Element{1, -1, -1, -1, 1, -1, -1, -1}));
  EXPECT_EQ(get("clifford(3,0)").conjugation(), (Element{1, -1, -1, -1, -1, -1, -1, 1}));
  EXPECT_EQ(get("cyclic(3)").conjugation(), (Element{1, -1, -1}));
}

}  // namespace
}  // namespace quatrain::algebra
