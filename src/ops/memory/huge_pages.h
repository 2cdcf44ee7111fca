#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::ops {

/// Asks the system to put a dense tensor's memory, and what else lies in the same pages, into huge ones now.
/// Where it cannot, nothing happens: no value depends on it. Weights that are read from memory are read up to
/// twice as fast then, because a processor fetches ahead within a page alone, and pages that lie apart cost a
/// look-up each.
QUATRAIN_API void use_huge_pages(const at::Tensor& t);

}  // namespace quatrain::ops
