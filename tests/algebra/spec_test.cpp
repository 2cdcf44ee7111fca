#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quatrain/algebra.h"

namespace quatrain::algebra {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Spec, IsTheRealLayerByDefault) {
  const Spec spec;
  EXPECT_EQ(spec.n, 1);
  EXPECT_FALSE(spec.learned);
  EXPECT_EQ(spec.text(), "real");
}

TEST(Spec, ParsesEveryForm) {
  const Spec fixed = Spec::parse(" clifford( 2, 1 ) ");
  EXPECT_EQ(fixed.n, 8);
  EXPECT_FALSE(fixed.learned);
  EXPECT_EQ(fixed.name, "clifford(2,1)");

  const Spec random = Spec::parse("phm( 5 )");
  EXPECT_EQ(random.n, 5);
  EXPECT_TRUE(random.learned);
  EXPECT_FALSE(random.weighted);
  EXPECT_EQ(random.start, Spec::Start::random);
  EXPECT_EQ(random.name, "");

  const Spec table = Spec::parse("phm(octonion)");
  EXPECT_EQ(table.n, 8);
  EXPECT_EQ(table.start, Spec::Start::table);
  EXPECT_EQ(table.name, "octonion");

  const Spec identity = Spec::parse("wkp(identity(3))");
  EXPECT_EQ(identity.n, 3);
  EXPECT_TRUE(identity.weighted);
  EXPECT_EQ(identity.start, Spec::Start::identity);
  EXPECT_EQ(identity.name, "");
}

TEST(Spec, ReadsATrainedRank) {
  const Spec spec = Spec::parse("phm( quaternion , trained_rank = 9 )");
  EXPECT_EQ(spec.trained_rank, 9);
  EXPECT_EQ(spec.name, "quaternion");
  EXPECT_EQ(spec.text(), "phm(quaternion, trained_rank=9)");
  const std::pair<const char*, const char*> refused[] = {
      {"phm(quaternion, trained_rank=7)", "at least 8"},
      {"phm(identity(4), trained_rank=3)", "at least 4"},
      {"phm(4, trained_rank=0)", "from 1 to"},
      {"phm(4, trained_rank=x)", "from 1 to"},
      {"phm(4, trained_rank)", "from 1 to"},
      {"phm(4 trained_rank=5)", "after a comma"},
      {"phm(trained_rank=5)", "after a comma"},
      {"wkp(4, trained_rank=5)", "weights of wkp"},
  };
  for (const auto& [text, part] : refused)
    EXPECT_THAT([text = text] { Spec::parse(text); }, (ThrowsMessage<std::invalid_argument>(HasSubstr(part))))
        << text;
}

TEST(Spec, ComesBackFromItsText) {
  for (const char* text :
       {"real", "quaternion", "clifford(3,0,1)", "cyclic(5)", "phm(4)", "phm(quaternion)",
        "phm(4, trained_rank=6)", "phm(clifford(2,1), trained_rank=20)", "phm(identity(4), trained_rank=4)",
        "phm(clifford(2,1))", "phm(identity(4))", "wkp(4)", "wkp(quaternion)", "wkp(identity(2))"}) {
    EXPECT_EQ(Spec::parse(text).text(), text);
    EXPECT_EQ(Spec::parse(Spec::parse(text).text()).text(), text);
  }
}

TEST(Spec, LearnedScalarsAreTheRealLayer) {
  for (const char* text : {"phm(1)", "phm(real)", "phm(identity(1))", "wkp(1)"}) {
    const Spec spec = Spec::parse(text);
    EXPECT_EQ(spec.n, 1) << text;
    EXPECT_FALSE(spec.learned) << text;
    EXPECT_EQ(spec.text(), "real") << text;
  }
}

TEST(Spec, RefusesEverythingElse) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "no algebra is given"},
      {"phm", "phm needs a dimension"},
      {"phm()", "phm needs a dimension"},
      {"wkp( )", "wkp needs a dimension"},
      {"phm(0)", "from 1 to 64, got phm(0)"},
      {"phm(-3)", "from 1 to 64"},
      {"phm(65)", "from 1 to 64"},
      {"phm(99999999999)", "unknown algebra"},
      {"phm(2.5)", "unknown algebra"},
      {"phm(identity)", "identity needs a dimension"},
      {"phm(identity(0))", "from 1 to 64"},
      {"phm(quaternio)", "did you mean quaternion?"},
      {"identity(4)", "write phm(identity(4))"},
      {"phn(4)", "did you mean phm(4)?"},
      {"phm(4", "parentheses"},
      {"phm(phm(4))", "unknown algebra"},
      {"quaternions", "did you mean quaternion?"},
  };
  for (const auto& [text, sentence] : bad) {
    EXPECT_THAT([&] { Spec::parse(text); }, ThrowsMessage<std::invalid_argument>(HasSubstr(sentence)))
        << text;
  }
}

}  // namespace
}  // namespace quatrain::algebra
