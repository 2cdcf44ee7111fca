#pragma once

#include "quatrain/api.h"

/// What this build is.
namespace quatrain {

/// The version of the project, as CMakeLists.txt has it.
QUATRAIN_API const char* version();
/// The commit of the sources, "-dirty" behind it where they differed from that; "" where they were no
/// checkout.
QUATRAIN_API const char* commit();

}  // namespace quatrain
