#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// One PHM layer learns a multiplication rule from examples of it (PHM figure 2).
const Kind& regression();

}  // namespace quatrain::tasks
