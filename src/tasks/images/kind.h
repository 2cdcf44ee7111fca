#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// A class for each picture, by a residual network of convolutions over any algebra.
const Kind& images();

}  // namespace quatrain::tasks
