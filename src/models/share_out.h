#pragma once

#include <cstdint>
#include <functional>

/// Work whose results shall not depend on how much of it there is, nor on the number of threads.
namespace quatrain::models {

/// From so many rows on, a product's rows do not depend on their number: fewer are made by other kernels,
/// which add in another order.
inline constexpr int64_t kExactRows = 32;

/// `work(i)` for each i below `count`, without gradients, one for each thread, whose own products have one
/// and take the ways of kExactRows rows. `after_round`, where given, is called now and then by the calling
/// thread; what it throws ends the work.
void share_out(int64_t count, const std::function<void(int64_t)>& work,
               const std::function<void()>& after_round = {});

}  // namespace quatrain::models
