#include "cli/allocator.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace quatrain::cli {

void keep_freed_memory() {
#ifdef __GLIBC__
  for (const char* name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"})
    if (std::getenv(name)) return;
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables && std::strstr(tunables, "glibc.malloc.")) return;
  ::mallopt(M_MMAP_MAX, 0);  // a threshold of mappings may not be above 32 MB
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace quatrain::cli
