#include "ops/memory/huge_pages.h"

#include <sys/mman.h>
#ifdef __linux__
#include <linux/mman.h>  // MADV_COLLAPSE, which the library's own header may not have
#endif

namespace quatrain::ops {

void use_huge_pages(const at::Tensor& t) {
#ifdef MADV_COLLAPSE  // Linux 6.1
  constexpr uintptr_t kPage = uintptr_t{1} << 21;
  const auto first = reinterpret_cast<uintptr_t>(t.const_data_ptr()), end = first + t.nbytes();
  // One at a time, since the system ends at the first that it cannot put together.
  for (uintptr_t page = first / kPage * kPage; page < end; page += kPage)
    ::madvise(reinterpret_cast<void*>(page), kPage, MADV_COLLAPSE);
#else
  static_cast<void>(t);
#endif
}

}  // namespace quatrain::ops
