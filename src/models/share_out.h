#pragma once

#include <cstdint>
#include <functional>

/// Work whose results shall not depend on how much of it there is, nor on the number of threads.
namespace quatrain::models {

/// The rows that ways are planned for where no row's result may depend on the others (ops::PlannedRows).
/// From so many on, a product's rows do not depend on their number, whichever library makes it. `linear`
/// fills up what has fewer itself; attention does not, so texts that are encoded have a multiple of it
/// (Places).
inline constexpr int64_t kExactRows = 32;

/// `work(i)` for each i below `count`, without gradients, one for each thread, whose own products have one
/// and take the ways of kExactRows rows. `after_round`, where given, is called now and then by the calling
/// thread; what it throws ends the work.
void share_out(int64_t count, const std::function<void(int64_t)>& work,
               const std::function<void()>& after_round = {});

}  // namespace quatrain::models
