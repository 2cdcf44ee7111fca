#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "quatrain/algebra.h"

namespace quatrain::algebra {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

template <typename Matcher>
auto refuses(Matcher matcher) {
  return ThrowsMessage<std::invalid_argument>(AllOf(matcher, Not(HasSubstr("\n"))));
}

TEST(Registry, FindsANameInAnySpacing) {
  EXPECT_EQ(&get(" clifford( 2 , 1 ) "), &get("clifford(2,1)"));
  EXPECT_EQ(get("clifford ( 2,1)").name(), "clifford(2,1)");
  EXPECT_EQ(get("\tquaternion\n").name(), "quaternion");
  EXPECT_EQ(get("clifford(4,1)").n(), 32);
  EXPECT_EQ(get("cyclic(64)").n(), 64);
}

TEST(Registry, NamesTheNearestKnownName) {
  EXPECT_THAT([] { get("quaternoin"); }, refuses(HasSubstr("did you mean quaternion?")));
  EXPECT_THAT([] { get("Octonion"); }, refuses(HasSubstr("did you mean octonion?")));
  EXPECT_THAT([] { get("dual-quaternion"); }, refuses(HasSubstr("did you mean dual_quaternion?")));
  EXPECT_THAT([] { get("clifort(2,2)"); }, refuses(HasSubstr("did you mean clifford(2,2)?")));
  EXPECT_THAT([] { get("cyclik(11)"); }, refuses(HasSubstr("did you mean cyclic")));
  EXPECT_THAT([] { get("xyzzy"); },
              refuses(AllOf(HasSubstr("\"xyzzy\""), HasSubstr("quatrain info algebras"))));
  EXPECT_THAT([] { get(""); }, refuses(HasSubstr("unknown algebra")));
  EXPECT_THAT([] { get(std::string(5000, 'q')); }, refuses(HasSubstr("at most 100 characters")));
}

TEST(Registry, RefusesWrongSignatures) {
  EXPECT_THAT([] { get("clifford"); }, refuses(HasSubstr("clifford")));
  EXPECT_THAT([] { get("clifford()"); }, refuses(HasSubstr("whole numbers")));
  EXPECT_THAT([] { get("clifford(2,x)"); }, refuses(HasSubstr("whole numbers")));
  EXPECT_THAT([] { get("clifford(2)"); }, refuses(HasSubstr("two or three")));
  EXPECT_THAT([] { get("clifford(1,1,1,1)"); }, refuses(HasSubstr("two or three")));
  EXPECT_THAT([] { get("clifford(4,3)"); }, refuses(AllOf(HasSubstr("<= 6"), HasSubstr("clifford(4,3)"))));
  EXPECT_THAT([] { get("clifford(-1,2)"); }, refuses(HasSubstr(">= 0")));
  EXPECT_THAT([] { get("clifford(2147483647,2147483647)"); }, refuses(HasSubstr("<= 6")));
  EXPECT_THAT([] { get("cyclic(0)"); }, refuses(HasSubstr("from 1 to 64")));
  EXPECT_THAT([] { get("cyclic(65)"); }, refuses(HasSubstr("from 1 to 64")));
  EXPECT_THAT([] { get("cyclic(99999999999)"); }, refuses(HasSubstr("whole numbers")));
  EXPECT_THAT([] { get("group_z2(7)"); }, refuses(HasSubstr("from 0 to 6")));
  EXPECT_THAT([] { get("clifford(2,1"); }, refuses(HasSubstr("parentheses")));
  EXPECT_THAT([] { get("clifford)2,1("); }, refuses(HasSubstr("parentheses")));
}

TEST(Registry, ListsByDimensionAndName) {
  const auto all = names();
  EXPECT_EQ(std::count(all.begin(), all.end(), "real"), 1);
  for (size_t k = 1; k < all.size(); ++k) {
    EXPECT_LT(std::pair(get(all[k - 1]).n(), all[k - 1]), std::pair(get(all[k]).n(), all[k]));
  }
}

TEST(Registry, AddsATable) {
  const auto table = get("quaternion").table();
  const Algebra& mine = add("registry_test_mine", 4, table);
  EXPECT_EQ(&get("registry_test_mine"), &mine);
  EXPECT_EQ(&add("registry_test_mine", 4, table), &mine);
  EXPECT_EQ(&add("quaternion", 4, table), &get("quaternion"));
  const auto all = names();
  EXPECT_EQ(std::count(all.begin(), all.end(), "registry_test_mine"), 1);
  EXPECT_THAT([] { get("registry_test_mime"); }, refuses(HasSubstr("did you mean registry_test_mine?")));

  const auto other = get("split_quaternion").table();
  EXPECT_THAT([&] { add("registry_test_mine", 4, other); }, refuses(HasSubstr("is taken")));
  EXPECT_THAT([&] { add("quaternion", 4, other); }, refuses(HasSubstr("is taken")));
  EXPECT_THAT(
      [&] {
        add("registry_test_mine", 4, table, std::nullopt, {1, 1, 1, 1});
      },
      refuses(HasSubstr("is taken")));
  EXPECT_EQ(add("registry_test_signs", 4, table, std::nullopt, {1, 1, 1, -1}).conjugation()[3], -1);
}

TEST(Registry, RefusesWhatIsNoAlgebra) {
  EXPECT_THAT([] { add("registry_test_bad", 0, {}); }, refuses(HasSubstr("n must be from 1 to 64, got 0")));
  EXPECT_THAT([] { add("registry_test_bad", -4, {}); }, refuses(HasSubstr("got -4")));
  EXPECT_THAT([] { add("registry_test_bad", 65, {}); }, refuses(HasSubstr("got 65")));
  EXPECT_THAT(
      [] {
        add("registry_test_bad", 2, {1, 2, 3});
      },
      refuses(HasSubstr("n^3 = 8 entries for n = 2, got 3")));
  for (const double entry : {double{NAN}, double{INFINITY}})
    EXPECT_THAT([&] { add("registry_test_bad", 1, {entry}); }, refuses(HasSubstr("finite")));
  for (const double entry : {1e39, 1e308, -2e6, 1e-7, 1e-320})
    EXPECT_THAT([&] { add("registry_test_bad", 1, {entry}); }, refuses(HasSubstr("from 1e-06 to 1e+06")));
  EXPECT_THAT([] { add("registry_test_bad", 1, {0}); }, refuses(HasSubstr("not zero")));
  EXPECT_THAT([] { add("registry_test_bad", 1, {1}, std::nullopt, {2}); }, refuses(HasSubstr("signs")));
  EXPECT_THAT([] { add("registry_test_bad", 1, {1}, std::nullopt, {1, 1}); }, refuses(HasSubstr("signs")));
  for (const char* name : {"", "2nd", "my algebra", "a(b)", "a-b", "phm(4)"}) {
    EXPECT_THAT([&] { add(name, 1, {1}); }, refuses(HasSubstr("letters, digits"))) << name;
  }
  for (const char* name : {"phm", "wkp", "identity", "learned", "factored"}) {
    EXPECT_THAT([&] { add(name, 1, {1}); }, refuses(HasSubstr("reserved"))) << name;
  }
  EXPECT_THAT([] { get("registry_test_bad"); }, refuses(HasSubstr("unknown")));
}

TEST(Registry, ServesManyThreads) {
  std::vector<const Algebra*> found(16);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&found, t] {
      found[t] = &get("clifford(2,2,1)");
      add("registry_test_thread" + std::to_string(t % 4), 2, get("dual").table());
      names();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Algebra* algebra : found) EXPECT_EQ(algebra, found[0]);
}

class Files : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "quatrain_" + name;
    std::ofstream(path) << text;
    written_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const auto& path : written_) std::remove(path.c_str());
  }

 private:
  std::vector<std::string> written_;
};

TEST_F(Files, AddFromJson) {
  // e1 e1 = 2 e0; Karatsuba's three products.
  const Algebra& algebra = add_from_file(write("a.json", R"({
    "name": "registry_test_json", "n": 2,
    "table": [[0, 0, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 2.0]],
    "U": [[1, 0, 1], [0, 1, 1]], "V": [[1, 0, 1], [0, 1, 1]], "W": [[1, 2, 0], [-1, -1, 1]],
    "conjugation": [1, 1]})"));
  EXPECT_EQ(algebra.name(), "registry_test_json");
  EXPECT_EQ(algebra.table(), (std::vector<double>{1, 0, 0, 1, 0, 2, 1, 0}));
  EXPECT_EQ(algebra.factors().rank, 3);
  EXPECT_TRUE(algebra.has_fast_factors());
  EXPECT_EQ(algebra.conjugation(), (std::vector<double>{1, 1}));
  EXPECT_EQ(&get("registry_test_json"), &algebra);
}

TEST_F(Files, AddFromToml) {
  const Algebra& algebra = add_from_file(write("a.toml", R"(
name = "registry_test_toml"
n = 2
# i, b, a, value
table = [[0, 0, 0, 1.0], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, -0.5]]
)"));
  EXPECT_EQ(algebra.table(), (std::vector<double>{1, 0, 0, 1, 0, 0, 1, -0.5}));
  EXPECT_FALSE(algebra.has_fast_factors());
}

TEST_F(Files, TheDocumentedExampleWorks) {
  const Algebra& algebra = add_from_file(write("golden.toml", R"(
name = "golden"  # e1 e1 = e0 + e1
n = 2
table = [[0, 0, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]]
)"));
  EXPECT_EQ(&add("golden", 2, {1, 0, 0, 1, 0, 1, 1, 1}), &algebra);
}

TEST_F(Files, BadOnesAreRefusedByName) {
  auto with = [](const std::string& rest) {
    return R"({"name": "registry_test_bad", "n": 2, )" + rest + "}";
  };
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "bad.json:1: it is not complete JSON"},
      {R"({"name": "x", "n": 2, "table": [[0,0)", "bad.json:1: it is not complete JSON"},
      {"{\"n\": 1e999}", "out of range"},
      {std::string(1000, '['), "nested at most 3 deep"},
      {"[1, 2]", "keys name, n and table"},
      {R"({"name": "x", "n": 2})", "the key table is missing"},
      {R"({"name": 3, "n": 2, "table": []})", "name must be a string"},
      {R"({"name": "x", "n": 0, "table": []})", "n must be a whole number from 1 to 64, got 0"},
      {R"({"name": "x", "n": 2.5, "table": []})", "got 2.5"},
      {R"({"name": "x", "n": 1e9, "table": []})", "n must be a whole number"},
      {with(R"("tabel": [])"), "unknown key \"tabel\" (did you mean table?)"},
      {with(R"("table": 4)"), "table must be a list"},
      {with(R"("table": [])"), "not zero"},
      {with(R"("table": [[0, 0, 2, 1]])"), "from 0 to 1, got [0,0,2,1]"},
      {with(R"("table": [[0, 0, -1, 1]])"), "got [0,0,-1,1]"},
      {with(R"("table": [[0, 0, 0]])"), "got [0,0,0]"},
      {with(R"("table": [[0, 0, 0, "1"]])"), "got [0,0,0,\"1\"]"},
      {with(R"("table": [[0, 0, 0, 1], [0, 0, 0, 2]])"), "two entries"},
      {with(R"("table": [[0, 0, 0, 1]], "U": [[1], [0]])"), "all of U, V and W"},
      {with(R"("table": [[0, 0, 0, 1]], "U": [[1], [0]], "V": [[1], [0]], "W": [[1]])"),
       "W must have n = 2 rows"},
      {with(R"("table": [[0, 0, 0, 1]], "U": [[1], [0]], "V": [[1], [0]], "W": [[1, 2], [0, 0]])"),
       "same length"},
      {with(R"("table": [[0, 0, 0, 1]], "U": [[1], [0]], "V": [[1], [0]], "W": [[2], [0]])"), "miss it by 1"},
      {with(R"("table": [[0, 0, 0, 1]], "U": [["a"], [0]], "V": [[1], [0]], "W": [[2], [0]])"),
       "list of numbers"},
      {with(R"("table": [[0, 0, 0, 1]], "conjugation": [1])"), "signs"},
      {with(R"("table": [[0, 0, 0, 1]], "conjugation": [])"), "signs"},
      {R"({"name": "quaternion", "n": 1, "table": [[0, 0, 0, 1]]})", "is taken"},
  };
  for (const auto& [text, sentence] : bad) {
    const std::string path = write("bad.json", text);
    EXPECT_THAT([&] { add_from_file(path); }, refuses(AllOf(HasSubstr(path), HasSubstr(sentence)))) << text;
  }
  const std::string torn = write("bad.toml", "name = \"x\"\nn = = 2\n");
  EXPECT_THAT([&] { add_from_file(torn); }, refuses(HasSubstr(torn + ":2: ")));
  const std::string infinite = write("inf.toml", "name = \"x\"\nn = 1\ntable = [[0, 0, 0, inf]]\n");
  EXPECT_THAT([&] { add_from_file(infinite); }, refuses(HasSubstr("an entry of table")));
  EXPECT_THAT([] { add_from_file("/nowhere/a.json"); },
              refuses(HasSubstr("/nowhere/a.json: cannot be read")));
  EXPECT_THAT([] { add_from_file("algebra.yaml"); }, refuses(HasSubstr("must end in .json or .toml")));
  EXPECT_THAT([] { add_from_file(testing::TempDir()); }, refuses(HasSubstr("must end in")));
}

}  // namespace
}  // namespace quatrain::algebra
