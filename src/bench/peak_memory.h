#pragma once

#include <cstdint>
#include <functional>

namespace quatrain::bench {

/// Bytes that something needs at its peak: what `make` builds, and one call of what it returns, over what
/// the process held before. Program code does not count.
///
/// Measured in a child process, so that nothing is left from anything else: two calls in advance, then
/// VmHWM, set back by /proc/self/clear_refs, around a third. Exact to some 100 kB a thread. Throws what went
/// wrong there. To be called before OpenMP has started threads, which a child does not inherit.
int64_t peak_memory(const std::function<std::function<void()>()>& make);

}  // namespace quatrain::bench
