#include "cli/openmp.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace quatrain::cli {
namespace {

// Some 0.1 ms: longer than the pauses between the parts of a step, shorter than a time slice.
char spin_count[] = "GOMP_SPINCOUNT=10000";

bool is_decided(std::string_view variable) {
  return variable.starts_with("GOMP_SPINCOUNT=") || variable.starts_with("OMP_WAIT_POLICY=");
}

// Before libraries are initialised, setenv() has no effect yet, and the array of the environment cannot grow.
// So the entry is put in the place of `_`, the path that shells tell a program that they start. `bench`
// measures with threads as other programs have them.
void set_spin_count(int count, char** words, char** environment) {
  if (count > 1 && std::string_view(words[1]) == "bench") return;
  char** underscore = nullptr;
  for (char** entry = environment; *entry; ++entry) {
    if (is_decided(*entry)) return;
    if (std::string_view(*entry).starts_with("_=")) underscore = entry;
  }
  if (underscore) *underscore = spin_count;
}

#if defined(__GLIBC__)  // others hand no environment to such functions
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(int, char**,
                                                                             char**) = set_spin_count;
#endif

}  // namespace

void calm_openmp(char** words) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  ::putenv(spin_count);
  ::execv("/proc/self/exe", words);
  // Where that is not possible, all works as it did.
}

}  // namespace quatrain::cli
