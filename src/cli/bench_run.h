#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness.h"

/// What the bench commands do alike.
namespace quatrain::cli {

/// The numbers of threads asked for; none: torch's.
std::vector<int> threads_or_default(const std::vector<int>& asked);

/// A size by the option that names it; of attention with its heads, of a convolution with its groups, which
/// divide it too.
struct AskedSize {
  const char* option;
  int64_t size;
  int64_t heads = 0, groups = 0;
};

/// Before anything is measured: throws a UsageError where there is no such algebra or its n does not divide a
/// size.
void check_sizes(const std::string& algebra, const std::vector<AskedSize>& sizes);

/// Measures a subject, with a counter on a terminal; then the table on standard output and the JSON in its
/// file, or JSON alone where that is standard output ("-"). What is there is printed even where the user
/// stopped it, which throws Stopped. The exit code.
int run_bench(const bench::Subject& subject, const std::string& json);

}  // namespace quatrain::cli
