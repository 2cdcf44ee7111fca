#include "algebra/builtin.h"

#include <functional>
#include <map>
#include <stdexcept>

#include "algebra/factors.h"
#include "algebra/signature.h"

namespace quatrain::algebra {
namespace {

// A tensor product conjugates its inner factor: q -> q* in both halves of a dual quaternion.
std::vector<double> inner_conjugation(int n, int inner) {
  std::vector<double> signs(n);
  for (int i = 0; i < n; ++i) signs[i] = i % inner == 0 ? 1 : -1;
  return signs;
}

Definition tensor_product(const Table& outer, const Table& inner, std::optional<Factors> factors) {
  return {kronecker(outer, inner), std::move(factors), inner_conjugation(outer.n * inner.n, inner.n)};
}

Table real() {
  return cayley_dickson(0);
}
Table complex() {
  return cayley_dickson(1);
}
Table split_complex() {
  return cayley_dickson(1, 1);
}
Table quaternion() {
  return cayley_dickson(2);
}
Table dual() {
  return polynomials(2, 0);
}
Factors dual_factors() {
  return trivial_factors(2, dual().values);
}

Definition tessarine() {
  return tensor_product(split_complex(), complex(),
                        kronecker(fourier_factors(2, 1), stored_factors("complex")));
}

// 1, i1, i2, i1 i2 with i1 = i and i2 = k of the tessarines, whose i k is -j.
Definition bicomplex() {
  return tensor_product(complex(), complex(), relabel(*tessarine().factors, {{0}, {1}, {3}, {2, -1}}));
}

// Complexes (x) split quaternions have rank 3 * 7; I j and I k of the split ones are the Hamilton j and k.
Definition biquaternion() {
  const Factors split = kronecker(stored_factors("complex"), stored_factors("split_quaternion"));
  return tensor_product(complex(), quaternion(),
                        relabel(split, {{0}, {1}, {6}, {7}, {4}, {5}, {2, -1}, {3, -1}}));
}

const std::map<std::string, std::function<Definition()>>& named() {
  static const std::map<std::string, std::function<Definition()>> all = {
      {"real", [] { return Definition{real()}; }},
      {"complex",
       [] {
         return Definition{complex(), stored_factors("complex")};
       }},
      {"split_complex",
       [] {
         return Definition{split_complex(), fourier_factors(2, 1)};
       }},
      {"dual", [] { return Definition{dual()}; }},
      {"quaternion",
       [] {
         return Definition{quaternion(), stored_factors("quaternion")};
       }},
      {"split_quaternion",
       [] {
         return Definition{cayley_dickson(2, 1), stored_factors("split_quaternion")};
       }},
      {"tessarine", tessarine},
      {"bicomplex", bicomplex},
      {"dual_complex",
       [] {
         return tensor_product(dual(), complex(), kronecker(dual_factors(), stored_factors("complex")));
       }},
      {"mat2",
       [] {
         return Definition{mat2(), stored_factors("mat2")};
       }},
      {"octonion",
       [] {
         return Definition{cayley_dickson(3), stored_factors("octonion")};
       }},
      {"split_octonion",
       [] {
         return Definition{cayley_dickson(3, 1), stored_factors("split_octonion")};
       }},
      {"dual_quaternion",
       [] {
         return tensor_product(dual(), quaternion(), kronecker(dual_factors(), stored_factors("quaternion")));
       }},
      {"biquaternion", biquaternion},
      {"split_biquaternion",
       [] {
         return tensor_product(split_complex(), quaternion(),
                               kronecker(fourier_factors(2, 1), stored_factors("quaternion")));
       }},
      {"sedenion",
       [] {
         return Definition{cayley_dickson(4), stored_factors("sedenion")};
       }},
  };
  return all;
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& rule) {
  throw std::invalid_argument("algebra: " + rule + ", got " + name);
}

Definition clifford_algebra(const std::string& name, const std::vector<int>& numbers) {
  if (numbers.size() < 2 || numbers.size() > 3)
    refuse_name(name, "clifford takes two or three numbers, clifford(p,q) or clifford(p,q,r)");
  const int p = numbers[0], q = numbers[1], r = numbers.size() == 3 ? numbers[2] : 0;
  constexpr int kMost = 6;
  for (int number : {p, q, r}) {
    if (number < 0 || number > kMost || p + q + r > kMost) {
      refuse_name(
          name, "clifford(p,q,r) needs p, q, r >= 0 and p + q + r <= " + std::to_string(kMost) + " (n = 64)");
    }
  }
  return {clifford(p, q, r), clifford_factors(p, q, r), clifford_conjugation(p + q + r)};
}

Definition polynomial_algebra(const std::string& name, const std::vector<int>& numbers, double wrap) {
  const int n = numbers.size() == 1 ? numbers[0] : 0;
  if (n < 1 || n > kMaxDimension)
    refuse_name(name, "cyclic(n) and negacyclic(n) need one n from 1 to " + std::to_string(kMaxDimension));
  return {polynomials(n, wrap), fourier_factors(n, wrap)};
}

Definition group_z2(const std::string& name, const std::vector<int>& numbers) {
  const int m = numbers.size() == 1 ? numbers[0] : -1;
  if (m < 0 || m > 6) refuse_name(name, "group_z2(m) needs one m from 0 to 6 (n = 2^m)");
  Table table = real();
  Factors factors = trivial_factors(1, table.values);
  for (int i = 0; i < m; ++i) {
    table = kronecker(split_complex(), table);
    factors = kronecker(fourier_factors(2, 1), factors);
  }
  return {std::move(table), std::move(factors)};
}

}  // namespace

std::optional<Definition> builtin(const std::string& name) {
  const Call call = parse_call(name);
  if (!call.inner) {
    const auto found = named().find(name);
    if (found == named().end()) return std::nullopt;
    return found->second();
  }
  const std::string& head = call.head;
  if (head != "clifford" && head != "cyclic" && head != "negacyclic" && head != "group_z2")
    return std::nullopt;
  const auto numbers = parse_ints(*call.inner);
  if (!numbers) refuse_name(name, head + " takes whole numbers");
  if (head == "clifford") return clifford_algebra(name, *numbers);
  if (head == "group_z2") return group_z2(name, *numbers);
  return polynomial_algebra(name, *numbers, head == "cyclic" ? 1 : -1);
}

const std::vector<Listed>& listed() {
  static const std::vector<Listed> all = {
      {"real", 1},
      {"complex", 2},
      {"dual", 2},
      {"split_complex", 2},
      {"cyclic(3)", 3},
      {"bicomplex", 4},
      {"clifford(0,2)", 4},
      {"clifford(1,1)", 4},
      {"clifford(2,0)", 4},
      {"cyclic(4)", 4},
      {"dual_complex", 4},
      {"group_z2(2)", 4},
      {"mat2", 4},
      {"negacyclic(4)", 4},
      {"quaternion", 4},
      {"split_quaternion", 4},
      {"tessarine", 4},
      {"cyclic(5)", 5},
      {"cyclic(6)", 6},
      {"cyclic(7)", 7},
      {"biquaternion", 8},
      {"clifford(0,3)", 8},
      {"clifford(1,2)", 8},
      {"clifford(2,0,1)", 8},
      {"clifford(2,1)", 8},
      {"clifford(3,0)", 8},
      {"cyclic(8)", 8},
      {"dual_quaternion", 8},
      {"group_z2(3)", 8},
      {"negacyclic(8)", 8},
      {"octonion", 8},
      {"split_biquaternion", 8},
      {"split_octonion", 8},
      {"clifford(0,4)", 16},
      {"clifford(1,3)", 16},
      {"clifford(2,2)", 16},
      {"clifford(3,0,1)", 16},
      {"clifford(3,1)", 16},
      {"clifford(4,0)", 16},
      {"cyclic(16)", 16},
      {"group_z2(4)", 16},
      {"negacyclic(16)", 16},
      {"sedenion", 16},
      {"clifford(4,1)", 32},
  };
  return all;
}

const std::vector<std::string>& signatures() {
  static const std::vector<std::string> all = {"clifford", "cyclic", "negacyclic", "group_z2"};
  return all;
}

}  // namespace quatrain::algebra
