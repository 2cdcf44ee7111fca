#include "cli/allocator.h"

#include <cstdlib>
#include <limits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace quatrain::cli {

void keep_freed_memory() {
#ifdef __GLIBC__
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") || std::getenv("MALLOC_MMAP_THRESHOLD_") ||
      std::getenv("MALLOC_MMAP_MAX_"))
    return;
  ::mallopt(M_MMAP_MAX, 0);  // a threshold of mappings may not be above 32 MB
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace quatrain::cli
