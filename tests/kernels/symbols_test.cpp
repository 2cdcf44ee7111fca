// The objects compiled for one instruction set share no function with the rest of the program: else the
// linker could keep their copy of it, which not every machine can run.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {
namespace {

std::string output_of(const std::string& command) {
  std::string result;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return result;
  std::array<char, 4096> part;
  while (std::fgets(part.data(), part.size(), pipe)) result += part.data();
  return ::pclose(pipe) == 0 ? result : "";
}

/// Objects of this room, as the build names them; only those of an instruction set.
std::vector<std::string> objects() {
  std::vector<std::string> result;
  std::istringstream all(QUATRAIN_KERNEL_OBJECTS);
  for (std::string object; std::getline(all, object, ':');)
    for (const char* name : {"/baseline.", "/avx2.", "/avx512."})
      if (object.find(name) != std::string::npos) result.push_back(object);
  return result;
}

TEST(Symbols, OnlyTheTableIsSharedWithOthers) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer adds symbols of its own";
#endif
  if (output_of("nm --version 2>&1").empty()) GTEST_SKIP() << "nm is not installed";
  ASSERT_FALSE(objects().empty());
  for (const std::string& object : objects()) {
    SCOPED_TRACE(object);
    std::istringstream lines(output_of("nm -P '" + object + "'"));
    int tables = 0;
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string name;
      char type = 0;
      words >> name >> type;
      EXPECT_EQ(std::string("WwVvu").find(type), std::string::npos) << "weak: " << line;
      if (type == 'U') {
        EXPECT_NE(name.substr(0, 2), "_Z") << "a C++ function of others: " << line;
      } else if (type >= 'A' && type <= 'Z') {
        EXPECT_EQ(name.find("_ZN8quatrain7kernels3cpu"), 0U) << "external: " << line;
        ++tables;
      }
    }
    EXPECT_EQ(tables, 1);
  }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
