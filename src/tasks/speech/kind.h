#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// What is said in a recording, by recurrent layers over any algebra.
const Kind& speech();

}  // namespace quatrain::tasks
